"""A warning for user code that blocks the event loop: then no timeout can end a call, and the job stands still."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback

from penstock.runtime.operators.user_errors import is_runtime_frame

__all__ = ["BlockedLoopWatch"]

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 5.0
_FRAMES = 8


class BlockedLoopWatch:
    """Checks from another thread that the running loop responds. Warns once per operator."""

    def __init__(self, loop: asyncio.AbstractEventLoop, patience: float, operator_name: str) -> None:
        self._loop = loop
        self._patience = patience
        self._operator_name = operator_name
        self._runs_in = threading.get_ident()
        threading.Thread(target=self._watch, name="penstock-async-watch", daemon=True).start()

    def _watch(self) -> None:
        asked, answered = 0.0, threading.Event()
        answered.set()
        while not self._loop.is_closed():
            if not self._loop.is_running():
                answered.set()
            elif answered.is_set():
                answered = threading.Event()
                asked = time.monotonic()
                try:
                    self._loop.call_soon_threadsafe(answered.set)
                except RuntimeError:  # the loop was closed just now
                    return
            elif time.monotonic() - asked >= self._patience:
                self._warn(time.monotonic() - asked)
                return
            time.sleep(min(self._patience, _POLL_SECONDS))

    def _warn(self, seconds: float) -> None:
        stack = traceback.extract_stack(sys._current_frames().get(self._runs_in))
        own = [frame for frame in stack if not is_runtime_frame(frame.filename)]
        _LOG.warning(
            "async_invoke() of operator '%s' has blocked its event loop for %.0f s, so no timeout can end it. Use "
            "await to wait, or asyncio.to_thread() for blocking calls:\n%s",
            self._operator_name,
            seconds,
            "".join(traceback.format_list(own[-_FRAMES:])),
        )
