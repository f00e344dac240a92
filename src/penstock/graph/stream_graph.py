"""The stream graph: one node per operator, with virtual transformations resolved to edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import (
    DataFrameSourceTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)
from penstock.runtime.exchange.partitioner import ForwardPartitioner, Partitioner, RebalancePartitioner
from penstock.runtime.operators.operator import ChainingStrategy, StreamOperator
from penstock.runtime.records.key_groups import check_parallelism, default_max_parallelism


@dataclass(eq=False, slots=True)
class StreamEdge:
    """A connection from an output of one node to an input of another."""

    source: StreamNode
    target: StreamNode
    input_index: int
    tag_id: str | None
    partitioner: Partitioner
    spread: bool = False
    """Whether the target's tasks can read the source's records themselves."""


@dataclass(eq=False, slots=True)
class StreamNode:
    """One operator, or a source."""

    id: int
    name: str
    kind: str  # "source", "operator" or "sink"
    parallelism: int
    max_parallelism: int
    explicit_max_parallelism: bool
    operator: StreamOperator | None
    source: Any
    chaining: ChainingStrategy
    slot_sharing_group: str | None
    uid: str | None
    uid_hash: str | None
    description: str
    output_type: TypeInformation | None
    inputs: list[StreamEdge] = field(default_factory=list)
    outputs: list[StreamEdge] = field(default_factory=list)


@dataclass(slots=True)
class StreamGraph:
    """All nodes, predecessors first."""

    nodes: list[StreamNode]

    @property
    def sources(self) -> list[StreamNode]:
        """The nodes without input."""
        return [node for node in self.nodes if node.kind == "source"]


@dataclass(frozen=True, slots=True)
class _Feed:
    """A node's output as seen through virtual transformations."""

    node: StreamNode
    tag_id: str | None = None
    partitioner: Partitioner | None = None


class StreamGraphGenerator:
    """Translates all transformations that the sinks need."""

    def __init__(self, sinks: list[Transformation], settings: JobSettings) -> None:
        self._sinks = sinks
        self._settings = settings
        self._nodes: dict[int, StreamNode] = {}
        self._feeds: dict[int, list[_Feed]] = {}

    def generate(self) -> StreamGraph:
        """Build the graph."""
        for sink in self._sinks:
            for transformation in _predecessors_first(sink):
                if transformation.id not in self._feeds:
                    self._feeds[transformation.id] = self._translate(transformation)
        self._check_uids()
        return StreamGraph(list(self._nodes.values()))

    def _translate(self, transformation: Transformation) -> list[_Feed]:
        match transformation:
            case UnionTransformation():
                return [feed for stream in transformation.streams for feed in self._feeds[stream.id]]
            case PartitionTransformation():
                return [
                    _Feed(feed.node, feed.tag_id, transformation.partitioner)
                    for feed in self._feeds[transformation.input.id]
                ]
            case SideOutputTransformation():
                return [_Feed(feed.node, transformation.tag_id) for feed in self._feeds[transformation.input.id]]
            case SourceTransformation():
                return [_Feed(self._add_node(transformation, "source", None, transformation.source))]
            case DataFrameSourceTransformation():
                return [_Feed(self._add_node(transformation, "source", None, transformation))]
            case OneInputTransformation() | TwoInputTransformation():
                kind = "sink" if isinstance(transformation, SinkTransformation) else "operator"
                node = self._add_node(transformation, kind, transformation.operator, None)
                for index, upstream in enumerate(transformation.inputs):
                    for feed in self._feeds[upstream.id]:
                        self._connect(feed, node, index)
                return [_Feed(node)]
        raise InvalidProgramError(f"cannot translate {type(transformation).__name__}")

    def _add_node(self, t: Transformation, kind: str, operator: StreamOperator | None, source: Any) -> StreamNode:
        parallelism = 1 if t.force_non_parallel else (t.parallelism or self._settings.parallelism)
        max_parallelism = t.max_parallelism or self._settings.max_parallelism
        if not max_parallelism or max_parallelism < 1:
            max_parallelism = default_max_parallelism(parallelism)
        check_parallelism(parallelism, max_parallelism)
        node = StreamNode(
            id=t.id,
            name=t.name,
            kind=kind,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            explicit_max_parallelism=bool(t.max_parallelism or self._settings.max_parallelism),
            operator=operator,
            source=source,
            chaining=t.chaining or (operator.chaining if operator else ChainingStrategy.HEAD),
            slot_sharing_group=t.slot_sharing_group,
            uid=t.uid,
            uid_hash=t.uid_hash,
            description=t.description or t.name,
            output_type=t.output_type,
        )
        self._nodes[t.id] = node
        return node

    def _connect(self, feed: _Feed, target: StreamNode, input_index: int) -> None:
        same = feed.node.parallelism == target.parallelism
        partitioner = feed.partitioner or (ForwardPartitioner() if same else RebalancePartitioner())
        if isinstance(partitioner, ForwardPartitioner) and not same:
            raise InvalidProgramError(
                f"forward() from '{feed.node.name}' (parallelism {feed.node.parallelism}) to '{target.name}' "
                f"(parallelism {target.parallelism}) "
                "needs the same parallelism on both sides: use rebalance() or rescale()"
            )
        spread = feed.partitioner is None and not same and _spreads(feed.node)
        edge = StreamEdge(feed.node, target, input_index, feed.tag_id, partitioner, spread)
        feed.node.outputs.append(edge)
        target.inputs.append(edge)

    def _check_uids(self) -> None:
        seen: dict[str, str] = {}
        for node in self._nodes.values():
            if node.uid is not None:
                if node.uid in seen:
                    raise InvalidProgramError(
                        f"operators '{seen[node.uid]}' and '{node.name}' "
                        f"have the same uid '{node.uid}': uids must be unique"
                    )
                seen[node.uid] = node.name


def _spreads(node: StreamNode) -> bool:
    return node.kind == "source" and node.parallelism == 1 and getattr(node.source, "spreads", False)


def _predecessors_first(sink: Transformation) -> list[Transformation]:
    """Return all transformations that a sink needs. Iterative, because programs may be long."""
    order: list[Transformation] = []
    seen: set[int] = set()
    stack: list[tuple[Transformation, bool]] = [(sink, False)]
    while stack:
        transformation, expanded = stack.pop()
        if expanded:
            order.append(transformation)
        elif transformation.id not in seen:
            seen.add(transformation.id)
            stack.append((transformation, True))
            stack.extend((upstream, False) for upstream in reversed(transformation.inputs))
    return order
