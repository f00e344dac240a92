"""One-time setup of a Python worker before its first task: make small tasks cheap, pass on printed output."""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import Any

from pyspark import SparkFiles

__all__ = ["ARCHIVES_VARIABLE", "RELAY_VARIABLE", "parse_relayed", "tune_worker"]

RELAY_VARIABLE = "PENSTOCK_RELAY"
"""Set by the driver for local workers: lines that user code prints carry a mark, see :class:`RelayedStream`."""
ARCHIVES_VARIABLE = "PENSTOCK_ARCHIVES"
"""Set by the driver for workers whose job has archives: functions find them in their working directory."""

_MARK = b"\x1epenstock"
_STATE: dict[str, Any] = {"tuned": False}


def tune_worker() -> None:
    """Prepare this worker process; every call after the first costs nothing."""
    if _STATE["tuned"]:
        return
    _STATE["tuned"] = True
    _relay_prints()
    if os.environ.get(ARCHIVES_VARIABLE) == "1":
        os.chdir(SparkFiles.getRootDirectory())
    # Spark's worker loop collects garbage after every task, over everything ever imported: some ten milliseconds
    # that find nothing. What is alive now, mostly modules, stays alive: take it out of the collector's sight.
    gc.collect()
    gc.freeze()


def _relay_prints() -> None:
    if os.environ.get(RELAY_VARIABLE) == "1":
        sys.stdout = RelayedStream(1)
        sys.stderr = RelayedStream(2)


class RelayedStream(io.TextIOBase):
    """A worker's stdout or stderr whose lines find their way to the user's terminal.

    A worker writes to a pipe that ends, behind the daemon and the JVM, in the JVM's stderr, among all that the JVM
    says itself. A mark at the beginning of each line tells the driver which ones are the user's.
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
        """For code that writes past Python's streams (faulthandler, subprocess)."""
        return 2

    def write(self, text: str) -> int:
        """Send the whole lines of the text on, keep the rest for the next write."""
        if _in_daemon():
            return len(text)
        *lines, self._partial = (self._partial + text).split("\n")
        if lines:
            self._send(lines)
        return len(text)

    def flush(self) -> None:
        """A line is sent when it is complete: half a line could be torn apart by another worker's."""

    def _send(self, lines: list[str]) -> None:
        data = b"".join(self._prefix + line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)
        while data:
            data = data[os.write(2, data) :]


def _in_daemon() -> bool:
    """Whether Spark's daemon is reporting, after the task, that the JVM has hung up: its business, not the user's."""
    error = sys.exc_info()[1]
    if error is None or error.__traceback__ is None:
        return False
    # The first frame is the one that has caught the error.
    caught_in = error.__traceback__.tb_frame
    return caught_in.f_code.co_name == "manager" and caught_in.f_globals.get("__name__") == "__main__"


def parse_relayed(line: bytes) -> tuple[int, str] | None:
    r"""The stream and the text of a line that user code printed, None for every other line.

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
