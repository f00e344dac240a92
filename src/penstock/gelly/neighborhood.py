"""Functions on the neighbourhood of a vertex: `group_reduce_on_edges` and `group_reduce_on_neighbors`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.gelly.columns import decode, encode, groups_of
from penstock.gelly.elements import Edge, Vertex
from penstock.gelly.functions import failed
from penstock.gelly.kernels import vertices_in
from penstock.gelly.partitions import Bundle

__all__ = [
    "EdgesFunction",
    "EdgesFunctionWithVertexValue",
    "NeighborsFunction",
    "NeighborsFunctionWithVertexValue",
]


class EdgesFunction(ABC):
    """A function of the edges of a vertex. Called once for each vertex that has such edges."""

    @abstractmethod
    def iterate_edges(self, edges: Iterable[tuple[Any, Edge]]) -> Iterable[Any]:
        """Yield results for the pairs of the vertex id and an edge."""


class EdgesFunctionWithVertexValue(ABC):
    """A function of a vertex and its edges. Called once for each vertex, even without edges."""

    @abstractmethod
    def iterate_edges(self, vertex: Vertex, edges: Iterable[Edge]) -> Iterable[Any]:
        """Yield results for a vertex and its edges."""


class NeighborsFunction(ABC):
    """A function of the neighbours of a vertex. Called once for each vertex that has such neighbours."""

    @abstractmethod
    def iterate_neighbors(self, neighbors: Iterable[tuple[Any, Edge, Vertex]]) -> Iterable[Any]:
        """Yield results for the triples of the vertex id, an edge, and the neighbour at its end."""


class NeighborsFunctionWithVertexValue(ABC):
    """A function of a vertex and its neighbours. Called once for each vertex that has such neighbours."""

    @abstractmethod
    def iterate_neighbors(self, vertex: Vertex, neighbors: Iterable[tuple[Edge, Vertex]]) -> Iterable[Any]:
        """Yield results for a vertex and the pairs of an edge and the neighbour at its end."""


def edge_groups(function: Any, channel: int, vertices: Bundle, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    """Return the results of a function on edges."""
    yield from _results("group_reduce_on_edges", _edge_results(function, vertices, bundle))


def neighbor_groups(function: Any, channel: int, vertices: Bundle, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    """Return the results of a function on neighbours."""
    yield from _results("group_reduce_on_neighbors", _neighbor_results(function, vertices, bundle))


def _results(name: str, calls: Iterator[tuple[Any, Any]]) -> Iterator[tuple[str, Any]]:
    found: list[Any] = []
    for vertex, results in calls:
        try:
            found.extend(results())
        except Exception as error:
            failed(name, error, vertex)
    yield "results", pa.table({"value": encode(found)})


def _groups(bundle: Bundle) -> dict[Any, list[tuple[Any, ...]]]:
    """Return the incident edges of each vertex, as rows."""
    if "incident" not in bundle:
        return {}
    table = bundle["incident"]
    ids, order, starts = groups_of(table.column("vertex"))
    rows = list(zip(*[decode(column) for column in table.take(pa.array(order)).columns], strict=True))
    bounds = zip(decode(ids), starts.tolist(), starts[1:].tolist(), strict=False)
    return {vertex: rows[start:end] for vertex, start, end in bounds}


def _edge(row: tuple[Any, ...]) -> Edge:
    vertex, neighbor, value, outgoing = row[:4]
    return Edge(vertex, neighbor, value) if outgoing else Edge(neighbor, vertex, value)


def _edge_results(function: Any, vertices: Bundle, bundle: Bundle) -> Iterator[tuple[Any, Any]]:
    groups = _groups(bundle)
    if isinstance(function, EdgesFunctionWithVertexValue):
        for vertex in _vertices(vertices, None):
            edges = [_edge(row) for row in groups.get(vertex.id, [])]
            yield vertex, lambda vertex=vertex, edges=edges: function.iterate_edges(vertex, edges)
        return
    iterate = function.iterate_edges if isinstance(function, EdgesFunction) else function
    for vertex, rows in groups.items():
        yield vertex, lambda vertex=vertex, rows=rows: iterate([(vertex, _edge(row)) for row in rows])


def _neighbor_results(function: Any, vertices: Bundle, bundle: Bundle) -> Iterator[tuple[Any, Any]]:
    groups = _groups(bundle)
    if isinstance(function, NeighborsFunctionWithVertexValue):
        for vertex in _vertices(vertices, set(groups)):
            pairs = [(_edge(row), Vertex(row[1], row[4])) for row in groups[vertex.id]]
            yield vertex, lambda vertex=vertex, pairs=pairs: function.iterate_neighbors(vertex, pairs)
        return
    iterate = function.iterate_neighbors if isinstance(function, NeighborsFunction) else function
    for vertex, rows in groups.items():
        triples = [(vertex, _edge(row), Vertex(row[1], row[4])) for row in rows]
        yield vertex, lambda triples=triples: iterate(triples)


def _vertices(bundle: Bundle, among: set[Any] | None) -> Iterator[Vertex]:
    table = vertices_in(bundle)
    for number, value in zip(decode(table.column("id")), decode(table.column("value")), strict=True):
        if among is None or number in among:
            yield Vertex(number, value)
