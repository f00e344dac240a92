"""A user's watermark generator for every source split (spec: 3.6, 6.2).

A strategy given to `from_source` has one generator per split, whatever task reads it, and the task's event time is the
smallest of its splits that are not idle. The built-in generators need no state and run beside the readers, where every
split has a clock anyway; a generator of the user's own lives here, in the task behind them.
"""

from __future__ import annotations

import copy
from typing import Any

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.frames import SplitProgress
from penstock.runtime.operator import OperatorContext, Output, StreamOperator, Timestamps, Values
from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator

_STATE = "splits"


class SplitWatermarksOperator(StreamOperator):
    """Stamps records and makes watermarks, split by split; the task says which split comes and goes."""

    stateful = True
    makes_watermarks = True
    per_split = True

    def __init__(self, template: TimestampsAndWatermarksOperator) -> None:
        self.template = template
        self.strategy = template.strategy

    def user_functions(self) -> list[Any]:
        """The strategy, which holds the user's assigner and generator."""
        return self.template.user_functions()

    def setup(self, context: OperatorContext, output: Output) -> None:
        """No split is known yet."""
        super().setup(context, output)
        self._splits: dict[str, _SplitClock] = {}
        self._emitted = MIN_WATERMARK
        self._idle = False

    def open(self) -> None:
        """Continue with the generators of the last checkpoint."""
        kept = self.context.operator_state.get_raw(_STATE)
        if kept is not None:
            self._emitted, self._idle, splits = kept
            for split, state in splits.items():
                self._splits[split] = _SplitClock(self, state)

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Keep all generators."""
        splits = {split: clock.state() for split, clock in self._splits.items()}
        self.context.operator_state.put_raw(_STATE, (self._emitted, self._idle, splits))

    # -- splits -------------------------------------------------------------------------------------------------

    def expect_split(self, split: str) -> None:
        """A split this task reads: its clock has to be waited for."""
        if split not in self._splits:
            self._splits[split] = _SplitClock(self)
            self.combine()

    def select_split(self, split: str) -> None:
        """The next records are of this split."""
        self.expect_split(split)
        self._current = self._splits[split].operator

    def finish_split(self, split: str) -> None:
        """A split that was read to its end holds nobody back."""
        if self._splits.pop(split, None) is not None:
            self.combine()

    def pause_split(self, split: str) -> None:
        """A split that is held back is not silent."""
        self._splits[split].operator.stay_awake()

    def split_progress(self) -> dict[str, SplitProgress]:
        """What every split's generator says, for alignment."""
        if self.strategy.alignment is None:
            return {}
        return {split: SplitProgress(clock.watermark, clock.idle) for split, clock in self._splits.items()}

    def combine(self) -> None:
        """Pass on what all splits together say, if it is new."""
        active = [clock.watermark for clock in self._splits.values() if not clock.idle]
        if self._idle is not (not active):
            self._idle = not active
            self.output.emit_status(idle=self._idle)
        if active and min(active) > self._emitted and not self.context.batch_execution:
            self._emitted = min(active)
            self.output.emit_watermark(self._emitted)

    # -- input --------------------------------------------------------------------------------------------------

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the selected split."""
        self._current.process_batch(values, timestamps)

    def process_watermark(self, watermark: int) -> None:
        """The source's own watermarks end here, except that the end of the input stays the end."""
        if watermark == MAX_WATERMARK and self._emitted < MAX_WATERMARK:
            self._emitted = MAX_WATERMARK
            if self._idle:
                self._idle = False
                self.output.emit_status(idle=False)
            self.output.emit_watermark(MAX_WATERMARK)

    def process_status(self, *, idle: bool) -> None:
        """Of the source's idleness only this counts: a task without splits must not be waited for."""
        if self._emitted < MAX_WATERMARK:
            self.combine()

    def end_batch(self) -> None:
        """Periodic watermarks and idleness of every split."""
        for clock in self._splits.values():
            clock.operator.end_batch()

    def next_wakeup(self) -> int | None:
        """When some split's generator should be asked again, or some split becomes idle."""
        times = [clock.operator.next_wakeup() for clock in self._splits.values()]
        return min((time for time in times if time is not None), default=None)


class _SplitClock:
    """One split: its generator, and what it said last. It is the generator's output."""

    def __init__(self, owner: SplitWatermarksOperator, state: Any = None) -> None:
        self._owner = owner
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.operator = copy.copy(owner.template)
        self.operator.setup(owner.context, self)
        if state is not None:
            self.watermark, self.idle, kept = state
            self.operator.restore_generator(kept)

    def state(self) -> Any:
        """What to keep between batches."""
        return self.watermark, self.idle, self.operator.kept_generator()

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Records need no clock of their own."""
        self._owner.output.emit(values, timestamps)

    def emit_watermark(self, watermark: int) -> None:
        """The split's event time advanced."""
        self.watermark = watermark
        self._owner.combine()

    def emit_status(self, *, idle: bool) -> None:
        """The split became idle, or active again."""
        self.idle = idle
        self._owner.combine()
