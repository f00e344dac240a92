"""Counts and degrees of a graph."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.library.neighbor_pairs import FROM, TO, grouped, neighbors_of
from penstock.gelly.partitions import Bundle

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["VertexMetrics", "VertexMetricsResult"]


@dataclass(frozen=True, slots=True)
class VertexMetricsResult:
    """The metrics of a graph. A triplet is a pair of neighbours of one vertex."""

    number_of_vertices: int
    number_of_unidirectional_edges: int
    number_of_bidirectional_edges: int
    number_of_triplets: int
    maximum_degree: int
    maximum_out_degree: int
    maximum_in_degree: int
    maximum_triplets: int

    @property
    def number_of_edges(self) -> int:
        """All edges. Bidirectional edges count twice."""
        return self.number_of_unidirectional_edges + 2 * self.number_of_bidirectional_edges

    def get_average_degree(self) -> float:
        """Edges per vertex; NaN without vertices."""
        return self.number_of_edges / self.number_of_vertices if self.number_of_vertices else math.nan

    def get_density(self) -> float:
        """The share of possible edges that exist; NaN with fewer than two vertices."""
        possible = self.number_of_vertices * (self.number_of_vertices - 1)
        return self.number_of_edges / possible if possible else math.nan


class VertexMetrics(GraphAlgorithm):
    """Counts vertices, edges and triplets, and finds the maximum degrees. Ignores loops and repeated edges."""

    def __init__(self) -> None:
        self._include_zero_degree_vertices = False

    def set_include_zero_degree_vertices(self, include: bool) -> VertexMetrics:
        """Set whether vertices without edges count. By default they do not."""
        self._include_zero_degree_vertices = include
        return self

    def run(self, graph: Graph) -> VertexMetricsResult:
        """Return the metrics."""
        found = graph.env.engine.narrow(_metrics, [neighbors_of(graph)]).collect("metrics")
        sums, maxima = [0] * 4, [0] * 4
        for table in found:
            sums = [one + two for one, two in zip(sums, table.column("sum").to_pylist(), strict=True)]
            maxima = [max(pair) for pair in zip(maxima, table.column("maximum").to_pylist(), strict=True)]
        vertices = graph.number_of_vertices() if self._include_zero_degree_vertices else sums[0]
        # Both ends have counted a bidirectional edge.
        return VertexMetricsResult(vertices, sums[1], sums[2] // 2, sums[3], *maxima)


def _metrics(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "neighbors" not in bundle:
        return
    ids, table, starts = grouped(bundle)
    code = table.column("code").to_numpy()
    group: Any = np.repeat(np.arange(len(ids)), np.diff(starts))
    degree = np.diff(starts)
    outgoing, incoming = (np.bincount(group[code & bit > 0], minlength=len(ids)) for bit in (TO, FROM))
    triplets = degree * (degree - 1) // 2
    sums = [len(ids), (code == TO).sum(), (code == TO | FROM).sum(), triplets.sum()]
    maxima = [each.max() for each in (degree, outgoing, incoming, triplets)]
    yield "metrics", pa.table({"sum": list(map(int, sums)), "maximum": list(map(int, maxima))})
