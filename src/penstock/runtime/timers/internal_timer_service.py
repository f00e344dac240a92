"""The timer service: timers per key, deduplicated, in both time domains, checkpointed with the page of the key.

Timers live in the key's entry, so they are stored, moved and removed with it. The queues here are only an index over
the entries in memory: an item is valid while its entry still contains the timer. Deletion is therefore lazy, and
loading a page twice does no harm.

In batch execution, time ends key by key. No timer fires before the last record of its key. Then all of them fire, and
timers that their callbacks register are ignored, so that each key ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import EVENT_TIMERS, PROCESSING_TIMERS, Page

_FOR_EVER = 2**64  # later than the end of any window, even if it exceeds the time range

_LOG = logging.getLogger(__name__)

OnTimer = Callable[[int, Any, Any], None]
"""(timestamp, key, namespace). The key is already the current key."""


class InternalTimerService:
    """Timers of one operator: register and delete them for the current key, fire them when time advances."""

    __slots__ = (
        "_backend",
        "_batch",
        "_clock",
        "_compact_at",
        "_counter",
        "_event_queue",
        "_ignored_any",
        "_on_event",
        "_on_processing",
        "_processing_queue",
        "_quiesced",
        "current_watermark",
        "due",
    )

    def __init__(
        self,
        backend: KeyedStateBackend,
        clock: Callable[[], int],
        on_event: OnTimer,
        on_processing: OnTimer,
        *,
        batch: bool = False,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._batch = batch
        self._quiesced = False  # the last timers of a key are firing: user code may register no more
        self._ignored_any = False
        self._on_event = on_event
        self._on_processing = on_processing
        self._counter = count()
        self._event_queue: list[tuple[int, int, Any, Any]] = []
        self._processing_queue: list[tuple[int, int, Any, Any]] = []
        self.current_watermark = MIN_WATERMARK
        self.due = False
        self._compact_at = 4096
        backend.on_page_loaded(self._index_page)

    # -- for user code ------------------------------------------------------------------------------------------

    def register_event_time_timer(self, timestamp: int, namespace: Any = None) -> None:
        """Register a timer. There is one per key, namespace and timestamp (rule 6.3)."""
        if self._quiesced:
            self._ignore("event", timestamp)
        elif self._add(EVENT_TIMERS, timestamp, namespace):
            heappush(self._event_queue, (timestamp, next(self._counter), self._backend.key, namespace))

    def register_processing_time_timer(self, timestamp: int, namespace: Any = None) -> None:
        """Register a processing-time timer. If it is already due, it fires when the current method returns."""
        if self._quiesced:
            self._ignore("processing", timestamp)
        else:
            self.schedule_processing_time(timestamp, namespace)

    def _ignore(self, domain: str, timestamp: int) -> None:
        """Warn once per task: a trigger or timer that registers its successor does so for every key."""
        level = logging.DEBUG if self._ignored_any else logging.WARNING
        self._ignored_any = True
        _LOG.log(
            level,
            "a batch job ignores timers that are registered while the timers of their key fire, such as the %s-time "
            "timer at %d",
            domain,
            timestamp,
        )

    def delete_event_time_timer(self, timestamp: int, namespace: Any = None) -> None:
        """Delete a timer, if it exists."""
        self._discard(EVENT_TIMERS, timestamp, namespace)

    def delete_processing_time_timer(self, timestamp: int, namespace: Any = None) -> None:
        """Delete a timer, if it exists."""
        self._discard(PROCESSING_TIMERS, timestamp, namespace)

    def _add(self, domain: int, timestamp: int, namespace: Any) -> bool:
        entry = self._backend.entry
        timers = entry[domain]
        timer = timestamp if namespace is None else (timestamp, namespace)
        if timers is None:
            entry[domain] = {timer}
        elif timer in timers:
            return False
        else:
            timers.add(timer)
        entry[0].dirty = True
        return True

    def _discard(self, domain: int, timestamp: int, namespace: Any) -> bool:
        entry = self._backend.entry
        timers = entry[domain]
        timer = timestamp if namespace is None else (timestamp, namespace)
        if timers is None or timer not in timers:
            return False
        timers.discard(timer)
        if not timers:
            entry[domain] = None
        entry[0].dirty = True
        return True

    # -- for the operator ---------------------------------------------------------------------------------------

    def schedule_processing_time(self, timestamp: int, namespace: Any = None) -> None:
        """Register a timer for the operator itself. Unlike user code, it may do so while a key ends."""
        if self._add(PROCESSING_TIMERS, timestamp, namespace):
            heappush(self._processing_queue, (timestamp, next(self._counter), self._backend.key, namespace))
            if timestamp <= self._clock() and not self._batch:
                self.due = True

    def advance_watermark(self, watermark: int) -> None:
        """Fire all event timers up to the watermark in time order, including those registered meanwhile."""
        if not self._batch:
            self.current_watermark = watermark
            self._fire_event_timers(watermark)
        elif watermark == MAX_WATERMARK:
            self.end_key()

    def advance_processing_time(self, now: int) -> None:
        """Fire all processing timers up to now, in time order."""
        if not self._batch:
            self._fire_processing_timers(now)

    def end_key(self) -> None:
        """Batch execution: end time for the current key. The next key starts at the minimum watermark."""
        self.current_watermark = MAX_WATERMARK
        self._quiesced = True
        self._fire_event_timers(_FOR_EVER)
        self._fire_processing_timers(_FOR_EVER)
        self._quiesced = False
        self.current_watermark = MIN_WATERMARK

    def _fire_event_timers(self, limit: int) -> None:
        self._load_due_pages(0, limit)
        self._fire(self._event_queue, EVENT_TIMERS, limit, self._on_event)

    def _fire_processing_timers(self, limit: int) -> None:
        self._load_due_pages(1, limit)
        self.due = False
        self._fire(self._processing_queue, PROCESSING_TIMERS, limit, self._on_processing)
        self.due = False

    def fire_due(self) -> None:
        """Fire processing timers that were registered for the past."""
        self.advance_processing_time(self._clock())

    def _fire(self, queue: list[tuple[int, int, Any, Any]], domain: int, limit: int, callback: OnTimer) -> None:
        backend = self._backend
        while queue and queue[0][0] <= limit:
            timestamp, _, key, namespace = heappop(queue)
            backend.set_current_key(key)
            if self._discard(domain, timestamp, namespace):
                callback(timestamp, key, namespace)

    def next_processing_time(self) -> int | None:
        """Return the earliest processing timer: the engine must run a batch then, even without input."""
        queue = self._processing_queue
        backend = self._backend
        while queue:  # drop deleted timers from the front
            timestamp, _, key, namespace = queue[0]
            entry = backend.find(key)
            if entry is None:
                break  # its page was evicted; the timer index below contains it
            timers = entry[PROCESSING_TIMERS]
            if timers is not None and (timestamp if namespace is None else (timestamp, namespace)) in timers:
                break
            heappop(queue)
        stored = (m[1] for index, m in backend.timer_index.items() if m[1] is not None and index not in backend.pages)
        return min([queue[0][0], *stored] if queue else stored, default=None)

    def count_timers(self) -> tuple[int, int]:
        """Return the number of (event, processing) timers in memory, for tests and metrics."""
        entries = self._backend.entries.values()
        return (
            sum(len(entry[EVENT_TIMERS] or ()) for entry in entries),
            sum(len(entry[PROCESSING_TIMERS] or ()) for entry in entries),
        )

    def compact(self) -> None:
        """Between batches: drop index items without timers whenever the queues have doubled."""
        if len(self._event_queue) + len(self._processing_queue) < self._compact_at:
            return
        for domain, queue in ((EVENT_TIMERS, self._event_queue), (PROCESSING_TIMERS, self._processing_queue)):
            queue[:] = [item for item in queue if self._holds(domain, item)]
            heapify(queue)
        self._compact_at = max(4096, 2 * (len(self._event_queue) + len(self._processing_queue)))

    def _holds(self, domain: int, item: tuple[int, int, Any, Any]) -> bool:
        timestamp, _, key, namespace = item
        entry = self._backend.find(key)
        if entry is None:
            return False
        timers = entry[domain]
        return timers is not None and (timestamp if namespace is None else (timestamp, namespace)) in timers

    def _load_due_pages(self, domain: int, limit: int) -> None:
        backend = self._backend
        due = [
            index
            for index, minima in backend.timer_index.items()
            if index not in backend.pages and (first := minima[domain]) is not None and first <= limit
        ]
        for index in due:
            backend.page_at(index)

    def _index_page(self, page: Page) -> None:
        for domain, queue in ((EVENT_TIMERS, self._event_queue), (PROCESSING_TIMERS, self._processing_queue)):
            for key, entry in page.entries.items():
                for timer in entry[domain] or ():
                    timestamp, namespace = (timer, None) if type(timer) is int else timer
                    heappush(queue, (timestamp, next(self._counter), key, namespace))
