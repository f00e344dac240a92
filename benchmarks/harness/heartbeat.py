"""Notices that the measured process was suspended: its wall-clock time then says nothing about the system."""

from __future__ import annotations

import threading
import time
from types import TracebackType

_BEAT = 0.5
_LONGEST_GAP = 10.0  # an overloaded machine delays a thread by a second or two, not by this


class SuspendedError(Exception):
    """The process stood still while it was measured."""


class Heartbeat:
    """Wraps a measurement; raises at its end if the process stood still meanwhile."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._gap = 0.0

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if error is None and self._gap > _LONGEST_GAP:
            raise SuspendedError(f"the process stood still for {self._gap:.0f} s: measure again")

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_BEAT):
            now = time.monotonic()
            self._gap = max(self._gap, now - last)
            last = now
