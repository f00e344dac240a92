"""The last responses of all drivers to frequently requested paths.

A list of many jobs must not wait for the slowest driver: while a job starts, its process may be busy for seconds. Each
request asks all drivers again and waits briefly. For drivers that do not respond in time, it uses the previous
response.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from penstock.cluster.driver_link import DriverGoneError, ask_driver

__all__ = ["DriverSnapshots"]

_PATIENCE = 0.04
_TIMEOUT = 2.0
_THREADS = 16

_Question = tuple[str, str]
"""The socket of a driver, and a path."""


@dataclass(slots=True)
class DriverSnapshots:
    """Responses by driver.

    :param patience: seconds to wait for drivers with a previous response
    """

    patience: float = _PATIENCE
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "penstock-drivers"))
    _pending: dict[_Question, Future[Any]] = field(default_factory=dict)
    _known: dict[_Question, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, addresses: Iterable[str], path: str, *, first: float = _TIMEOUT) -> dict[str, Any]:
        """Return the responses as JSON, by driver, without drivers that have ended or never responded.

        :param first: seconds to wait for a driver without a previous response
        """
        questions = {(address, path) for address in addresses}
        with self._lock:
            self._forget_others(questions, path)
            asked = {question: self._ask(question) for question in questions}
            unknown = [asked[question] for question in questions if question not in self._known]
        ends = time.monotonic() + max(first, self.patience)
        wait(asked.values(), self.patience)
        wait(unknown, max(0.0, ends - time.monotonic()))
        with self._lock:
            return {each[0]: self._known[each] for each in questions if self._known.get(each) is not None}

    def _forget_others(self, questions: set[_Question], path: str) -> None:
        for other in [each for each in self._known if each[1] == path and each not in questions]:
            del self._known[other]

    def _ask(self, question: _Question) -> Future[Any]:
        pending = self._pending.get(question)
        if pending is None:
            pending = self._pending[question] = self._threads.submit(self._answer, question)
        return pending

    def _answer(self, question: _Question) -> None:
        answer: Any = None
        try:
            answer = ask_driver(question[0], "GET", question[1], timeout=_TIMEOUT).json()
        except (DriverGoneError, ValueError):
            pass
        finally:
            with self._lock:
                self._pending.pop(question, None)
                if answer is not None or question not in self._known:
                    self._known[question] = answer
