"""The operator contract: what a task calls, in which order, and what an operator may use.

Life of an operator in one task: `setup` -> `open` -> for every batch: `process_*` calls, `end_batch` -> ... ->
`end_input` (bounded streams only) -> `close`. Calls never run concurrently. Records come as a list of values and a
parallel list of timestamps (None if no record of the batch has one).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.core.functions import RuntimeContext
from penstock.metrics import MetricGroup
from penstock.runtime.exchange.frames import SplitProgress
from penstock.runtime.operators.black_box import note_of
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.timers.internal_timer_service import InternalTimerService, OnTimer


class Output(Protocol):
    """Where an operator's records go: the next operator of the chain, or an exchange."""

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Pass records on. From now on, the lists belong to the receiver."""

    def emit_watermark(self, watermark: int) -> None:
        """Pass a watermark on, after all records emitted so far."""

    def emit_status(self, *, idle: bool) -> None:
        """Pass on that this stream became idle or active again."""


class DiscardingOutput:
    """Output without a consumer."""

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Drop."""

    def emit_watermark(self, watermark: int) -> None:
        """Drop."""

    def emit_status(self, *, idle: bool) -> None:
        """Drop."""


DISCARD = DiscardingOutput()


class ChainingStrategy(enum.Enum):
    """Whether an operator may share a task with its predecessor."""

    ALWAYS = "always"
    HEAD = "head"  # starts a chain, others may follow
    NEVER = "never"


class Clock(Protocol):
    """Processing time of the running batch in ms."""

    now: int


@dataclass(slots=True)
class OperatorContext:
    """Everything the task provides to an operator."""

    operator_id: str
    operator_name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    clock: Clock
    runtime_context: RuntimeContext
    metrics: MetricGroup
    keyed_backend: KeyedStateBackend | None
    operator_state: OperatorStateBackend
    side_outputs: dict[str, Output]
    job: JobInfo
    timer_services: list[InternalTimerService] = field(default_factory=list)
    batch_execution: bool = False
    note: bytes = field(init=False)
    """Identifies the operator in the black box."""

    def __post_init__(self) -> None:
        self.note = note_of(self.operator_name, self.subtask, self.parallelism)

    def processing_time(self) -> int:
        """The processing time of the running batch."""
        return self.clock.now

    def side_output(self, tag_id: str) -> Output:
        """Return the output for a side output tag. Without a reader, it discards records."""
        return self.side_outputs.get(tag_id, DISCARD)

    def create_timer_service(self, on_event: OnTimer, on_processing: OnTimer) -> InternalTimerService:
        """Create timers in the keyed backend. The task advances their clocks."""
        assert self.keyed_backend is not None
        service = InternalTimerService(
            self.keyed_backend, self.processing_time, on_event, on_processing, batch=self.batch_execution
        )
        self.timer_services.append(service)
        return service


@dataclass(slots=True)
class JobInfo:
    """The facts about the running job that its tasks know."""

    job_id: str = "0" * 32
    job_name: str = "Penstock job"
    attempt: int = 0
    checkpoint_id: int = 0
    epoch: int = 0
    """The epoch of the driver: see `penstock.runtime.lease.lease`."""
    parameters: dict[str, str] = field(default_factory=dict)
    cached_files: dict[str, str] = field(default_factory=dict)
    stepped: bool = False
    """Whether there may be several batches between two checkpoints."""


class StreamOperator:
    """Base of all operators.

    Class attributes declare what the operator needs: `keyed` (a key selector for each input, keyed state, timers),
    `stateful` (keeps anything between batches; such an operator never runs in the source stage).
    """

    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    keyed: bool = False
    stateful: bool = False
    reads_watermarks: bool = False  # user code can read the operator's event time
    makes_watermarks: bool = False
    registers_lazily: bool = False  # may register state with the first element that needs it, not only in `open`
    unites_inputs: bool = False  # its two inputs are streams of a union, with one clock for all their channels
    per_split: bool = False  # after a source: needs to know the split of its records
    columnar: bool = False  # receives column batches (penstock.runtime.table) instead of lists of values
    keyed_backend: type[KeyedStateBackend] = KeyedStateBackend

    context: OperatorContext
    output: Output
    current_watermark: int = MIN_WATERMARK
    output_type: TypeInformation | None = None  # declared by the user; emitted records are checked against it

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Called once before `open`."""
        self.context = context
        self.output = output

    def open(self) -> None:
        """Open user functions and register state."""

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first (or only) input."""
        raise NotImplementedError

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second input (two-input operators)."""
        raise NotImplementedError

    def process_watermark(self, watermark: int) -> None:
        """Event time advanced: fire timers, then pass the watermark on (rule 3.6)."""
        self.current_watermark = watermark
        for service in self.context.timer_services:
            service.advance_watermark(watermark)
        self._leave_key()
        self.flush()
        self.output.emit_watermark(watermark)
        for side in self.context.side_outputs.values():
            side.emit_watermark(watermark)

    def restore_watermark(self, watermark: int) -> None:
        """Continue with the event time at which the operator's state was written."""
        self.current_watermark = watermark

    def restart(self) -> None:
        """Source stage only: the next records come from another split, which has its own clock."""

    def expect_split(self, split: str) -> None:
        """`per_split` only: the task reads this split, so its records may come."""

    def select_split(self, split: str) -> None:
        """`per_split` only: the next elements are from this split."""

    def finish_split(self, split: str) -> None:
        """`per_split` only: the split has no more elements."""

    def pause_split(self, split: str) -> None:
        """`per_split` only: the split is not read in this batch, although it may have records."""

    def split_progress(self) -> dict[str, SplitProgress]:
        """`per_split` only: return the progress of the splits, for the driver."""
        return {}

    def process_status(self, *, idle: bool) -> None:
        """The operator's whole input became idle or active again."""
        self.output.emit_status(idle=idle)
        for side in self.context.side_outputs.values():
            side.emit_status(idle=idle)

    def advance_processing_time(self, now: int) -> None:
        """Processing time advanced: fire timers."""
        for service in self.context.timer_services:
            service.advance_processing_time(now)
        self._leave_key()
        self.flush()

    def next_wakeup(self) -> int | None:
        """Return the processing time at which the operator needs a batch even without input."""
        times = [service.next_processing_time() for service in self.context.timer_services]
        return min((time for time in times if time is not None), default=None)

    def flush(self) -> None:
        """Emit the records that timer callbacks have collected."""

    def end_batch(self) -> None:
        """All input of this batch has been processed."""

    def end_input(self) -> None:
        """No more input will come: the final watermark has been processed."""

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Put non-keyed state into `context.operator_state` before it is written."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The batch with this id has been committed."""

    def close(self) -> None:
        """Release resources. This is the last call."""

    def _leave_key(self) -> None:
        if self.context.keyed_backend is not None:
            self.context.keyed_backend.clear_current_key()

    def key_selectors(self) -> list[KeySelect | None]:
        """Return the key selector of each input (keyed operators); None for an input without keys."""
        names = ("key_selector", "key_selector2")
        return [getattr(self, name) for name in names if hasattr(self, name)]

    def user_functions(self) -> list[Any]:
        """Return the user's function objects, for life cycle and serialization checks."""
        return []
