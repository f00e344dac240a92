"""Hubs and authorities (HITS)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.common.errors import InvalidProgramError
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import EdgeDirection
from penstock.gelly.iterations.aggregators import DoubleSumAggregator
from penstock.gelly.iterations.batches import BatchComputeFunction, VertexBatch, final_state
from penstock.gelly.iterations.configuration import VertexCentricConfiguration

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["HITS", "HITSResult"]


class HITSResult(NamedTuple):
    """A vertex and its scores. The squares of each kind of score add up to 1."""

    vertex_id: Any
    hub_score: float
    authority_score: float


class HITS(GraphAlgorithm):
    """Good hubs link to good authorities, and good authorities are linked to by good hubs.

    :param max_iterations: the maximum number of times that both scores are computed
    :param convergence_threshold: end when the changes of all scores in an iteration add up to at most this value
    """

    def __init__(self, max_iterations: int = 1 << 30, convergence_threshold: float = math.inf) -> None:
        if max_iterations < 1 or convergence_threshold <= 0:
            raise InvalidProgramError("HITS needs at least one iteration and a convergence threshold above 0")
        if max_iterations == 1 << 30 and convergence_threshold == math.inf:
            raise InvalidProgramError("HITS would never end: set max_iterations or convergence_threshold")
        self._max_iterations = max_iterations
        self._threshold = convergence_threshold
        self.configuration = VertexCentricConfiguration().set_name("HITS").set_direction(EdgeDirection.ALL)

    def run(self, graph: Graph) -> DataSet[HITSResult]:
        """Return the scores. Vertices without edges have none."""
        configuration, threshold = self.configuration, self._threshold
        for name in ("squares", "change"):
            configuration.register_aggregator(name, DoubleSumAggregator())
        configuration.set_convergence_criterion(
            lambda superstep, aggregates: (
                superstep > 2 and superstep % 2 == 0 and aggregates["change"] <= threshold < math.inf
            )
        )
        columns = ("hub_score", "authority_score", "included")
        supersteps = 2 * self._max_iterations + 2
        found = final_state(graph, _HubsAndAuthorities(), np.add, supersteps, configuration, columns)
        return DataSet(graph.env, found, "vertices", ("id", *columns[:2]), HITSResult)


class _HubsAndAuthorities(BatchComputeFunction):
    """Even supersteps compute hub scores, odd ones authority scores. The next superstep knows the norm of a score."""

    def compute(self, batch: VertexBatch) -> None:
        outgoing, state = batch.edge_outgoing, batch.state
        if batch.superstep_number == 1:
            zeros = np.zeros(batch.size)
            links = np.bincount(batch.edge_rows[~outgoing], minlength=batch.size).astype(np.float64)
            batch.state = {"hub": zeros, "authority": links, "hub_score": zeros, "authority_score": zeros}
            batch.state["included"] = batch.degrees > 0
            batch.aggregate("squares", (links**2).sum())
            batch.send_along_edges(links[batch.edge_rows], ~outgoing)
            return
        norm = math.sqrt(batch.previous_aggregates["squares"]) or 1.0
        if batch.superstep_number % 2 == 0:
            authority = state["authority"] / norm
            change = np.abs(authority - state["authority_score"]) + np.abs(state["hub"] - state["hub_score"])
            batch.aggregate("change", change.sum())
            state["hub_score"], state["authority_score"] = state["hub"], authority
            state["hub"] = batch.messages / norm
            batch.aggregate("squares", (state["hub"] ** 2).sum())
            batch.send_along_edges(state["hub"][batch.edge_rows], outgoing)
        else:
            state["hub"] = state["hub"] / norm
            state["authority"] = batch.messages / norm
            batch.aggregate("squares", (state["authority"] ** 2).sum())
            batch.send_along_edges(state["authority"][batch.edge_rows], ~outgoing)
