"""Settings in a file: `config.yaml` in the directory named by `PENSTOCK_CONF_DIR` (or `FLINK_CONF_DIR`).

The file has Flink's format: nested maps, flat keys, or both. All values are text, so `on`, `0x10` and `1:30` stay as
they are. Write lists on one line, `[a, b]`, or as text with separators.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from penstock.common.errors import InvalidProgramError

__all__ = ["parse_settings", "settings_of_environment"]

_DIRECTORIES = ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR")
_FILE, _FORMER = "config.yaml", "flink-conf.yaml"
_LINE = re.compile(r"(?P<indent> *)(?P<key>\"[^\"]+\"|'[^']+'|[^\s:#\"'\[{-][^:#]*?)\s*:(?:\s+(?P<value>.*))?$")


def settings_of_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings of the directory that the environment names, if it names one."""
    directory = next((Path(environment[name]) for name in _DIRECTORIES if environment.get(name)), None)
    if directory is None:
        return {}
    for name in (_FILE, _FORMER):
        path = directory / name
        if path.is_file():
            return parse_settings(path.read_text(encoding="utf-8"), str(path))
    raise InvalidProgramError(f"{directory} has no {_FILE}: create it, or unset {' and '.join(_DIRECTORIES)}")


def parse_settings(text: str, origin: str = _FILE) -> dict[str, str]:
    r"""Return the settings by their full keys.

    >>> parse_settings("parallelism:\n  default: 4  # of all jobs\nmetrics.reporters: [prom, log]\n")
    {'parallelism.default': '4', 'metrics.reporters': 'prom,log'}
    """
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []  # the enclosing maps of the line: their indentation and keys
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        match = _LINE.match(line.rstrip())
        if match is None or "\t" in line[: len(line) - len(line.lstrip())]:
            raise InvalidProgramError(f"line {number} of {origin} is not 'key: value': {line.strip()}")
        indent, key = len(match["indent"]), match["key"].strip("\"'")
        while above and above[-1][0] >= indent:
            above.pop()
        value = _without_comment(match["value"] or "")
        full_key = ".".join([*(name for _, name in above), key])
        if value:
            found[full_key] = _plain(value)
        else:
            above.append((indent, key))
    return found


def _without_comment(value: str) -> str:
    if value[:1] in {'"', "'"}:
        end = value.find(value[0], 1)
        return value[: end + 1] if end > 0 else value
    return re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip()


def _plain(value: str) -> str:
    """Return text unchanged, and a list on one line as Flink writes it, with commas."""
    if value.startswith("[") and value.endswith("]"):
        return ",".join(part.strip().strip("\"'") for part in value[1:-1].split(","))
    if len(value) >= 2 and value[0] == value[-1] and value[0] in {'"', "'"}:
        return value[1:-1]
    return value
