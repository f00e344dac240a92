"""One-time setup of a Python worker before its first task: make small tasks cheap, and relay printed output."""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import Any

from pyspark import SparkFiles

__all__ = ["ARCHIVES_VARIABLE", "RELAY_VARIABLE", "parse_relayed", "tune_worker"]

RELAY_VARIABLE = "PENSTOCK_RELAY"
"""Set by the driver for local workers: lines printed by user code carry a mark, see :class:`RelayedStream`."""
ARCHIVES_VARIABLE = "PENSTOCK_ARCHIVES"
"""Set by the driver for workers whose job has archives: functions find them in their working directory."""

_MARK = b"\x1epenstock"
_STATE: dict[str, Any] = {"tuned": False}


def tune_worker() -> None:
    """Prepare this worker process. Only the first call does anything."""
    if _STATE["tuned"]:
        return
    _STATE["tuned"] = True
    _relay_prints()
    if os.environ.get(ARCHIVES_VARIABLE) == "1":
        os.chdir(SparkFiles.getRootDirectory())
    # Spark's worker loop collects garbage after every task, over everything ever imported: some ten milliseconds
    # without a result. What is alive now, mostly modules, stays alive, so hide it from the collector.
    gc.collect()
    gc.freeze()


def _relay_prints() -> None:
    if os.environ.get(RELAY_VARIABLE) == "1":
        sys.stdout = RelayedStream(1)
        sys.stderr = RelayedStream(2)


class RelayedStream(io.TextIOBase):
    """A worker's stdout or stderr whose lines are relayed to the user's terminal.

    A worker writes to a pipe that ends, through the daemon and the JVM, in the JVM's stderr, among all other output of
    the JVM. A mark at the beginning of each line tells the driver which lines are the user's.
    """

    def __init__(self, stream: int) -> None:
        self._prefix = _MARK + b"%d:" % stream
        self._partial = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Always UTF-8, as the driver reads it."""
        return "utf-8"

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """Return the descriptor for code that bypasses Python's streams (faulthandler, subprocess)."""
        return 2

    def write(self, text: str) -> int:
        """Send the complete lines of the text, and keep the rest for the next write."""
        if _in_daemon():
            return len(text)
        *lines, self._partial = (self._partial + text).split("\n")
        if lines:
            self._send(lines)
        return len(text)

    def flush(self) -> None:
        """Do nothing: a line is sent when it is complete, because another worker's output could split half a line."""

    def _send(self, lines: list[str]) -> None:
        data = b"".join(self._prefix + line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)
        while data:
            data = data[os.write(2, data) :]


def _in_daemon() -> bool:
    """Whether Spark's daemon is reporting, after the task, that the JVM has disconnected, which users need not see."""
    error = sys.exc_info()[1]
    if error is None or error.__traceback__ is None:
        return False
    # The first frame is the one that caught the error.
    caught_in = error.__traceback__.tb_frame
    return caught_in.f_code.co_name == "manager" and caught_in.f_globals.get("__name__") == "__main__"


def parse_relayed(line: bytes) -> tuple[int, str] | None:
    r"""Return the stream and the text of a line that user code printed, or None for any other line.

    >>> parse_relayed(b"\x1epenstock1:hello\n")
    (1, 'hello\n')
    >>> parse_relayed(b"WARN NativeCodeLoader: Unable to load native-hadoop library\n") is None
    True
    """
    start = line.find(_MARK)
    head, colon, text = line[start + len(_MARK) :].partition(b":")
    if start < 0 or not colon or head not in {b"1", b"2"}:
        return None
    return int(head), text.decode("utf-8", "replace")
