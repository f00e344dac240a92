"""Observers around the operators of a replayed checkpoint, which record records, watermarks and state."""

from __future__ import annotations

import pdb  # noqa: T100 - a debugger is what the user asks for
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import CodeType
from typing import Any

from penstock.common.errors import shorten
from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.operators.sink_function import SinkFunctionOperator
from penstock.runtime.plan.job_vertex import ChainedOperator
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.state_scan import entry_of_key, key_from_text

__all__ = ["Notes", "ObservedOperator", "Say", "Watch", "observe", "time_text"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Watch:
    """What to observe."""

    operator: str | None = None
    """The uid, name or id of an operator; None for all operators, without their records."""
    key: str | None = None
    """The key as typed by the user; None for all keys."""
    limit: int = 20
    """The number of records to show for each operator and direction."""
    debugger: pdb.Pdb | None = None
    """The debugger that stops at the start of the operator's functions."""


@dataclass(slots=True)
class _Counts:
    name: str
    records_in: int = 0
    records_out: int = 0
    watermark: int | None = None


@dataclass(slots=True)
class Notes:
    """The observations of the operators of all subtasks."""

    say: Say
    watch: Watch
    counts: dict[str, _Counts] = field(default_factory=dict)
    shown: dict[tuple[str, str], int] = field(default_factory=dict)
    last_heading: tuple[str, int] | None = None

    def watches(self, chained: ChainedOperator) -> bool:
        return self.watch.operator in {chained.operator_id, chained.uid, chained.name}

    def heading(self, chained: ChainedOperator, subtask: int) -> None:
        if self.last_heading != (chained.operator_id, subtask):
            self.last_heading = (chained.operator_id, subtask)
            self.say(f"{chained.name}, subtask {subtask}")

    def records(self, chained: ChainedOperator, subtask: int, label: str, values: Any, timestamps: Timestamps) -> None:
        """Show records up to the limit, then report once that there are more."""
        shown = self.shown.get((chained.operator_id, label), 0)
        for index, value in enumerate(_rows(values)):
            if shown >= self.watch.limit:
                if shown == self.watch.limit:
                    self.say(f"  {label:<4} ... and more: --limit shows them")
                    shown += 1
                break
            self.heading(chained, subtask)
            at = None if timestamps is None else timestamps[index]
            text = value if isinstance(values, ColumnBatch) else shorten(value)
            self.say(f"  {label:<4} {text}{'' if at is None else f'  @ {time_text(at)}'}")
            shown += 1
        self.shown[(chained.operator_id, label)] = shown


def observe(spec: JobSpec, notes: Notes) -> None:
    """Wrap all operators with observers, and replace sinks."""
    for vertex in spec.vertices:
        for chained in vertex.operators:
            operator = chained.operator
            if operator is None:
                continue
            if isinstance(operator, (SinkOperator, SinkFunctionOperator)):
                operator = chained.operator = _NotedSink()
            notes.counts.setdefault(chained.operator_id, _Counts(chained.name))
            operator.__class__ = type(f"Observed{type(operator).__name__}", (ObservedOperator, type(operator)), {})
            assert isinstance(operator, ObservedOperator)
            operator.replay_notes, operator.replay_of = notes, chained


class ObservedOperator(StreamOperator):
    """A mixin for the class of an operator. The prefix separates its names from those of the operator."""

    replay_notes: Notes
    replay_of: ChainedOperator

    def setup(self, context: OperatorContext, output: Output) -> None:
        context.side_outputs = {tag: _NotedOutput(self, side) for tag, side in context.side_outputs.items()}
        self._replay_told_before = False
        self._replay_quiet = False
        super().setup(context, _NotedOutput(self, output))

    @property
    def replay_is_watched(self) -> bool:
        return self.replay_notes.watches(self.replay_of)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        self._replay_process(0, super().process_batch, values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        self._replay_process(1, super().process_batch2, values, timestamps)

    def _replay_process(
        self, index: int, process: Callable[[Any, Timestamps], None], values: Values, timestamps: Timestamps
    ) -> None:
        self.replay_notes.counts[self.replay_of.operator_id].records_in += len(values)
        if not self.replay_is_watched:
            process(values, timestamps)
        elif self.columnar or (self.replay_notes.watch.key is None and self.replay_notes.watch.debugger is None):
            self._replay_show_input(index, values, timestamps)
            process(values, timestamps)
        else:
            for position, value in enumerate(values):
                at = None if timestamps is None else [timestamps[position]]
                if self._replay_concerns(index, value):
                    self._replay_show_input(index, [value], at)
                    self._replay_call(process, [value], at)
                else:
                    self._replay_quiet = True
                    process([value], at)
                    self._replay_quiet = False

    def _replay_show_input(self, index: int, values: Values, timestamps: Timestamps) -> None:
        if self.replay_notes.watch.key is not None and not self._replay_told_before:
            self._replay_told_before = True
            self.replay_tell_state("before")
        label = "in" if index == 0 else "in 2"
        self.replay_notes.records(self.replay_of, self.context.subtask, label, values, timestamps)

    def _replay_concerns(self, index: int, value: Any) -> bool:
        """Whether the record has the observed key."""
        key = self.replay_notes.watch.key
        if key is None:
            return True
        selectors = self.key_selectors()
        selector = selectors[index] if index < len(selectors) else None
        return selector is not None and selector(value) in _keys(key)

    def _replay_call(self, function: Callable[..., None], *arguments: Any) -> None:
        debugger = self.replay_notes.watch.debugger
        if debugger is None or not _set_breaks(debugger, self):
            function(*arguments)
            return
        debugger.rcLines = ["continue"]  # from here to the breakpoint
        debugger.runcall(function, *arguments)

    def process_watermark(self, watermark: int) -> None:
        counts = self.replay_notes.counts[self.replay_of.operator_id]
        counts.watermark = watermark if counts.watermark is None else max(counts.watermark, watermark)
        if self.replay_is_watched and self.keyed:
            self.replay_notes.heading(self.replay_of, self.context.subtask)
            self.replay_notes.say(f"  time {time_text(watermark)}: timers of all keys")
            self._replay_call(super().process_watermark, watermark)
        else:
            super().process_watermark(watermark)

    def advance_processing_time(self, now: int) -> None:
        if self.replay_is_watched and self.keyed:
            self._replay_call(super().advance_processing_time, now)
        else:
            super().advance_processing_time(now)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Do nothing: the job itself was notified."""

    def replay_emitted(self, values: Any, timestamps: Timestamps) -> None:
        """Record the output of the operator."""
        self.replay_notes.counts[self.replay_of.operator_id].records_out += len(values)
        if self.replay_is_watched and not self._replay_quiet:
            self.replay_notes.records(self.replay_of, self.context.subtask, "out", values, timestamps)

    def replay_tell_state(self, when: str) -> bool:
        """Show the state of the key in this subtask. Return whether there is any."""
        backend, text = self.context.keyed_backend, self.replay_notes.watch.key
        if backend is None or text is None:
            return False
        found = False
        for key in _keys(text):
            entry = entry_of_key(backend, key, self.context.processing_time())
            if entry is not None:
                found = True
                self.replay_notes.heading(self.replay_of, self.context.subtask)
                states = ", ".join(f"{name} = {state['value']!r}" for name, state in entry["states"].items())
                timers = [timer["time"] for kind in ("event-timers", "processing-timers") for timer in entry[kind]]
                self.replay_notes.say(f"  {when:<6} {states or 'no state'}{f'; timers at {timers}' if timers else ''}")
        return found


class _NotedOutput:
    """Records what an operator emits."""

    def __init__(self, operator: ObservedOperator, output: Output) -> None:
        self._operator = operator
        self._output = output

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        self._operator.replay_emitted(values, timestamps)
        self._output.emit(values, timestamps)

    def emit_watermark(self, watermark: int) -> None:
        self._output.emit_watermark(watermark)

    def emit_status(self, *, idle: bool) -> None:
        self._output.emit_status(idle=idle)


class _NotedSink(StreamOperator):
    """Replaces a sink: its records are recorded as input and dropped."""

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Drop the records."""


_KINDS = ("+I", "-U", "+U", "-D")


def _rows(values: Any) -> Iterator[Any]:
    """Yield the records of a batch of objects or columns."""
    if isinstance(values, ColumnBatch):
        return (f"{_KINDS[kind]} {shorten(row)}" for kind, row in values.rows())
    return iter(values)


def _keys(text: str) -> list[Any]:
    """Return the keys that a text can mean.

    >>> _keys("17"), _keys("ann")
    ([17, '17'], ['ann'])
    """
    return list(dict.fromkeys([key_from_text(text), text]))


def _set_breaks(debugger: pdb.Pdb, operator: StreamOperator) -> bool:
    """Set a breakpoint at the first line of each function. Return False if they have no lines."""
    codes = {code for function in operator.user_functions() for code in _codes_of(function)}
    if not debugger.breaks:
        for code in codes:
            lines = [line for _, _, line in code.co_lines() if line is not None and line > code.co_firstlineno]
            debugger.set_break(code.co_filename, min(lines, default=code.co_firstlineno))
    return bool(codes)


def _codes_of(function: Any) -> Iterator[CodeType]:
    """Yield the code of a callable, or of the methods that the class of a function object defines."""
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        yield code
        return
    for kind in type(function).__mro__:
        if kind.__module__.startswith("penstock.") or kind is object:
            continue
        for name, method in vars(kind).items():
            code = getattr(method, "__code__", None)
            if isinstance(code, CodeType) and name not in {"__init__", "open", "close"}:
                yield code


def time_text(milliseconds: int) -> str:
    """Format a time for people.

    >>> time_text(1_700_000_000_123), time_text(17), time_text(MAX_WATERMARK)
    ('2023-11-14 22:13:20.123', '17', 'the end')
    """
    if milliseconds >= MAX_WATERMARK:
        return "the end"
    if abs(milliseconds) < 86_400_000 or abs(milliseconds) > 2**47:
        return str(milliseconds)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
