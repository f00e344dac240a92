"""Bipartite graphs: edges lead from top vertices to bottom vertices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.gelly import kernels
from penstock.gelly.columns import decode, encode, groups_of
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import BipartiteEdge, Projection, Vertex
from penstock.gelly.environment import ExecutionEnvironment
from penstock.gelly.graph import Graph
from penstock.gelly.kernels import EDGE, VERTEX
from penstock.gelly.partitions import Bundle, Frame, Partitions

__all__ = ["BipartiteGraph"]


class BipartiteGraph:
    """Top vertices, bottom vertices, and edges from top to bottom.

    A top and a bottom vertex may have the same id.

    >>> env = ExecutionEnvironment.create_collections_environment()
    >>> people, clubs = [Vertex(1, "Ada"), Vertex(2, "Grace")], [Vertex(7, "chess")]
    >>> graph = BipartiteGraph.from_collection(people, clubs, [BipartiteEdge(1, 7), BipartiteEdge(2, 7)], env)
    >>> sorted(graph.projection_top_simple().get_edge_ids().collect())
    [(1, 2), (2, 1)]
    """

    def __init__(self, env: ExecutionEnvironment, top: Partitions, bottom: Partitions, edges: Partitions) -> None:
        self.env = env
        self._top = top
        self._bottom = bottom
        self._edges = edges  # (source, target, value): from top to bottom, in the partition of the top vertex

    @staticmethod
    def from_collection(
        top_vertices: Any, bottom_vertices: Any, edges: Any, env: ExecutionEnvironment | None = None
    ) -> BipartiteGraph:
        """Create a graph from top and bottom vertices ``(id, value)`` and edges ``(top, bottom, value)``.

        All inputs may be collections, Arrow tables, DataFrames, bounded streams, tables or data sets.
        """
        env = env or ExecutionEnvironment.get_execution_environment()
        top = Graph.from_collection(top_vertices, edges, env)
        bottom = Graph.from_collection(bottom_vertices, [], env)
        return BipartiteGraph(env, top.vertex_partitions, bottom.vertex_partitions, top.edge_partitions)

    def get_top_vertices(self) -> DataSet[Vertex]:
        """The top vertices."""
        return DataSet(self.env, self._top, "vertices", VERTEX, Vertex)

    def get_bottom_vertices(self) -> DataSet[Vertex]:
        """The bottom vertices."""
        return DataSet(self.env, self._bottom, "vertices", VERTEX, Vertex)

    def get_edges(self) -> DataSet[BipartiteEdge]:
        """The edges."""
        return DataSet(self.env, self._edges, "edges", EDGE, BipartiteEdge)

    def projection_top_simple(self) -> Graph:
        """Connect top vertices that share a bottom vertex. Edge values are pairs of the original edge values.

        There is one edge per shared vertex and direction.
        """
        by_bottom = self._exchange(partial(kernels.moved, "target"), self._edges)
        return Graph(self.env, self._top, self._exchange(partial(_simple, "target", "source"), by_bottom))

    def projection_bottom_simple(self) -> Graph:
        """Connect bottom vertices that share a top vertex."""
        return Graph(self.env, self._bottom, self._exchange(partial(_simple, "source", "target"), self._edges))

    def projection_top_full(self) -> Graph:
        """Like `projection_top_simple`, with a `Projection` of all values on the path as edge value."""
        edges = self._exchange(partial(_full, "target", "source"), self._with_values())
        return Graph(self.env, self._top, edges)

    def projection_bottom_full(self) -> Graph:
        """Like `projection_bottom_simple`, with a `Projection` as edge value."""
        by_top = self._exchange(partial(_moved_triplets, "source"), self._with_values())
        return Graph(self.env, self._bottom, self._exchange(partial(_full, "source", "target"), by_top))

    def _with_values(self) -> Partitions:
        """Return the edges with the values of both vertices, in the partition of the bottom vertex."""
        half = self._exchange(partial(kernels.triplets, True), self._top, self._edges)
        return self._exchange(partial(kernels.triplets, False), self._bottom, half)

    def _exchange(self, kernel: Callable[..., Any], *inputs: Partitions) -> Partitions:
        return self.env.engine.exchange(partial(kernel, self.env.get_parallelism()), inputs)


def _moved_triplets(key: str, count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    if "triplets" in bundle:
        yield from kernels.send("triplets", bundle["triplets"], key, count)


def _simple(by: str, end: str, count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    if "edges" in bundle:
        for one, two in _meeting(bundle["edges"], by, (end, "value")):
            yield from _edge_frames([(a[0], b[0], (a[1], b[1])) for a, b in zip(one, two, strict=True)], count)


def _full(by: str, end: str, count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    if "triplets" not in bundle:
        return
    names = (end, by, f"{by}_value", f"{end}_value", "edge_value")
    for one, two in _meeting(bundle["triplets"], by, names):
        rows = [(a[0], b[0], Projection(a[1], a[2], a[3], b[3], a[4], b[4])) for a, b in zip(one, two, strict=True)]
        yield from _edge_frames(rows, count)


def _meeting(table: Any, by: str, names: tuple[str, ...]) -> Iterator[tuple[list[Any], list[Any]]]:
    """For each connecting vertex, yield all pairs of rows with different vertices at the other end."""
    _, order, starts = groups_of(table.column(by))
    rows = list(
        zip(*[decode(column) for column in table.take(pa.array(order)).select(list(names)).columns], strict=True)
    )
    bounds = starts.tolist()
    for start, end in itertools.pairwise(bounds):
        pairs = [(a, b) for a in rows[start:end] for b in rows[start:end] if a[0] != b[0]]
        if pairs:
            yield [a for a, _ in pairs], [b for _, b in pairs]


def _edge_frames(rows: list[tuple[Any, Any, Any]], count: int) -> Iterator[Frame]:
    columns = zip(EDGE, zip(*rows, strict=True), strict=True)
    yield from kernels.send(
        "edges", pa.table({name: encode(list(values)) for name, values in columns}), "source", count
    )
