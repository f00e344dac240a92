"""Replays one checkpoint of a job in this process, with the same input, state and processing time.

The job is not affected. Sinks are replaced by observers, sources commit nothing, and the state of the tasks stays in
memory. An engine of the mini cluster runs the tasks, so that user code is an ordinary call away.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from penstock.cluster.replay_observers import Notes, ObservedOperator, Say, Watch, observe, time_text
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError, shorten
from penstock.graph.job_graph import JobGraph, job_spec
from penstock.runtime.checkpoint.checkpoint_coordinator import Batch
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.restore import RestorePlan
from penstock.runtime.source.received_source import ReceiverEnumerator
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.runtime.task.job_blob import pack_job
from penstock.testing.mini_engine import ChannelState, MiniEngine

__all__ = ["Replay", "ReplayedBatch", "Watch"]


@dataclass(frozen=True, slots=True)
class ReplayedBatch:
    """One checkpoint: the start and end of its input, and the state before it."""

    start: Offset
    end: Offset
    channels: dict[tuple[int, int], ChannelState]
    """By level and channel."""
    job_id: str
    """The job id for sinks and functions."""
    committed: bool = True
    restore: RestorePlan | None = None
    """The savepoint that the tasks restore in this batch, if it is the first one."""


class Replay:
    """Replays a batch and reports what happens.

    :param say: called with each line of output
    :param working_directory: where functions run; by default, the directory of this process
    """

    def __init__(
        self,
        graph: JobGraph,
        batch: ReplayedBatch,
        watch: Watch | None = None,
        say: Say = print,
        working_directory: str | None = None,
    ) -> None:
        if graph.frames:
            raise UnsupportedFeatureError(
                f"job '{graph.name}' reads DataFrames, which only Spark can read: its checkpoints cannot be replayed"
            )
        self._graph = graph
        self._batch = batch
        self._watch = watch or Watch()
        self._say = say
        self._working_directory = working_directory
        self._notes = Notes(say, self._watch)
        self._check_watch()

    def _check_watch(self) -> None:
        chained = [operator for vertex in self._graph.vertices for operator in vertex.operators]
        if self._watch.operator is not None and not any(self._notes.watches(each) for each in chained):
            known = ", ".join(f"'{each.uid or each.name}'" for each in chained if each.operator is not None)
            raise InvalidProgramError(
                f"job '{self._graph.name}' has no operator '{self._watch.operator}'; its operators are {known}"
            )
        if self._watch.key is not None:
            watched = [each.operator for each in chained if self._notes.watches(each)]
            if not any(operator is not None and operator.keyed for operator in watched):
                raise InvalidProgramError("--key needs --operator with the uid or name of an operator with keyed state")

    def run(self) -> None:
        """Read, process and report. Raise an error of user code."""
        batch = self._batch
        sources = SourceCoordinator(self._graph.source_vertices, initial=batch.start)
        spec = job_spec(self._graph, batch.job_id, 0, batch=False, restore=batch.restore, skip_key_check=True)
        engine = MiniEngine(
            pack_job(spec),
            batch.start,
            MemoryCheckpointStorage(),
            batch.channels,
            cold=False,
            working_directory=self._working_directory,
            change=lambda copy: observe(copy, self._notes),
        )
        with ExitStack() as stack:
            self._open(sources, stack)
            stack.callback(engine.close)
            header = sources.header(batch.end)
            header.closing = False
            assignments = sources.assignments(batch.start, batch.end)
            self._say(self._title())
            for work in assignments:
                for part in work.ranges:
                    reader = f"subtask {work.subtask} of source '{self._source_name(work.vertex)}'"
                    where = f"from {shorten(part.start)} to {shorten(part.end)}"
                    self._say(f"  {reader} reads split {part.split.split_id} {where}")
            engine.run(Batch(batch.start, batch.end, header, assignments))
            self._tell_key_states(engine)
        self._tell_counts()

    def _open(self, sources: SourceCoordinator, stack: ExitStack) -> None:
        for source in sources.sources:
            if isinstance(source.enumerator, ReceiverEnumerator):
                raise UnsupportedFeatureError(
                    f"source '{source.vertex.operators[0].name}' receives its records, which are removed when their "
                    "checkpoint completes: they cannot be read again"
                )
        stack.callback(sources.close)
        sources.start()

    def _title(self) -> str:
        end = self._batch.end
        kept = "committed" if self._batch.committed else "planned, not committed"
        return (
            f"checkpoint {end.checkpoint_id} of job '{self._graph.name}' ({kept}), "
            f"processing time {time_text(end.processing_time)}"
        )

    def _source_name(self, vertex_id: int) -> str:
        return next(vertex.operators[0].name for vertex in self._graph.vertices if vertex.id == vertex_id)

    def _tell_key_states(self, engine: MiniEngine) -> None:
        """Report the state of the key at the end of the batch."""
        if self._watch.key is None:
            return
        found = False
        for stage in engine.stages.values():
            for operator in stage.operators:
                if isinstance(operator, ObservedOperator) and self._notes.watches(operator.replay_of):
                    found = operator.replay_tell_state("after") or found
        if not found:
            self._say(f"  after  no state of key {self._watch.key}")

    def _tell_counts(self) -> None:
        rows = []
        for each in self._notes.counts.values():
            watermark = "" if each.watermark is None else time_text(each.watermark)
            rows.append((each.name, str(each.records_in), str(each.records_out), watermark))
        rows.insert(0, ("OPERATOR", "IN", "OUT", "WATERMARK"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for name, records_in, records_out, watermark in rows:
            line = f"{name:<{widths[0]}}  {records_in:>{widths[1]}}  {records_out:>{widths[2]}}  {watermark}"
            self._say(line.rstrip())
