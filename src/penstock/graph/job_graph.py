"""The job graph: operators chained into tasks, tasks on levels, and exchanges between them.

The level of a task is the largest number of exchanges on a path from a source. One stage of the engine hosts all tasks
of a level, so any acyclic graph becomes a chain of stages.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.graph.settings import JobSettings
from penstock.graph.stream_graph import StreamEdge, StreamGraph, StreamGraphGenerator, StreamNode
from penstock.graph.transformation import Transformation
from penstock.runtime.exchange.partitioner import ForwardPartitioner
from penstock.runtime.operators.operator import ChainingStrategy, JobInfo
from penstock.runtime.plan.code_fingerprint import fingerprint
from penstock.runtime.plan.job_vertex import ChainedOperator, ChainLink, JobEdge, JobVertex
from penstock.runtime.savepoint.restore import RestorePlan
from penstock.runtime.source.frame_source import FrameSource
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.log_settings import LogSettings
from penstock.runtime.task.union_states import UnionStart

# A chain is nested calls, two for each operator, and Python allows only some hundred of them.
_LONGEST_CHAIN = 150


@dataclass(slots=True)
class JobGraph:
    """The graph that an executor runs."""

    name: str
    vertices: list[JobVertex]
    edges: list[JobEdge]
    settings: JobSettings
    types: dict[str, TypeInformation | None] = field(default_factory=dict)
    frames: dict[int, Any] = field(default_factory=dict)  # source vertices that read DataFrames

    @property
    def channels(self) -> int:
        """The number of channels of every stage: the largest parallelism after an exchange."""
        return max((vertex.parallelism for vertex in self.vertices if vertex.level > 0), default=1)

    @property
    def levels(self) -> int:
        """The number of stages after the source stage."""
        return max((vertex.level for vertex in self.vertices), default=0)

    @property
    def source_vertices(self) -> list[JobVertex]:
        """The vertices of level 0."""
        return [vertex for vertex in self.vertices if vertex.level == 0]

    @property
    def bounded(self) -> bool:
        """Whether all sources end."""
        return all(vertex.source_bounded for vertex in self.source_vertices)

    @property
    def external_sources(self) -> dict[int, bool]:
        """Source vertices that read DataFrames, and whether they are bounded."""
        return {vertex_id: not frame.isStreaming for vertex_id, frame in self.frames.items()}

    @property
    def runs_as_batch(self) -> bool:
        """Whether the mode is BATCH, or AUTOMATIC with only bounded sources."""
        mode = self.settings.runtime_mode
        if mode == "BATCH" and not self.bounded:
            names = ", ".join(f"'{vertex.name}'" for vertex in self.source_vertices if not vertex.source_bounded)
            raise InvalidProgramError(f"BATCH mode needs bounded sources, but {names} never ends: use STREAMING mode")
        return mode == "BATCH" or (mode == "AUTOMATIC" and self.bounded)


class JobGraphGenerator:
    """Chains the operators of a stream graph."""

    def __init__(self, graph: StreamGraph, settings: JobSettings) -> None:
        self._graph = graph
        self._settings = settings
        self._ids = operator_ids(graph)
        self._vertex_of: dict[int, JobVertex] = {}
        self._position: dict[int, int] = {}
        self._depth: dict[int, int] = {}

    def generate(self) -> JobGraph:
        """Build the job graph."""
        if not self._graph.nodes:
            raise InvalidProgramError("the job has no sinks: add a sink (print(), sink_to(), ...) before execute()")
        edges: list[JobEdge] = []
        vertices: list[JobVertex] = []
        for node in self._graph.nodes:  # predecessors first
            chained_to = self._chain_partner(node)
            if chained_to is None:
                vertices.append(self._new_vertex(node, len(vertices)))
            else:
                self._append(node, chained_to)
        for vertex in vertices:
            vertex.name = " -> ".join(operator.name for operator in vertex.operators)
        for node in self._graph.nodes:
            for edge in node.inputs:
                if self._vertex_of[edge.source.id] is not self._vertex_of[node.id]:
                    edges.append(self._exchange(edge, len(edges)))
        _assign_levels(vertices, edges)
        _find_alignments(vertices, edges)
        types = {self._ids[node.id]: node.output_type for node in self._graph.nodes}
        frames = {
            self._vertex_of[node.id].id: node.source.frame for node in self._graph.sources if _is_dataframe(node.source)
        }
        return JobGraph(self._settings.job_name, vertices, edges, self._settings, types, frames)

    def _chain_partner(self, node: StreamNode) -> StreamEdge | None:
        if not self._settings.chaining_enabled or len(node.inputs) != 1:
            return None
        edge = node.inputs[0]
        upstream, vertex = edge.source, self._vertex_of[edge.source.id]
        stateful = node.operator is not None and (node.operator.stateful or node.operator.keyed)
        if vertex.operators[0].source is not None and (stateful or _reads_a_clock(node, vertex)):
            return None  # the source stage keeps no state, and its clocks restart with every batch
        direct = isinstance(edge.partitioner, ForwardPartitioner) and upstream.parallelism == node.parallelism
        can_chain = (
            (direct or (edge.spread and len(upstream.outputs) == 1))
            and node.chaining is ChainingStrategy.ALWAYS
            and upstream.chaining is not ChainingStrategy.NEVER
            and upstream.slot_sharing_group == node.slot_sharing_group
            and self._depth[upstream.id] < _LONGEST_CHAIN
        )
        return edge if can_chain else None

    def _new_vertex(self, node: StreamNode, vertex_id: int) -> JobVertex:
        vertex = JobVertex(
            id=vertex_id,
            name=node.name,
            parallelism=node.parallelism,
            max_parallelism=node.max_parallelism,
            operators=[self._chained(node)],
            source_bounded=node.kind != "source" or _is_bounded(node.source),
        )
        self._vertex_of[node.id] = vertex
        self._position[node.id] = 0
        self._depth[node.id] = 1
        return vertex

    def _append(self, node: StreamNode, edge: StreamEdge) -> None:
        vertex = self._vertex_of[edge.source.id]
        if edge.spread:
            vertex.spread, vertex.parallelism, vertex.max_parallelism = True, node.parallelism, node.max_parallelism
        position = len(vertex.operators)
        vertex.operators.append(self._chained(node))
        vertex.operators[self._position[edge.source.id]].links.append(ChainLink(position, edge.tag_id))
        self._vertex_of[node.id] = vertex
        self._position[node.id] = position
        self._depth[node.id] = self._depth[edge.source.id] + 1

    def _chained(self, node: StreamNode) -> ChainedOperator:
        source = node.source
        if _is_dataframe(source):
            source = FrameSource(source.to_records)
        return ChainedOperator(
            operator_id=self._ids[node.id],
            name=node.name,
            operator=node.operator,
            source=source,
            uid=node.uid,
            max_parallelism=node.max_parallelism,
            explicit_max_parallelism=node.explicit_max_parallelism,
        )

    def _exchange(self, edge: StreamEdge, edge_id: int) -> JobEdge:
        source, target = self._vertex_of[edge.source.id], self._vertex_of[edge.target.id]
        job_edge = JobEdge(
            id=edge_id,
            source=source.id,
            source_position=self._position[edge.source.id],
            tag_id=edge.tag_id,
            target=target.id,
            input_index=edge.input_index,
            partitioner=edge.partitioner,
            senders=source.parallelism,
            receivers=target.parallelism,
            max_parallelism=target.max_parallelism,
            target_name=edge.target.name,
        )
        source.outputs.append(edge_id)
        target.inputs.append(edge_id)
        return job_edge


def _reads_a_clock(node: StreamNode, vertex: JobVertex) -> bool:
    """Whether a chained operator exposes the watermarks that are emitted before it in the source stage to user code."""
    if node.operator is None or not node.operator.reads_watermarks:
        return False
    in_source = getattr(vertex.operators[0].source, "makes_watermarks", False)  # a DataFrame is not a Source
    return in_source or any(o.operator is not None and o.operator.makes_watermarks for o in vertex.operators)


def _assign_levels(vertices: list[JobVertex], edges: list[JobEdge]) -> None:
    for vertex in vertices:  # predecessors first, so one pass is enough
        for edge_id in vertex.inputs:
            vertex.level = max(vertex.level, vertices[edges[edge_id].source].level + 1)
    for edge in edges:
        edge.target_level = vertices[edge.target].level


def _find_alignments(vertices: list[JobVertex], edges: list[JobEdge]) -> None:
    """Set the alignment of sources, from the strategy in their chain or from a custom generator after them."""
    for vertex in vertices:
        if not vertex.is_source:
            continue
        behind = [vertices[edges[edge_id].target].operators[0] for edge_id in vertex.outputs]
        generators = [chained for chained in behind if chained.operator is not None and chained.operator.per_split]
        for chained in (*vertex.operators, *generators):
            strategy = getattr(chained.operator, "strategy", None)
            if isinstance(strategy, WatermarkStrategy) and strategy.alignment is not None:
                vertex.alignment, vertex.declares_idleness = strategy.alignment, strategy.idle_timeout is not None
                break


def _is_dataframe(source: Any) -> bool:
    return hasattr(source, "frame")


def _is_bounded(source: Any) -> bool:
    if _is_dataframe(source):
        return not source.frame.isStreaming
    return bool(source.is_bounded)


def operator_ids(graph: StreamGraph) -> dict[int, str]:
    """Return stable ids: from the uid if set, otherwise from the operator's place in the topology.

    As in Flink, a generated id depends on the ids of the operator's predecessors, so adding an operator upstream
    changes it (rule 3.10): set uids on stateful operators.
    """
    ids: dict[int, str] = {}
    used: set[str] = set()
    for node in graph.nodes:
        if node.uid_hash is not None:
            ids[node.id] = node.uid_hash
            continue
        if node.uid is not None:
            text = _UID.format(node.uid)
        else:
            upstream = ",".join(f"{ids[e.source.id]}:{e.tag_id}:{e.input_index}" for e in node.inputs)
            operator = type(node.operator).__name__ if node.operator is not None else type(node.source).__name__
            text = f"{operator}|{len(node.inputs)}|{upstream}"
        digest = _digest(text)
        twin = 0
        while digest in used:  # parallel branches with the same shape
            twin += 1
            digest = _digest(f"{text}#{twin}")
        used.add(digest)
        ids[node.id] = digest
    return ids


_UID = "uid:{}"


def operator_id_of(uid: str) -> str:
    """Return the id of an operator with this uid."""
    return _digest(_UID.format(uid))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def translate(sinks: list[Transformation], settings: JobSettings) -> JobGraph:
    """Translate transformations to a job graph."""
    return JobGraphGenerator(StreamGraphGenerator(sinks, settings).generate(), settings).generate()


def job_spec(
    graph: JobGraph,
    job_id: str,
    attempt: int,
    *,
    batch: bool,
    restore: RestorePlan | None = None,
    unions: UnionStart | None = None,
    skip_key_check: bool = False,
    epoch: int = 0,
    stepped: bool = False,
) -> JobSpec:
    """Return the job as the workers receive it."""
    settings = graph.settings
    info = JobInfo(
        job_id=job_id,
        job_name=settings.job_name,
        attempt=attempt,
        epoch=epoch,
        parameters=dict(settings.job_parameters),
        cached_files=dict(settings.cached_files),
        stepped=stepped,
    )
    return JobSpec(
        info=info,
        vertices=tuple(graph.vertices),
        edges={edge.id: edge for edge in graph.edges},
        channels=graph.channels,
        levels=graph.levels,
        batch_execution=batch,
        memory_budget=settings.state_memory_budget,
        external_sources=frozenset(graph.frames),
        restore=restore,
        unions=unions or UnionStart(),
        code_fingerprint=fingerprint(graph.vertices),
        skip_key_check=skip_key_check,
        logging=LogSettings.here(),
    )
