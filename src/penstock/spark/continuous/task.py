"""One long-lived task: a subtask of every source, and the stages of one channel.

In a step, the task reads its part of the sources, then runs its stages one after the other. Before each stage, it
exchanges frames with all other tasks. A stage starts when the frames of every sender have arrived, so a step is
complete everywhere before the next one begins. Therefore at most one step is in transit.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from penstock.common.errors import PenstockError
from penstock.runtime.exchange.frames import BatchHeader, SplitStatus
from penstock.runtime.source.source_stage import SourceStage
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.state.snapshots import StageSnapshot
from penstock.runtime.task.job_blob import unpack_job
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.stage import Row, StageChannel, encode_header
from penstock.spark.continuous.garbage import GarbagePlan
from penstock.spark.continuous.messages import Closed, Data, Done, Failed, Start, Step, Stop, TaskLinks, Written
from penstock.spark.continuous.state_files import LevelChanges, LoadedLevel, StateFiles

__all__ = ["ContinuousTask"]


class ContinuousTask:
    """Runs until the driver stops it, or something fails.

    :param garbage: creates the plan for garbage collection; None means that of the process, which tasks may share
    :param unpack: decodes the job that the driver has sent
    """

    def __init__(
        self,
        index: int,
        links: TaskLinks,
        garbage: Callable[[Callable[[], int]], GarbagePlan] | None = None,
        unpack: Callable[[bytes], JobSpec] = unpack_job,
    ) -> None:
        self._garbage = None if garbage is None else garbage(self._keys_in_memory)
        self._unpack = unpack
        self._index = index
        self._levels = self._channels = 0
        self._links = links
        self._early: dict[tuple[int, int], list[list[bytes]]] = {}  # data of stages that have not started yet
        self._next: Step | Stop | None = None
        self._splits: dict[int, dict[str, SplitStatus]] = {}  # of the last header that contained them
        self._writer = ThreadPoolExecutor(1, f"checkpoint-{index}")
        self._stages: dict[int, StageChannel] = {}
        self._states: dict[int, LoadedLevel] = {}
        self._changes: dict[int, LevelChanges] = {}  # since the last checkpoint
        self._sources: SourceStage | None = None
        self._files: StateFiles

    def run(self) -> None:
        """Run the task. Errors are sent to the driver, and also raised here."""
        try:
            start = self._links.receive()
            if not isinstance(start, Start):
                return
            self._open(start)
            while True:
                message = self._next_order()
                if isinstance(message, Stop):
                    break
                self._step(message)
            self._close()
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._links.tell_driver(Failed(self._index, error))
            with contextlib.suppress(Exception):
                self._close()
            raise
        finally:
            self._writer.shutdown()
        with contextlib.suppress(OSError):
            self._links.tell_driver(Closed(self._index))

    # -- opening and closing ------------------------------------------------------------------------------------

    def _open(self, start: Start) -> None:
        self._files = StateFiles(start.location, start.attempt, self._index)
        states = self._files.load(start.files)
        spec = self._unpack(start.job)
        self._levels, self._channels = spec.levels, spec.channels
        self._sources = SourceStage(spec, spec.environment(MemoryPageStore()))
        if self._index >= spec.channels:
            return
        for level in range(1, spec.levels + 1):
            own = self._unpack(start.job)  # stages share no objects
            state = self._states[level] = states.get(level, LoadedLevel())
            snapshot = StageSnapshot.decode(state.snapshot) if state.snapshot else StageSnapshot()
            environment = own.environment(state.pages, state.log)
            self._stages[level] = StageChannel(own, level, self._index, environment, snapshot)

    def _close(self) -> None:
        with contextlib.ExitStack() as stack:
            stages, self._stages = self._stages, {}
            for stage in stages.values():
                stack.callback(stage.close)
            if self._sources is not None:
                stack.callback(self._sources.close)

    # -- one step -----------------------------------------------------------------------------------------------

    def _next_order(self) -> Step | Stop:
        order, self._next = self._next, None
        while order is None:
            message = self._links.poll()
            if message is None:
                if any(stage.tidy() for stage in self._stages.values()):
                    continue
                message = self._links.receive()
            if isinstance(message, Data):
                self._keep(message)
            elif isinstance(message, (Step, Stop)):
                order = message
        return order

    def _keep(self, data: Data) -> None:
        self._early.setdefault((data.step, data.level), []).append(data.frames)

    def _step(self, step: Step) -> None:
        header = self._header(step)
        assert self._sources is not None
        rows: list[Row] = list(self._sources.run(step.works, header, first=False)) if step.works else []
        for level in range(1, self._levels + 1):
            sends = bool(step.works) if level == 1 else level - 1 in self._stages
            if sends:
                self._send(header.step, level, rows)
            if level not in self._stages:
                rows = []
                continue
            senders = step.senders if level == 1 else self._channels
            frames = self._receive(header.step, level, senders - sends)
            frames += [frame for channel, frame in rows if channel == self._index]
            if level == 1:
                frames.append(encode_header(header))
            rows = list(self._stages[level].run(frames))
        if header.checkpoint:
            self._write(header.checkpoint_id)
        self._links.tell_driver(Done(self._index, header.step, [frame for _, frame in rows]))
        if header.checkpoint or header.step == 1:
            self._settle()  # there is time for garbage collection
        for level, stage in self._stages.items():
            if stage.log_early():
                self._take(level)
            if stage.is_behind:
                stage.tidy()

    def _settle(self) -> None:
        if self._garbage is not None:
            self._garbage.settle()

    def _keys_in_memory(self) -> int:
        return sum(stage.keys_in_memory for stage in self._stages.values())

    def _header(self, step: Step) -> BatchHeader:
        header: BatchHeader = pickle.loads(step.header)
        if step.splits is not None:
            self._splits = pickle.loads(step.splits)
        header.splits = self._splits
        return header

    def _send(self, step: int, level: int, rows: list[Row]) -> None:
        """Send the rows for the next stage to the other tasks."""
        outgoing: list[list[bytes]] = [[] for _ in range(self._channels)]
        for channel, frame in rows:
            outgoing[channel].append(frame)
        for other, frames in enumerate(outgoing):
            if other != self._index:
                self._links.send(other, Data(step, level, frames))

    def _receive(self, step: int, level: int, waiting: int) -> list[bytes]:
        """Return the frames that this many other tasks have for this one."""
        incoming: list[bytes] = []
        for frames in self._early.pop((step, level), ()):
            incoming += frames
            waiting -= 1
        while waiting:
            message = self._links.receive()
            if isinstance(message, Data) and (message.step, message.level) == (step, level):
                incoming += message.frames
                waiting -= 1
            elif isinstance(message, Data):
                self._keep(message)
            elif isinstance(message, Stop):
                raise TaskStoppedError
            elif isinstance(message, Step):
                self._next = message
        return incoming

    # -- a checkpoint -------------------------------------------------------------------------------------------

    def _write(self, checkpoint_id: int) -> None:
        """Take the changes. Another thread writes them while the next steps run."""
        for level, stage in self._stages.items():
            self._take(level)
            self._changes[level].snapshot = stage.snapshot.encode()
        levels, self._changes = self._changes, {}
        self._writer.submit(self._write_files, checkpoint_id, levels)

    def _take(self, level: int) -> None:
        state = self._states[level]
        self._changes.setdefault(level, LevelChanges()).add(*state.pages.take(), state.log.take())

    def _write_files(self, checkpoint_id: int, levels: dict[int, LevelChanges]) -> None:
        try:
            self._links.tell_driver(Written(self._index, checkpoint_id, self._files.write(checkpoint_id, levels)))
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._links.tell_driver(Failed(self._index, error))


class TaskStoppedError(PenstockError):
    """The driver has stopped the task in the middle of a step, because another task has failed."""
