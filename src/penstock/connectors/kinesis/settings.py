"""Parses the properties of a consumer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError

__all__ = ["ConsumerSettings"]

_POSITION = "flink.stream.initpos"
_TIMESTAMP = f"{_POSITION}.timestamp"
_FORMAT = f"{_POSITION}.timestamp.format"
_POSITIONS = ("LATEST", "TRIM_HORIZON", "AT_TIMESTAMP")
_MOST_RECORDS = 10_000

# Letters of Java's date patterns, longest first.
_LETTERS = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f", "XXX": "%z", "XX": "%z",
    "X": "%z", "Z": "%z",
}  # fmt: skip
_PATTERN = re.compile(
    "|".join([r"'(?P<quoted>[^']*)'", *sorted(_LETTERS, key=len, reverse=True), "(?P<other>[A-Za-z])"])
)


@dataclass(frozen=True)
class ConsumerSettings:
    """Flink's properties of a Kinesis consumer, with Flink's defaults."""

    position: str = "LATEST"
    timestamp_ms: int | None = None
    discovery_ms: int = 10_000
    max_records: int = _MOST_RECORDS
    interval_ms: int = 200
    max_retries: int = 3
    idle_ms: int = -1
    lookahead_ms: int = 180_000

    @staticmethod
    def of(properties: Mapping[str, str]) -> ConsumerSettings:
        """Read the settings from properties, or raise an error.

        >>> ConsumerSettings.of({"flink.stream.initpos": "AT_TIMESTAMP", "flink.stream.initpos.timestamp": "12.5"})
        ... # doctest: +ELLIPSIS
        ConsumerSettings(position='AT_TIMESTAMP', timestamp_ms=12500, discovery_ms=10000, ...)
        """
        if properties.get("flink.stream.recordpublisher", "POLLING") != "POLLING":
            raise UnsupportedFeatureError(
                "flink.stream.recordpublisher EFO (enhanced fan-out) is not supported: remove it; shards are polled"
            )
        position = properties.get(_POSITION, "LATEST")
        if position not in _POSITIONS:
            raise InvalidProgramError(f"{_POSITION} must be one of {', '.join(_POSITIONS)}, not {position!r}")
        timestamp = None
        if position == "AT_TIMESTAMP":
            if _TIMESTAMP not in properties:
                raise InvalidProgramError(f"{_POSITION} is AT_TIMESTAMP, so the property {_TIMESTAMP} is needed")
            timestamp = _milliseconds(properties[_TIMESTAMP], properties.get(_FORMAT))
        settings = ConsumerSettings(
            position,
            timestamp,
            _number(properties, "flink.shard.discovery.intervalmillis", 10_000),
            _number(properties, "flink.shard.getrecords.maxrecordcount", _MOST_RECORDS),
            _number(properties, "flink.shard.getrecords.intervalmillis", 200),
            _number(properties, "flink.shard.getrecords.maxretries", 3),
            _number(properties, "flink.shard.idle.interval", -1),
            _number(properties, "flink.watermark.lookahead.millis", 180_000),
        )
        if not 0 < settings.max_records <= _MOST_RECORDS:
            raise InvalidProgramError(f"flink.shard.getrecords.maxrecordcount must be from 1 to {_MOST_RECORDS}")
        if min(settings.discovery_ms, settings.interval_ms, settings.max_retries, settings.lookahead_ms) < 0:
            raise InvalidProgramError("intervals, retries and the lookahead of a Kinesis consumer must not be negative")
        return settings


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(properties.get(key, default))
    except ValueError:
        raise InvalidProgramError(f"{key} must be an integer, not {properties[key]!r}") from None


def _milliseconds(value: str, pattern: str | None) -> int:
    """Parse a date, by a Java pattern or as ISO 8601, or seconds since the epoch.

    >>> _milliseconds("2016-04-04T19:58:46.480-00:00", None) == _milliseconds("1459799926.48", None)
    True
    >>> _milliseconds("2016/04/04 19h", "yyyy/MM/dd HH'h'")
    1459796400000
    """
    try:
        if pattern is not None:
            moment = datetime.strptime(value, _python_pattern(pattern))  # noqa: DTZ007 - the zone follows
        elif re.fullmatch(r"\d+(\.\d+)?([eE]\d+)?", value):
            return round(float(value) * 1000)
        else:
            moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidProgramError(f"{_TIMESTAMP} {value!r} is neither a date nor seconds: {error}") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _python_pattern(pattern: str) -> str:
    def letters(match: re.Match[str]) -> str:
        if match["quoted"] is not None:
            return match["quoted"] or "'"
        if match["other"] is not None:
            raise InvalidProgramError(f"{_FORMAT} {pattern!r}: the letter {match['other']!r} is not supported")
        return _LETTERS[match[0]]

    return _PATTERN.sub(letters, pattern)
