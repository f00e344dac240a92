"""Communities: label propagation, and community detection with scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.common.errors import InvalidProgramError
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import Vertex
from penstock.gelly.iterations.batches import BatchComputeFunction, VertexBatch
from penstock.gelly.iterations.configuration import VertexCentricConfiguration

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["CommunityDetection", "LabelPropagation"]


class LabelPropagation(GraphAlgorithm):
    """Each vertex takes the most frequent label of its in-neighbours. On ties, the largest label wins.

    The vertex values are the initial labels: numbers or strings, all of the same type.
    """

    def __init__(self, max_iterations: int) -> None:
        self._max_iterations = max_iterations
        self.configuration = VertexCentricConfiguration().set_name("LabelPropagation")

    def run(self, graph: Graph) -> DataSet[Vertex]:
        """Return the vertices, with their communities as values."""
        function = _MostFrequent(self._max_iterations)
        supersteps = self._max_iterations + 1
        return graph.run_vertex_centric_iteration(function, None, supersteps, self.configuration).get_vertices()


class _MostFrequent(BatchComputeFunction):
    def __init__(self, last: int) -> None:
        self._last = last

    def compute(self, batch: VertexBatch) -> None:
        labels = batch.state["value"]
        if batch.superstep_number > 1 and len(batch.message_targets):
            names, numbers = np.unique(np.concatenate([labels, batch.messages]), return_inverse=True)
            own, received = numbers[: batch.size], numbers[batch.size :]
            pairs, counts = np.unique(batch.message_targets * len(names) + received, return_counts=True)
            target, label = np.divmod(pairs, len(names))
            best = _best_of(target, counts, label)
            target, label, counts = target[best], label[best], counts[best]
            # If no label is more frequent than another, the vertex's own label also counts.
            label = np.where(counts == 1, np.maximum(label, own[target]), label)
            labels[target] = names[label]
        if batch.superstep_number <= self._last:
            batch.send_to_neighbors(labels, None if batch.superstep_number == 1 else batch.received)


def _best_of(target: Any, score: Any, label: Any) -> Any:
    """Return the row with the highest score of each target. On ties, the largest label wins."""
    order = np.lexsort((label, score, target))
    return order[np.append(np.flatnonzero(np.diff(target[order])), len(order) - 1)]


class CommunityDetection(GraphAlgorithm):
    """Each vertex takes the label with the highest total score among its neighbours. Scores decrease with every hop.

    Vertex values are the initial labels (integers), and edge values are numbers. Edges count in both directions.

    :param delta: how much of its score a label loses when it moves to another vertex
    """

    def __init__(self, max_iterations: int, delta: float = 0.5) -> None:
        self._max_iterations = max_iterations
        self._delta = delta
        self.configuration = VertexCentricConfiguration().set_name("CommunityDetection")

    def run(self, graph: Graph) -> Graph:
        """Return the graph, with communities as vertex values."""
        function = _HighestScore(self._max_iterations, self._delta)
        undirected = graph.get_undirected()
        supersteps = self._max_iterations + 1
        found = undirected.run_vertex_centric_iteration(function, None, supersteps, self.configuration)
        return graph.but(vertices=found.vertex_partitions)


class _HighestScore(BatchComputeFunction):
    def __init__(self, last: int, delta: float) -> None:
        self._last = last
        self._delta = delta

    def compute(self, batch: VertexBatch) -> None:
        state = batch.state
        if batch.superstep_number == 1:
            if batch.size and (state["value"].dtype.kind != "i" or batch.edge_values.dtype.kind not in "iuf"):
                raise InvalidProgramError(
                    "CommunityDetection needs integers as vertex values and numbers as edge values"
                )
            state["score"] = np.ones(batch.size)
        elif len(batch.message_targets):
            self._update(batch)
        if batch.superstep_number <= self._last:
            rows = batch.edge_rows
            messages = {"label": state["value"][rows], "score": state["score"][rows] * batch.edge_values}
            batch.send_along_edges(messages, None if batch.superstep_number == 1 else batch.received[rows])

    def _update(self, batch: VertexBatch) -> None:
        labels, scores = batch.message_columns["label"], batch.message_columns["score"]
        order = np.lexsort((scores, labels, batch.message_targets))
        target, label, score = batch.message_targets[order], labels[order], scores[order]
        starts = np.concatenate([[0], np.flatnonzero((np.diff(target) != 0) | (np.diff(label) != 0)) + 1])
        totals, highest = np.add.reduceat(score, starts), np.maximum.reduceat(score, starts)
        target, label = target[starts], label[starts]
        best = _best_of(target, totals, -label)
        target, label, highest = target[best], label[best], highest[best]
        moved = label != batch.state["value"][target]
        batch.state["value"][target] = label
        batch.state["score"][target] = highest - np.where(moved, self._delta / (batch.superstep_number - 1), 0.0)
