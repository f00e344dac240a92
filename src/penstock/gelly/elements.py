"""The records of a graph: vertices, edges and derived records."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

__all__ = ["BipartiteEdge", "Edge", "EdgeDirection", "Neighbor", "Projection", "Triplet", "Vertex"]


class Vertex(NamedTuple):
    """A vertex: its id, an integer or a string, and its value."""

    id: Any
    value: Any = None


class Edge(NamedTuple):
    """A directed edge from ``source`` to ``target``."""

    source: Any
    target: Any
    value: Any = None

    def reverse(self) -> Edge:
        """Return the edge in the other direction."""
        return Edge(self.target, self.source, self.value)


class Triplet(NamedTuple):
    """An edge with the values of its two vertices."""

    source: Any
    target: Any
    source_value: Any
    target_value: Any
    edge_value: Any


class Neighbor(NamedTuple):
    """The input of a gather function: the value of the neighbour, and the value of the edge to it."""

    neighbor_value: Any
    edge_value: Any


class BipartiteEdge(NamedTuple):
    """An edge between a top and a bottom vertex."""

    top: Any
    bottom: Any
    value: Any = None


class Projection(NamedTuple):
    """The value of an edge of a full projection: the connecting vertex, and all values on the path."""

    connecting_id: Any
    connecting_value: Any
    source_value: Any
    target_value: Any
    source_edge_value: Any
    target_edge_value: Any


class EdgeDirection(Enum):
    """The edges of a vertex to use: incoming, outgoing, or both."""

    IN = "in"
    OUT = "out"
    ALL = "all"
