"""The driver's loop in the continuous mode: one step after the other, some of them with a checkpoint at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from penstock.runtime.checkpoint.checkpoint_coordinator import Batch, BatchEngine, CheckpointCoordinator
from penstock.runtime.plan.offset import Offset

__all__ = ["DEFAULT_INTERVAL_MS", "StepEngine", "Stepper"]

DEFAULT_INTERVAL_MS = 1_000
_FIRST_WAIT = 0.001
_LONGEST_WAIT = 0.05
_GROWTH = 1.01  # factor of the next wait; an idle job polls rarely after some seconds
_PATIENCE = 200  # short waits before they grow: a busy source soon has records again


class StepEngine(BatchEngine, Protocol):
    """An engine that writes state while it runs further steps."""

    def is_written(self, batch: Batch) -> bool:
        """Whether the state at the end of this batch has been written, so that `make_durable` need not wait."""


class Stepper:
    """Runs the steps of one attempt.

    :param offset: of the last complete checkpoint
    :param interval_ms: from one checkpoint to the next; with 0, every step is a checkpoint
    """

    def __init__(
        self,
        checkpoints: CheckpointCoordinator,
        engine: StepEngine,
        offset: Offset,
        *,
        interval_ms: int = DEFAULT_INTERVAL_MS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.durable = offset
        """The offset of the last complete checkpoint."""
        self._checkpoints = checkpoints
        self._engine = engine
        self._interval = interval_ms / 1000
        self._clock = clock
        self._position = offset
        self._next_id = offset.checkpoint_id + 1
        self._step = 0
        self._completed = offset.checkpoint_id  # tasks do not know this yet
        self._pending: Batch | None = None  # the checkpoint that is being written
        self._moved = False  # whether there were steps since the last checkpoint began
        self._last = clock()
        self._quiet = 0  # consecutive waits
        checkpoints.complete(offset)

    def run_once(self) -> bool:
        """Run a step if there is something to do, and return whether there was."""
        checkpoints = self._checkpoints
        if self._pending is not None and self._engine.is_written(self._pending):
            self._complete()
        requested = checkpoints.requested
        due = self._pending is None and self._moved and self._clock() - self._last >= self._interval
        end = checkpoints.plan(
            self._position, checkpoint_id=self._next_id, requested=due or requested, durable=self.durable
        )
        if end is None:
            return False
        checkpoint = due or requested or end.is_last or self._interval == 0
        if checkpoint and self._pending is not None:
            self._complete()
        self._take(end, checkpoint=checkpoint)
        if requested:
            self._complete()  # a client is waiting for it
        self._quiet = 0
        return True

    def _take(self, end: Offset, *, checkpoint: bool) -> None:
        checkpoints = self._checkpoints
        self._step += 1
        completed, self._completed = self._completed, 0
        batch = checkpoints.begin_step(self._position, end, self._step, completed, checkpoint=checkpoint)
        reports = self._engine.run(batch)
        self._position = end
        if not checkpoint:
            self._moved = True
            checkpoints.end_step(end.checkpoint_id, reports, self._step)
            return
        checkpoints.commit(end.checkpoint_id, reports, step=self._step)
        self._pending, self._moved = batch, False
        self._next_id, self._last = end.checkpoint_id + 1, self._clock()
        if end.is_last or checkpoints.stopping or self._interval == 0:
            self._complete()

    def _complete(self) -> None:
        """Complete the checkpoint that is being written."""
        batch, self._pending = self._pending, None
        if batch is None:
            return
        self._checkpoints.fence.check()
        self._engine.make_durable(batch)
        self.durable = batch.end
        self._completed = batch.end.checkpoint_id
        self._checkpoints.complete(batch.end)

    def settle(self) -> None:
        """Bring all steps so far into a complete checkpoint."""
        self._complete()
        if self._moved:
            end = self._checkpoints.plan(
                self._position, checkpoint_id=self._next_id, requested=True, durable=self.durable
            )
            if end is not None:
                self._take(end, checkpoint=True)
                self._complete()

    def wait(self) -> None:
        """Wait a moment because there was nothing to do, and longer if this happens often.

        Receiving sources end a long wait, but not a short one: a step per record would cost more than it gains.
        """
        self._quiet += 1
        growing = min(self._quiet - _PATIENCE, _PATIENCE * 2)
        if growing <= 0:
            time.sleep(_FIRST_WAIT)
        else:
            self._checkpoints.sources.wait_for_change(min(_FIRST_WAIT * _GROWTH**growing, _LONGEST_WAIT))
