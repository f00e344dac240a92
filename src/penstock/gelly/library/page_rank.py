"""PageRank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from penstock.common.errors import InvalidProgramError
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.dataset import DataSet
from penstock.gelly.iterations.aggregators import DoubleSumAggregator, LongSumAggregator
from penstock.gelly.iterations.batches import BatchComputeFunction, VertexBatch, final_state
from penstock.gelly.iterations.configuration import VertexCentricConfiguration

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["PageRank", "PageRankResult"]


class PageRankResult(NamedTuple):
    """A vertex and its score. The scores of all vertices add up to 1."""

    vertex_id: Any
    page_rank_score: float


class PageRank(GraphAlgorithm):
    """Scores vertices by the scores of the vertices that link to them.

    :param damping_factor: the share of a score that goes to linked vertices, between 0 and 1
    :param max_iterations: the maximum number of times that scores are passed on
    :param convergence_threshold: end when the changes of all scores in an iteration add up to at most this value
    """

    def __init__(
        self, damping_factor: float, max_iterations: int = 1 << 31, convergence_threshold: float = math.inf
    ) -> None:
        if not 0 < damping_factor < 1:
            raise InvalidProgramError(f"the damping factor is {damping_factor}; it must be between 0 and 1")
        if max_iterations < 1 or convergence_threshold <= 0:
            raise InvalidProgramError("PageRank needs at least one iteration and a convergence threshold above 0")
        if max_iterations == 1 << 31 and convergence_threshold == math.inf:
            raise InvalidProgramError("PageRank would never end: set max_iterations or convergence_threshold")
        self._damping_factor = damping_factor
        self._max_iterations = max_iterations
        self._threshold = convergence_threshold
        self._include_all = False
        self.configuration = VertexCentricConfiguration().set_name("PageRank")

    def set_include_zero_degree_vertices(self, include: bool) -> Self:
        """Set whether vertices without edges get a score. By default they do not."""
        self._include_all = include
        return self

    def run(self, graph: Graph) -> DataSet[PageRankResult]:
        """Return the scores."""
        configuration = self.configuration
        configuration.register_aggregator("vertices", LongSumAggregator())
        configuration.register_aggregator("dangling", DoubleSumAggregator())
        configuration.register_aggregator("change", DoubleSumAggregator())
        threshold = self._threshold
        configuration.set_convergence_criterion(
            lambda superstep, aggregates: (
                superstep > 2 and aggregates["change"] <= threshold * max(aggregates["vertices"], 1) < math.inf
            )
        )
        function = _Scores(self._damping_factor, self._include_all)
        columns = ("score", "included")
        found = final_state(graph, function, np.add, self._max_iterations + 2, configuration, columns)
        return DataSet(graph.env, found, "vertices", ("id", "score"), PageRankResult)


class _Scores(BatchComputeFunction):
    """Scores times the number of vertices, which is known after the first messages have shown which vertices have
    edges.

    Superstep 1 passes on the initial scores. Superstep 2 counts. From superstep 3 on, scores change.
    """

    def __init__(self, damping_factor: float, include_all: bool) -> None:
        self._damping_factor = damping_factor
        self._include_all = include_all

    def compute(self, batch: VertexBatch) -> None:
        degrees = batch.degrees
        if batch.superstep_number == 1:
            batch.state = {"scaled": np.ones(batch.size), "included": np.ones(batch.size, dtype=bool)}
            batch.state["sums"] = batch.state["score"] = np.zeros(batch.size)
            self._pass_on(batch, degrees)
            batch.stay_active()
            return
        if batch.superstep_number == 2:
            batch.state["sums"] = batch.messages
            batch.state["included"] = batch.received | (degrees > 0) | self._include_all
            batch.stay_active()
        else:
            sums = batch.state["sums"] if batch.superstep_number == 3 else batch.messages
            count = batch.previous_aggregates["vertices"]
            uniform = batch.previous_aggregates["dangling"] / max(count, 1)
            scaled = (1 - self._damping_factor) + self._damping_factor * (sums + uniform)
            change = np.abs(scaled - batch.state["scaled"])[batch.state["included"]].sum()
            batch.aggregate("change", change)
            batch.state["scaled"] = scaled
            batch.state["score"] = scaled / max(count, 1)
            self._pass_on(batch, degrees)
            batch.stay_active()  # without edges, all scores are equal, but valid
        included = batch.state["included"]
        batch.aggregate("vertices", included.sum())
        batch.aggregate("dangling", batch.state["scaled"][included & (degrees == 0)].sum())

    @staticmethod
    def _pass_on(batch: VertexBatch, degrees: Any) -> None:
        batch.send_to_neighbors(batch.state["scaled"] / np.maximum(degrees, 1))
