"""The options of tables, by key (T7)."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.common.configuration import Configuration
from penstock.runtime.table.async_calls import AsyncCalls
from penstock.table.plan.planner import PlannerSettings
from penstock.table.sql_dialect import SqlDialect
from penstock.util.exceptions import ValidationException

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

__all__ = ["TableConfig"]

_UNITS = {
    "ms": 1, "milli": 1, "millis": 1, "millisecond": 1, "milliseconds": 1, "": 1,
    "s": 1000, "sec": 1000, "secs": 1000, "second": 1000, "seconds": 1000,
    "min": 60_000, "m": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip


class TableConfig:
    """The options of a table environment. Unknown keys are accepted."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {}
        self._env: StreamExecutionEnvironment | None = None

    @staticmethod
    def get_default() -> TableConfig:
        return TableConfig()

    def attach(self, env: StreamExecutionEnvironment) -> None:
        """Also set the options that belong to the environment there."""
        self._env = env

    def set(self, key: str, value: str) -> TableConfig:
        """Set an option."""
        if not all(isinstance(one, str) for one in (key, value)):
            raise TypeError("keys and values of options must be strings")
        self._options[key] = value
        if self._env is not None and not key.startswith("table."):
            configuration = Configuration()
            configuration.set_string(key, value)
            self._env.configure(configuration)
        if key == "table.local-time-zone":
            self._zone()
        return self

    def reset(self, key: str | None = None) -> None:
        """Reset an option, or all."""
        if key is None:
            self._options.clear()
        else:
            self._options.pop(key, None)

    def get(self, key: str, default_value: str) -> str:
        return self._options.get(key, default_value)

    def add_configuration(self, configuration: Configuration) -> None:
        for key, value in configuration.to_dict().items():
            self.set(key, str(value))

    def get_configuration(self) -> Configuration:
        configuration = Configuration()
        for key, value in self._options.items():
            configuration.set_string(key, value)
        return configuration

    def to_map(self) -> dict[str, str]:
        return dict(self._options)

    def get_local_timezone(self) -> str:
        """Return the session's time zone. The default is that of the machine."""
        return self._zone()

    def set_local_timezone(self, timezone_id: str) -> None:
        self.set("table.local-time-zone", timezone_id)

    def _zone(self) -> str:
        name = self._options.get("table.local-time-zone", "default")
        if name == "default":
            return machine_time_zone()
        try:
            return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError):
            raise ValidationException(
                f"The supported Zone ID is either a full name such as 'America/Los_Angeles' or 'UTC', got '{name}'"
            ) from None

    def get_idle_state_retention(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=milliseconds(self.get("table.exec.state.ttl", "0")))

    def set_idle_state_retention(self, duration: dt.timedelta) -> None:
        self.set("table.exec.state.ttl", f"{int(duration.total_seconds() * 1000)} ms")

    def get_max_generated_code_length(self) -> int:
        return int(self.get("table.generated-code.max-length", "4000"))

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Accepted without effect: no code is generated here."""
        self.set("table.generated-code.max-length", str(max_generated_code_length))

    def get_python_executable(self) -> str:
        return self.get("python.executable", "python3")

    def set_python_executable(self, python_exec: str) -> None:
        self.set("python.executable", python_exec)

    def get_sql_dialect(self) -> Any:
        return SqlDialect[self.get("table.sql-dialect", "DEFAULT").upper()]

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        self.set("table.sql-dialect", sql_dialect.name)

    def planner_settings(self, *, batch: bool) -> PlannerSettings:
        """Return the settings for the planner."""
        return PlannerSettings(
            time_zone=self._zone(),
            batch=batch,
            mini_batch=self.get("table.exec.mini-batch.enabled", "false").lower() == "true",
            state_ttl=milliseconds(self.get("table.exec.state.ttl", "0")),
            watermark_interval=milliseconds(self.get("pipeline.auto-watermark-interval", "200")),
            options=dict(self._options),
            async_calls=AsyncCalls(
                int(self.get("table.exec.async-scalar.max-concurrent-operations", "10")),
                milliseconds(self.get("table.exec.async-scalar.timeout", "180 s")) / 1000,
                int(self.get("table.exec.async-scalar.max-attempts", "3")),
                milliseconds(self.get("table.exec.async-scalar.retry-delay", "100 ms")) / 1000,
            ),
        )


def machine_time_zone() -> str:
    """Return the name of the machine's time zone, or UTC if it has none."""
    name = os.environ.get("TZ") or ""
    if not name and Path("/etc/localtime").is_symlink():
        name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    try:
        return ZoneInfo(name).key if name else "UTC"
    except (ZoneInfoNotFoundError, ValueError):
        return "UTC"


def milliseconds(text: str) -> int:
    """Parse a duration with a unit.

    >>> milliseconds("5 s"), milliseconds("200"), milliseconds("1 d")
    (5000, 200, 86400000)
    """
    word = text.strip().lower()
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = word[len(number) :].strip()
    if unit not in _UNITS or not number:
        raise ValidationException(f"'{text}' is not a duration: write '5 s', '200 ms', '1 d'")
    return int(float(number) * _UNITS[unit])
