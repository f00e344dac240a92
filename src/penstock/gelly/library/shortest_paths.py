"""Shortest paths from one vertex."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.common.errors import InvalidProgramError, shorten
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import Neighbor, Vertex
from penstock.gelly.iterations.aggregators import LongSumAggregator
from penstock.gelly.iterations.batches import BatchComputeFunction, VertexBatch
from penstock.gelly.iterations.configuration import GSAConfiguration, VertexCentricConfiguration
from penstock.gelly.iterations.functions import ApplyFunction, GSAGatherFunction, SumFunction

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["GSASingleSourceShortestPaths", "SingleSourceShortestPaths"]


class SingleSourceShortestPaths(GraphAlgorithm):
    """Computes the length of the shortest path from a vertex to every other vertex; infinity without a path.

    Edge values are the lengths, which must not be negative.

    :param max_iterations: the maximum number of edges of a path
    """

    def __init__(self, source_vertex_id: Any, max_iterations: int) -> None:
        self._source = source_vertex_id
        self._max_iterations = max_iterations
        self.configuration = VertexCentricConfiguration().set_name("SingleSourceShortestPaths")

    def run(self, graph: Graph) -> DataSet[Vertex]:
        """Return the vertices, with their distances as values."""
        self.configuration.register_aggregator("sources", LongSumAggregator())
        function = _Distances(self._source)
        supersteps = self._max_iterations + 1
        found = graph.run_vertex_centric_iteration(function, np.minimum, supersteps, self.configuration)
        return found.get_vertices()


class _Distances(BatchComputeFunction):
    def __init__(self, source: Any) -> None:
        self._source = source

    def compute(self, batch: VertexBatch) -> None:
        if batch.superstep_number == 1:
            self._check(batch)
            starts = batch.ids == self._source
            batch.aggregate("sources", starts.sum())
            batch.state["value"] = np.where(starts, 0.0, math.inf)
            self._send(batch, starts)
            batch.stay_active()
            return
        if batch.superstep_number == 2 and batch.previous_aggregates["sources"] == 0:
            raise InvalidProgramError(f"the graph does not have the source vertex {shorten(self._source)}")
        distance = batch.state["value"]
        shorter = batch.received & (batch.messages < distance)
        distance[shorter] = batch.messages[shorter]
        self._send(batch, shorter)

    @staticmethod
    def _send(batch: VertexBatch, senders: Any) -> None:
        rows = batch.edge_rows
        chosen = senders[rows]
        if chosen.any():
            batch.send_along_edges(batch.state["value"][rows] + batch.edge_values, chosen)

    @staticmethod
    def _check(batch: VertexBatch) -> None:
        lengths = batch.edge_values
        if len(lengths) and (lengths.dtype.kind not in "iuf" or np.isnan(lengths.astype(np.float64)).any()):
            raise InvalidProgramError("shortest paths need numbers as edge values: use map_edges(lambda edge: 1.0)")
        if len(lengths) and lengths.min() < 0:
            row = int(np.argmin(lengths))
            start = batch.ids[batch.edge_rows[row]]
            raise InvalidProgramError(
                f"shortest paths need edge values that are not negative; an edge from vertex {shorten(start)} has the "
                f"value {lengths[row]}"
            )


class GSASingleSourceShortestPaths(GraphAlgorithm):
    """Like `SingleSourceShortestPaths`, as a gather-sum-apply program that processes one vertex at a time."""

    def __init__(self, source_vertex_id: Any, max_iterations: int) -> None:
        self._source = source_vertex_id
        self._max_iterations = max_iterations
        self.configuration = GSAConfiguration().set_name("GSASingleSourceShortestPaths")

    def run(self, graph: Graph) -> DataSet[Vertex]:
        """Return the vertices, with their distances as values."""
        source = self._source
        started = graph.map_vertices(lambda vertex: 0.0 if vertex.id == source else math.inf)
        functions = (_Longer(), _Minimum(), _TakeShorter())
        found = started.run_gather_sum_apply_iteration(*functions, self._max_iterations, self.configuration)
        return found.get_vertices()


class _Longer(GSAGatherFunction):
    def gather(self, neighbor: Neighbor) -> float:
        length = neighbor.neighbor_value + neighbor.edge_value
        if neighbor.edge_value < 0:
            raise InvalidProgramError(
                f"shortest paths need edge values that are not negative; one is {neighbor.edge_value}"
            )
        return float(length)


class _Minimum(SumFunction):
    def sum(self, first: Any, second: Any) -> Any:
        return min(first, second)


class _TakeShorter(ApplyFunction):
    def apply(self, new_value: Any, current_value: Any) -> None:
        if new_value < current_value:
            self.set_result(new_value)
