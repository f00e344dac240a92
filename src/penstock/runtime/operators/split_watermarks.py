"""Run a custom watermark generator for every source split (rules 3.6, 6.2).

A strategy passed to `from_source` has one generator per split, whichever task reads it. The task's event time is the
minimum over its splits that are not idle. The built-in generators need no state and run with the readers, where every
split has a clock anyway. A custom generator runs here, in the task after the readers.
"""

from __future__ import annotations

import copy
from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.exchange.combined_watermark import CombinedWatermark, PartialWatermark
from penstock.runtime.exchange.frames import SplitProgress
from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator, WatermarkEmitter
from penstock.runtime.records.batch import Timestamps, Values

_STATE = "splits"


class SplitWatermarksOperator(StreamOperator):
    """Assigns timestamps and emits watermarks per split. The task announces when splits start and end."""

    stateful = True
    makes_watermarks = True
    per_split = True

    def __init__(self, template: TimestampsAndWatermarksOperator) -> None:
        self.template = template
        self.strategy = template.strategy

    def user_functions(self) -> list[Any]:
        """The strategy, which contains the user's assigner and generator."""
        return self.template.user_functions()

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Start without splits."""
        super().setup(context, output)
        self._splits: CombinedWatermark[_SplitClock] = CombinedWatermark()
        self._emitter = WatermarkEmitter(output)
        self._deferred = False

    def open(self) -> None:
        """Restore the generators of the last checkpoint."""
        kept = self.context.operator_state.get_raw(_STATE)
        if kept is not None:
            self._emitter.watermark, self._emitter.idle, splits = kept
            self._splits.watermark = self._emitter.watermark
            for split, state in splits.items():
                self._splits.parts[split] = _SplitClock(self, state)

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Store all generators."""
        splits = {split: clock.state() for split, clock in self._splits.parts.items()}
        self.context.operator_state.put_raw(_STATE, (self._emitter.watermark, self._emitter.idle, splits))

    # -- splits -------------------------------------------------------------------------------------------------

    def expect_split(self, split: str) -> None:
        """Register a split of this task: event time waits for its clock."""
        splits = self._splits.parts
        if split not in splits:
            if not splits:
                self._emitter.set_idle(idle=False)
            splits[split] = _SplitClock(self)

    def select_split(self, split: str) -> None:
        """The next records are from this split."""
        self.expect_split(split)
        self._current = self._splits.parts[split].operator

    def finish_split(self, split: str) -> None:
        """Remove a finished split, so that it does not hold back event time."""
        if self._splits.parts.pop(split, None) is not None:
            self.combine()

    def pause_split(self, split: str) -> None:
        """Restart the idle period of a split: it is paused, not idle."""
        self._splits.parts[split].operator.stay_awake()

    def split_progress(self) -> dict[str, SplitProgress]:
        """Return the watermark of every split's generator, for alignment."""
        if self.strategy.alignment is None:
            return {}
        return {split: SplitProgress(clock.watermark, clock.idle) for split, clock in self._splits.parts.items()}

    def combine(self) -> None:
        """Emit the combined watermark of all splits if it has advanced."""
        if self._deferred:
            return
        if self._splits.update():
            self._emitter.advance(self._splits.watermark)
        if self._splits.all_idle or not self._splits.parts:  # downstream must not wait for a task without splits
            self._emitter.set_idle(idle=True)

    # -- input --------------------------------------------------------------------------------------------------

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the selected split."""
        self._current.process_batch(values, timestamps)

    def process_watermark(self, watermark: int) -> None:
        """Drop the source's own watermarks, except the final one."""
        if watermark == MAX_WATERMARK:
            self._emitter.advance(MAX_WATERMARK)

    def process_status(self, *, idle: bool) -> None:
        """Ignore the source's idleness, unless the task has no splits: downstream must not wait for it."""
        if self._emitter.watermark < MAX_WATERMARK:
            self.combine()

    def end_batch(self) -> None:
        """Let all splits emit periodic watermarks and detect idleness, then combine their clocks."""
        self._deferred = True
        for clock in self._splits.parts.values():
            clock.operator.end_batch()
        self._deferred = False
        self.combine()

    def next_wakeup(self) -> int | None:
        """Return when to call a split's generator again, or when a split becomes idle."""
        times = [clock.operator.next_wakeup() for clock in self._splits.parts.values()]
        return min((time for time in times if time is not None), default=None)


class _SplitClock(PartialWatermark):
    """The generator of one split and its last watermark. The generator emits its records and watermarks to it."""

    def __init__(self, owner: SplitWatermarksOperator, state: Any = None) -> None:
        super().__init__()
        self._owner = owner
        self.operator = copy.copy(owner.template)
        self.operator.setup(owner.context, owner.output)
        self.operator.emitter = self
        if state is not None:
            self.watermark, self.idle, kept = state
            self.operator.restore_generator(kept)

    def state(self) -> Any:
        """Return the state to keep between batches."""
        return self.watermark, self.idle, self.operator.kept_generator()

    def advance(self, watermark: int) -> None:
        """Advance to the generator's watermark. Even if it is not larger, the split is active."""
        super().advance(watermark)
        self._owner.combine()

    def set_idle(self, *, idle: bool) -> None:
        """Mark the split as idle or active."""
        self.idle = idle
        self._owner.combine()
