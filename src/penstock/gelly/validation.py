"""Checks of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.gelly import kernels
from penstock.gelly.columns import positions
from penstock.gelly.partitions import Bundle

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["GraphValidator", "InvalidVertexIdsValidator"]


class GraphValidator(ABC):
    """A check of a graph."""

    @abstractmethod
    def validate(self, graph: Graph) -> bool:
        """Whether the graph is valid."""


class InvalidVertexIdsValidator(GraphValidator):
    """Whether all edges refer to vertices of the graph.

    >>> from penstock.gelly import Edge, ExecutionEnvironment, Graph, Vertex
    >>> env = ExecutionEnvironment.create_collections_environment()
    >>> graph = Graph.from_collection([Vertex(1)], [Edge(1, 2)], env)
    >>> graph.validate(InvalidVertexIdsValidator())
    False
    """

    def validate(self, graph: Graph) -> bool:
        """Whether no edge refers to a missing vertex."""
        return not self.missing_ids(graph)

    def missing_ids(self, graph: Graph, limit: int = 10) -> list[Any]:
        """Return ids that edges refer to but no vertex has, at most `limit` of them."""
        engine = graph.env.engine
        ids = engine.exchange(partial(kernels.endpoints, engine.parallelism), [graph.edge_partitions])
        missing = engine.narrow(partial(_missing, limit), [graph.vertex_partitions, ids])
        found = {value for table in missing.collect("missing") for value in table.column("id").to_pylist()}
        return sorted(found)[:limit]


def _missing(limit: int, channel: int, vertices: Bundle, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "ids" in bundle:
        ids = bundle["ids"].column("id")
        there = positions(ids, kernels.vertices_in(vertices).column("id")) >= 0
        yield "missing", pa.table({"id": ids}).filter(pa.array(~there)).slice(0, limit)
