"""Connected components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.common.errors import InvalidProgramError, shorten
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import EdgeDirection, Neighbor, Vertex
from penstock.gelly.iterations.batches import BatchComputeFunction, VertexBatch
from penstock.gelly.iterations.configuration import GSAConfiguration, VertexCentricConfiguration
from penstock.gelly.iterations.functions import ApplyFunction, GSAGatherFunction, SumFunction

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["ConnectedComponents", "GSAConnectedComponents"]


class ConnectedComponents(GraphAlgorithm):
    """Finds the weakly connected component of each vertex, identified by the smallest vertex value in it.

    Vertex values are numbers, for instance the ids. `GSAConnectedComponents` supports all comparable values.
    """

    def __init__(self, max_iterations: int) -> None:
        self._max_iterations = max_iterations
        self.configuration = VertexCentricConfiguration().set_name("ConnectedComponents")

    def run(self, graph: Graph) -> DataSet[Vertex]:
        """Return the vertices, with their components as values."""
        self.configuration.set_direction(EdgeDirection.ALL)
        supersteps = self._max_iterations + 1
        found = graph.run_vertex_centric_iteration(_Smallest(), np.minimum, supersteps, self.configuration)
        return found.get_vertices()


class _Smallest(BatchComputeFunction):
    def compute(self, batch: VertexBatch) -> None:
        component = batch.state["value"]
        if batch.superstep_number == 1:
            if component.dtype.kind not in "iuf" or (component.dtype.kind == "f" and np.isnan(component).any()):
                raise InvalidProgramError(
                    "ConnectedComponents needs numbers as vertex values, but one of them is "
                    f"{shorten(component[0])}: use map_vertices(lambda vertex: vertex.id), or GSAConnectedComponents"
                )
            batch.send_to_neighbors(component)
            return
        smaller = batch.received & (batch.messages < component)
        component[smaller] = batch.messages[smaller]
        batch.send_to_neighbors(component, smaller)


class GSAConnectedComponents(GraphAlgorithm):
    """Like `ConnectedComponents`, for comparable vertex values of any kind, one vertex at a time."""

    def __init__(self, max_iterations: int) -> None:
        self._max_iterations = max_iterations
        self.configuration = GSAConfiguration().set_name("GSAConnectedComponents").set_direction(EdgeDirection.ALL)

    def run(self, graph: Graph) -> DataSet[Vertex]:
        """Return the vertices, with their components as values."""
        functions = (_NeighborValue(), _Minimum(), _TakeSmaller())
        found = graph.run_gather_sum_apply_iteration(*functions, self._max_iterations, self.configuration)
        return found.get_vertices()


class _NeighborValue(GSAGatherFunction):
    def gather(self, neighbor: Neighbor) -> Any:
        return neighbor.neighbor_value


class _Minimum(SumFunction):
    def sum(self, first: Any, second: Any) -> Any:
        return min(first, second)


class _TakeSmaller(ApplyFunction):
    def apply(self, new_value: Any, current_value: Any) -> None:
        if new_value < current_value:
            self.set_result(new_value)
