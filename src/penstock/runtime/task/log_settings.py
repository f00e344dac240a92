"""Python's logging in functions: workers log to stderr with the program's levels and format.

The program configures logging in the driver's process. Functions run in other processes without this configuration, so
the levels and the formatter travel with the job.
"""

from __future__ import annotations

import logging
import pickle
import sys
from dataclasses import dataclass, field

import cloudpickle

__all__ = ["LogSettings"]

_OF_THE_ENGINE = ("py4j", "pyspark")


class _Handler(logging.StreamHandler):
    """Identifies the handler of this module. It writes to the current stderr."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log levels and the format of a process.

    >>> logging.getLogger("doctest.log_settings").setLevel("DEBUG")
    >>> LogSettings.here().levels["doctest.log_settings"]
    10
    """

    level: int = logging.WARNING
    """The level of the root logger."""
    levels: dict[str, int] = field(default_factory=dict)
    """The levels of other loggers that set one."""
    formatter: bytes | None = None
    """The pickled formatter of the root logger's first handler; ``None`` if logging is not configured."""

    @staticmethod
    def here() -> LogSettings:
        """Return the settings of this process."""
        root = logging.getLogger()
        loggers = {
            name: logger for name, logger in root.manager.loggerDict.items() if isinstance(logger, logging.Logger)
        }
        return LogSettings(
            root.level,
            {
                name: logger.level
                for name, logger in loggers.items()
                if logger.level != logging.NOTSET and name.partition(".")[0] not in _OF_THE_ENGINE
            },
            _pickled(root.handlers[0].formatter or logging.Formatter()) if root.handlers else None,
        )

    def apply(self) -> None:
        """Apply the settings in this process, unless it has its own handlers."""
        root = logging.getLogger()
        root.setLevel(self.level)
        for name, level in self.levels.items():
            logging.getLogger(name).setLevel(level)
        root.handlers = [handler for handler in root.handlers if not isinstance(handler, _Handler)]
        if self.formatter is not None and not root.handlers:
            handler = _Handler()
            handler.setFormatter(pickle.loads(self.formatter))
            root.addHandler(handler)


def _pickled(formatter: logging.Formatter) -> bytes:
    try:
        return bytes(cloudpickle.dumps(formatter, 5))
    except Exception:  # for instance a formatter with an open file: its format is enough
        return pickle.dumps(logging.Formatter(formatter._fmt, formatter.datefmt), 5)
