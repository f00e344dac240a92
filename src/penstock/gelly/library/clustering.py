"""Clustering coefficients: how many of the neighbours of a vertex are neighbours of each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.gelly import kernels
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.columns import positions
from penstock.gelly.dataset import DataSet
from penstock.gelly.library.neighbor_pairs import grouped, neighbors_of
from penstock.gelly.library.triangles import ENDS, triangles_of
from penstock.gelly.partitions import Bundle, Frame, Partitions

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = [
    "AverageClusteringCoefficient",
    "AverageClusteringResult",
    "GlobalClusteringCoefficient",
    "GlobalClusteringResult",
    "LocalClusteringCoefficient",
    "LocalClusteringResult",
]


class LocalClusteringResult(NamedTuple):
    """A vertex, the number of its neighbours, and the number of its triangles."""

    vertex_id: Any
    degree: int
    triangle_count: int

    def get_local_clustering_coefficient_score(self) -> float:
        """The share of pairs of neighbours that have an edge; NaN without pairs."""
        pairs = self.degree * (self.degree - 1) // 2
        return self.triangle_count / pairs if pairs else math.nan


class AverageClusteringResult(NamedTuple):
    """The number of vertices with at least two neighbours, and the average of their scores."""

    vertex_count: int
    average_clustering_coefficient: float


class GlobalClusteringResult(NamedTuple):
    """The number of triplets (pairs of neighbours of a vertex), and of those in triangles."""

    triplet_count: int
    closed_triplet_count: int

    def get_global_clustering_coefficient_score(self) -> float:
        """The share of triplets that are in triangles; NaN without triplets."""
        return self.closed_triplet_count / self.triplet_count if self.triplet_count else math.nan


class LocalClusteringCoefficient(GraphAlgorithm):
    """Computes the degree and the triangles of each vertex with edges. Ignores directions, loops and repeated edges."""

    def run(self, graph: Graph) -> DataSet[LocalClusteringResult]:
        """Return the results of all vertices."""
        return DataSet(graph.env, _counts(graph), "counts", ("id", "degree", "triangles"), LocalClusteringResult)


class AverageClusteringCoefficient(GraphAlgorithm):
    """Computes the average of the local clustering coefficients of all vertices with at least two neighbours."""

    def run(self, graph: Graph) -> AverageClusteringResult:
        """Return the average."""
        count, total, _, _ = _totals(graph)
        return AverageClusteringResult(int(count), total / count if count else math.nan)


class GlobalClusteringCoefficient(GraphAlgorithm):
    """Computes the share of all triplets of the graph that are in triangles."""

    def run(self, graph: Graph) -> GlobalClusteringResult:
        """Return the numbers of triplets."""
        _, _, triplets, closed = _totals(graph)
        return GlobalClusteringResult(int(triplets), int(closed))


def _counts(graph: Graph) -> Partitions:
    """Return tables ``counts(id, degree, triangles)``."""
    engine, count = graph.env.engine, graph.env.get_parallelism()
    neighbors = neighbors_of(graph)
    corners = engine.exchange(partial(_corners, count), [triangles_of(graph, neighbors)])
    return engine.narrow(_counted, [neighbors, corners])


def _corners(count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    if "triangles" in bundle:
        for name in ENDS:
            found = bundle["triangles"].column(name).value_counts()
            table = pa.table({"id": found.field("values"), "count": found.field("counts")})
            yield from kernels.send("corners", table, "id", count)


def _counted(channel: int, neighbors: Bundle, corners: Bundle) -> Iterator[tuple[str, Any]]:
    if "neighbors" not in neighbors:
        return
    ids, _, starts = grouped(neighbors)
    triangles: Any = np.zeros(len(ids), dtype=np.int64)
    if "corners" in corners:
        table = corners["corners"]
        np.add.at(triangles, positions(table.column("id"), ids), table.column("count").to_numpy())
    yield "counts", pa.table({"id": ids, "degree": pa.array(np.diff(starts)), "triangles": pa.array(triangles)})


def _totals(graph: Graph) -> tuple[float, float, float, float]:
    """For vertices with pairs of neighbours, return their number, and the sums of scores, pairs and triangles."""
    tables = graph.env.engine.narrow(_total, [_counts(graph)]).collect("total")
    sums = [sum(column) for column in zip(*[table.column("total").to_pylist() for table in tables], strict=True)]
    return (sums[0], sums[1], sums[2], sums[3]) if sums else (0.0, 0.0, 0.0, 0.0)


def _total(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "counts" in bundle:
        degree, triangles = (bundle["counts"].column(name).to_numpy() for name in ("degree", "triangles"))
        pairs = degree * (degree - 1) // 2
        scores = (triangles / np.maximum(pairs, 1))[pairs > 0]
        yield (
            "total",
            pa.table({"total": [float(len(scores)), scores.sum(), float(pairs.sum()), float(triangles.sum())]}),
        )
