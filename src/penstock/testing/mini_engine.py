"""The engine of the mini cluster: the same stages and tasks as on Spark, with a loop instead of shuffles."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

from penstock.runtime.checkpoint.checkpoint_coordinator import Batch
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.plan.offset import Offset
from penstock.runtime.source.source_stage import SourceStage
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.state.snapshots import StageSnapshot
from penstock.runtime.task.job_blob import unpack_job
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.stage import Row, StageChannel, decode_all_reports

__all__ = ["ChannelState", "MiniEngine"]

ChannelKey = tuple[int, int]
"""Level and channel."""


class ChannelState:
    """The state of a channel between batches: its pages and the snapshot of its stage."""

    def __init__(self, blobs: dict[str, bytes] | None = None, snapshot: bytes | None = None) -> None:
        self.store = MemoryPageStore(dict(blobs or {}))
        self.snapshot = snapshot or StageSnapshot().encode()


class MiniEngine:
    """Runs the batches of one job in this process.

    :param blob: the job as workers receive it
    :param offset: where the job begins or continues
    :param cold: drop all live tasks after every batch
    :param working_directory: where tasks run, if not in the directory of this process
    :param change: called with each copy of the job from which tasks are created
    """

    def __init__(
        self,
        blob: bytes,
        offset: Offset,
        storage: MemoryCheckpointStorage,
        channels: dict[ChannelKey, ChannelState],
        *,
        cold: bool,
        working_directory: str | None = None,
        change: Callable[[JobSpec], None] | None = None,
    ) -> None:
        self.blob = blob
        self._change = change
        self.offset = offset
        self.channels = channels
        self.stages: dict[ChannelKey, StageChannel] = {}
        self._spec = self._new_spec()
        self._storage = storage
        self._cold = cold
        self._working_directory = working_directory
        self._source_stage: SourceStage | None = None

    def run(self, batch: Batch) -> list[TaskReport]:
        """Move the frames of a batch from stage to stage."""
        with self._where_archives_are():
            rows = list(self._sources().run(batch.assignments, batch.header, first=True))
            for level in range(1, self._spec.levels + 1):
                rows = self.run_level(level, rows)
        return decode_all_reports([frame for _, frame in rows])

    def _where_archives_are(self) -> contextlib.AbstractContextManager[None]:
        """Change the directory only while tasks run: the driver's relative paths are those of the program."""
        where = self._working_directory
        return contextlib.nullcontext() if where is None else contextlib.chdir(where)

    def run_level(self, level: int, rows: list[Row]) -> list[Row]:
        """Run one stage in all channels."""
        by_channel: dict[int, list[bytes]] = {}
        for channel, frame in rows:
            by_channel.setdefault(channel, []).append(frame)
        out: list[Row] = []
        for channel in range(self._spec.channels):
            state = self.channels.setdefault((level, channel), ChannelState())
            stage = self._stage(level, channel, state)
            out += stage.run(by_channel[channel])
            state.snapshot = stage.snapshot.encode()
        return out

    def make_durable(self, batch: Batch) -> None:
        """Store the offset as a log would return it. The state is already in the channels."""
        self.offset = Offset.from_json(json.loads(json.dumps(batch.end.to_json())))
        self._storage.complete(batch.end.checkpoint_id)

    def close(self) -> None:
        """Close all tasks, even if one of them fails."""
        with contextlib.ExitStack() as stack:
            for stage in self.stages.values():
                stack.callback(stage.close)
            if self._source_stage is not None:
                stack.callback(self._source_stage.close)

    def _new_spec(self) -> JobSpec:
        spec = unpack_job(self.blob)
        if self._change is not None:
            self._change(spec)
        return spec

    def _sources(self) -> SourceStage:
        if self._source_stage is None or self._cold:
            spec = self._new_spec()
            self._source_stage = SourceStage(spec, spec.environment(MemoryPageStore()))
        return self._source_stage

    def _stage(self, level: int, channel: int, state: ChannelState) -> StageChannel:
        stage = None if self._cold else self.stages.get((level, channel))
        if stage is None:
            spec = self._new_spec()
            snapshot = StageSnapshot.decode(state.snapshot)
            stage = StageChannel(spec, level, channel, spec.environment(state.store), snapshot)
            self.stages[(level, channel)] = stage
        return stage
