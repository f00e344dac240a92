"""Session windows that fire at their end.

In a key's entry, the sessions are a sorted list of [start, end, contents] without overlaps. An element that falls into
the latest session only moves its end. A timer is registered when a session begins; if the session has grown when the
timer fires, it is registered again. Records therefore never move timers.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.window import TimeWindow
from penstock.core.window.session import SessionWindows
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.page_chunks import Path
from penstock.runtime.state.pages import Entry
from penstock.runtime.windows.contents import ReduceContents
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.panes import TimedOperator

START, END, CONTENTS = 0, 1, 2
Session = list[Any]


def _contents_of(sessions: list[Session]) -> list[Path]:
    return [(number, CONTENTS) for number in range(len(sessions))]


class SessionWindowOperator(TimedOperator):
    """Sessions with a fixed or dynamic gap."""

    def __init__(self, definition: WindowDefinition, assigner: SessionWindows) -> None:
        super().__init__(definition)
        self.assigner = assigner
        self.fixed_gap: int | None = getattr(assigner, "session_gap", None)

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the sessions."""
        super().setup(context, output)
        kind = "event-time sessions" if self.event_time else "processing-time sessions"
        self.slot = self._register_windows(kind, growing=_contents_of)

    # -- elements -----------------------------------------------------------------------------------------------

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        times = self._timestamps(values, timestamps)
        if None in times:
            # Rule 6.4: sessions do not check timestamps.
            times = [MIN_WATERMARK if time is None else time for time in times]
        backend, entries, slot = self.backend, self.backend.entries, self.slot
        contents, gap_of, gap = self.definition.contents, self.assigner.gap_of, self.fixed_gap
        fold = contents.reduce if isinstance(contents, ReduceContents) else contents.fold
        # A session that ends here or earlier has fired. With allowed lateness, it may still exist.
        complete = self.timers.current_watermark + 1 if self.event_time else MIN_WATERMARK
        for value, timestamp in zip(values, times, strict=True):
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            end = timestamp + (gap or gap_of(value))
            sessions = entry[slot]
            if sessions is not None:
                session = sessions[-1]
                if session[0] <= timestamp <= session[1] and session[1] > complete:
                    session[1] = max(session[1], end)
                    session[2] = fold(session[2], value)
                    entry[0].dirty = True
                    continue
            self._add(value, timestamp, end, key, entry)

    def _add(self, value: Any, start: int, end: int, key: Any, entry: Entry) -> None:
        """Add an element that starts a session, connects sessions, or belongs to a complete one (rules 6.4, 6.8)."""
        sessions: list[Session] = entry[self.slot] or []
        contents, watermark = self.definition.contents, self.timers.current_watermark
        low = next((at for at, session in enumerate(sessions) if session[END] >= start), len(sessions))
        high = next((at for at in range(low, len(sessions)) if sessions[at][START] > end), len(sessions))
        touching = sessions[low:high]
        if not touching and self.event_time and end - 1 + self.lateness <= watermark:
            self._late(value, start)
            return
        if touching:
            merged = [min(start, touching[0][START]), max(end, touching[-1][END]), touching[0][CONTENTS]]
            for session in touching[1:]:
                merged[CONTENTS] = contents.merge(merged[CONTENTS], session[CONTENTS])
            merged[CONTENTS] = contents.fold(merged[CONTENTS], value)
        else:
            merged = [start, end, contents.first(value)]
        sessions[low:high] = [merged]
        entry[self.slot] = sessions
        entry[0].dirty = True
        last = merged[END] - 1
        if self.event_time and last <= watermark:
            self._schedule(key, entry, last + self.lateness)
            self._evaluate(key, entry, merged, kept=True)
        else:
            self._schedule(key, entry, last)

    # -- windows ------------------------------------------------------------------------------------------------

    def _on_timer(self, timestamp: int, key: Any, entry: Entry) -> None:
        """Fire sessions that end now, remove those whose lateness has expired, and re-register timers of the others."""
        for session in list(entry[self.slot] or ()):
            last = session[END] - 1
            if last == timestamp:
                self._evaluate(key, entry, session, kept=self.lateness > 0)
            if last > timestamp:
                self._schedule(key, entry, last)
            elif last + self.lateness > timestamp:
                self._schedule(key, entry, last + self.lateness)
            else:
                self._remove(key, entry, session)

    def _evaluate(self, key: Any, entry: Entry, session: Session, *, kept: bool) -> None:
        self.backend.key, self.backend.entry = key, entry
        elements = self.definition.contents.elements(session[CONTENTS], kept=kept)
        self._emit(key, TimeWindow(session[START], session[END]), elements)

    def _remove(self, key: Any, entry: Entry, session: Session) -> None:
        sessions = [other for other in entry[self.slot] if other is not session]
        entry[self.slot] = sessions or None
        entry[0].dirty = True
        if self.clears:
            self.backend.key, self.backend.entry = key, entry
            self._clear_function(TimeWindow(session[START], session[END]))
