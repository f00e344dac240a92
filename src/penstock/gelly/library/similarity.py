"""Similarity of vertices by the neighbours they share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.gelly import kernels
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.columns import positions
from penstock.gelly.dataset import DataSet
from penstock.gelly.library.neighbor_pairs import grouped, neighbors_of, pairs_in, row_degrees
from penstock.gelly.partitions import Bundle, Frame, Partitions

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["AdamicAdar", "AdamicAdarResult", "JaccardIndex", "JaccardIndexResult"]


class JaccardIndexResult(NamedTuple):
    """Two vertices, the number of their common neighbours, and the number of all their neighbours."""

    vertex_id_0: Any
    vertex_id_1: Any
    shared_neighbor_count: int
    distinct_neighbor_count: int

    def get_jaccard_index_score(self) -> float:
        """The share of neighbours that both have."""
        return self.shared_neighbor_count / self.distinct_neighbor_count


class AdamicAdarResult(NamedTuple):
    """Two vertices and their score."""

    vertex_id_0: Any
    vertex_id_1: Any
    adamic_adar_score: float


class JaccardIndex(GraphAlgorithm):
    """Computes common neighbours divided by all neighbours, for all pairs of vertices with a common neighbour.

    Directions, loops and repeated edges are ignored.
    """

    def __init__(self) -> None:
        self._minimum = 0.0
        self._maximum = 2.0

    def set_minimum_score(self, numerator: int, denominator: int) -> Self:
        """Leave out scores below this fraction."""
        self._minimum = numerator / denominator
        return self

    def set_maximum_score(self, numerator: int, denominator: int) -> Self:
        """Leave out scores of at least this fraction."""
        self._maximum = numerator / denominator
        return self

    def run(self, graph: Graph) -> DataSet[JaccardIndexResult]:
        """Return the results for all pairs."""
        found = graph.env.engine.narrow(partial(_jaccard, self._minimum, self._maximum), [_pairs_of(graph)])
        return DataSet(graph.env, found, "scores", ("one", "two", "shared", "distinct"), JaccardIndexResult)


class AdamicAdar(GraphAlgorithm):
    """Computes a sum over the common neighbours of each pair of vertices, in which those of low degree count more.

    Directions, loops and repeated edges are ignored.
    """

    def __init__(self) -> None:
        self._minimum_score = 0.0
        self._minimum_ratio = 0.0

    def set_minimum_score(self, score: float) -> Self:
        """Leave out scores below this one."""
        self._minimum_score = score
        return self

    def set_minimum_ratio(self, ratio: float) -> Self:
        """Leave out scores below the average score times this ratio."""
        self._minimum_ratio = ratio
        return self

    def run(self, graph: Graph) -> DataSet[AdamicAdarResult]:
        """Return the results for all pairs."""
        engine = graph.env.engine
        pairs = _pairs_of(graph)
        minimum = self._minimum_score
        if self._minimum_ratio:
            sums = [table.to_pylist()[0] for table in engine.narrow(_sums, [pairs]).collect("sums")]
            count = sum(each["count"] for each in sums)
            average = sum(each["score"] for each in sums) / count if count else 0.0
            minimum = max(minimum, self._minimum_ratio * average)
        found = engine.narrow(partial(_adamic_adar, minimum), [pairs])
        return DataSet(graph.env, found, "scores", ("one", "two", "score"), AdamicAdarResult)


def _pairs_of(graph: Graph) -> Partitions:
    """Return tables ``pairs(one, two, degrees, weight)``: a row for each pair of vertices and each common neighbour."""
    engine, count = graph.env.engine, graph.env.get_parallelism()
    return engine.exchange(partial(_pairs, count), [neighbors_of(graph)])


def _pairs(count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    if "neighbors" not in bundle:
        return
    _, table, starts = grouped(bundle)
    weight = 1 / np.log(np.maximum(row_degrees(starts), 2))
    degree = table.column("neighbor_degree").to_numpy()
    for one, two in pairs_in(starts):
        left, right = (table.column("neighbor").take(pa.array(rows)) for rows in (one, two))
        swap = pc.less(right, left).to_numpy()
        low, high = pa.array(np.where(swap, two, one)), pa.array(np.where(swap, one, two))
        columns = {
            "one": table.column("neighbor").take(low),
            "two": table.column("neighbor").take(high),
            "degrees": pa.array(degree[one] + degree[two]),
            "weight": pa.array(weight[one]),
        }
        yield from kernels.send("pairs", pa.table(columns), "one", count)


def _groups(bundle: Bundle) -> tuple[Any, Any, Any]:
    """Return the distinct pairs of a partition, how often each occurs, and the sum of its weights."""
    table = bundle["pairs"]
    ids = pc.unique(pa.chunked_array([*table.column("one").chunks, *table.column("two").chunks]))
    keys = positions(table.column("one"), ids) * len(ids) + positions(table.column("two"), ids)
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    scores = np.bincount(inverse, weights=table.column("weight").to_numpy())
    return table.take(pa.array(first)), counts, scores


def _jaccard(minimum: float, maximum: float, channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "pairs" in bundle:
        pairs, shared, _ = _groups(bundle)
        distinct = pairs.column("degrees").to_numpy() - shared
        table = pa.table({"one": pairs["one"], "two": pairs["two"], "shared": shared, "distinct": distinct})
        score = shared / distinct
        yield "scores", table.filter(pa.array((score >= minimum) & (score < maximum)))


def _adamic_adar(minimum: float, channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "pairs" in bundle:
        pairs, _, scores = _groups(bundle)
        table = pa.table({"one": pairs["one"], "two": pairs["two"], "score": scores})
        yield "scores", table.filter(pa.array(scores >= minimum))


def _sums(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "pairs" in bundle:
        _, _, scores = _groups(bundle)
        yield "sums", pa.table({"count": [len(scores)], "score": [float(scores.sum())]})
