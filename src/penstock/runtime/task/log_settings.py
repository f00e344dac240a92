"""Python's logging in functions: workers log as the program does, at its levels and in its format, to stderr.

The program sets logging up in the driver's process. Functions run in other processes, which know nothing of that, so
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
    """Ours: whatever stderr is at the time."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Levels and format of a process.

    >>> logging.getLogger("doctest.log_settings").setLevel("DEBUG")
    >>> LogSettings.here().levels["doctest.log_settings"]
    10
    """

    level: int = logging.WARNING
    """Of the root logger."""
    levels: dict[str, int] = field(default_factory=dict)
    """Of other loggers that have one of their own."""
    formatter: bytes | None = None
    """The pickled formatter of the root logger's first handler; ``None`` if logging was not set up."""

    @staticmethod
    def here() -> LogSettings:
        """Those of this process."""
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
        """Log like that in this process, unless it has handlers of its own."""
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
    except Exception:  # a formatter that holds on to a file, say: its format will do
        return pickle.dumps(logging.Formatter(formatter._fmt, formatter.datefmt), 5)
