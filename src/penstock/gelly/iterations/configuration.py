"""Settings of an iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from penstock.common.errors import InvalidProgramError
from penstock.gelly.elements import EdgeDirection
from penstock.gelly.iterations.aggregators import Aggregator

__all__ = ["GSAConfiguration", "IterationConfiguration", "ScatterGatherConfiguration", "VertexCentricConfiguration"]


class IterationConfiguration:
    """The settings that all kinds of iterations share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.aggregators: dict[str, Aggregator] = {}
        self.broadcast_sets: dict[str, dict[str, Any]] = {}
        self.converged: Callable[[int, dict[str, Any]], bool] | None = None
        self.checkpoint_path: str | None = None
        self.checkpoint_interval = 1

    def set_name(self, name: str) -> Self:
        """Set the name of the iteration for messages and reports."""
        self.name = name
        return self

    def register_aggregator(self, name: str, aggregator: Aggregator) -> Self:
        """Make an aggregator available to the functions."""
        self.aggregators[name] = aggregator
        return self

    def set_convergence_criterion(self, criterion: Callable[[int, dict[str, Any]], bool]) -> Self:
        """End the iteration after a superstep for which this is true: ``criterion(superstep, aggregates)``.

        The aggregates are the values of the registered aggregators by name.
        """
        self.converged = criterion
        return self

    def set_checkpoint(self, directory: str, interval: int = 1) -> Self:
        """Write the state of the iteration to a directory every ``interval`` supersteps.

        A killed program resumes from the last checkpoint when it is restarted. The checkpoint is deleted when the
        iteration ends. On a cluster, use a directory that all machines share.
        """
        if interval < 1:
            raise InvalidProgramError(f"the checkpoint interval must be at least 1 superstep, got {interval}")
        self.checkpoint_path = directory.rstrip("/")
        self.checkpoint_interval = interval
        return self

    def _broadcast(self, function: str, name: str, data: Any) -> Self:
        records = data.collect() if hasattr(data, "collect") else list(data)
        self.broadcast_sets.setdefault(function, {})[name] = records
        return self


class VertexCentricConfiguration(IterationConfiguration):
    """Settings of a vertex-centric iteration."""

    def __init__(self) -> None:
        super().__init__("vertex-centric iteration")
        self.direction = EdgeDirection.OUT

    def add_broadcast_set(self, name: str, data: Any) -> Self:
        """Make a data set or a collection available to the compute function."""
        return self._broadcast("compute", name, data)

    def set_direction(self, direction: EdgeDirection) -> Self:
        """Set which neighbours receive messages: those at outgoing edges (the default), at incoming edges, or all."""
        self.direction = direction
        return self


class ScatterGatherConfiguration(IterationConfiguration):
    """Settings of a scatter-gather iteration."""

    def __init__(self) -> None:
        super().__init__("scatter-gather iteration")
        self.direction = EdgeDirection.OUT
        self.opt_num_vertices = False
        self.opt_degrees = False

    def add_broadcast_set_for_scatter_function(self, name: str, data: Any) -> Self:
        """Make a data set or a collection available to the scatter function."""
        return self._broadcast("scatter", name, data)

    def add_broadcast_set_for_gather_function(self, name: str, data: Any) -> Self:
        """Make a data set or a collection available to the gather function."""
        return self._broadcast("gather", name, data)

    def set_direction(self, direction: EdgeDirection) -> Self:
        """Set which neighbours receive messages: those at outgoing edges (the default), at incoming edges, or all."""
        self.direction = direction
        return self

    def set_opt_num_vertices(self, wanted: bool) -> Self:
        """Make `get_number_of_vertices` available."""
        self.opt_num_vertices = wanted
        return self

    def set_opt_degrees(self, wanted: bool) -> Self:
        """Make `get_in_degree` and `get_out_degree` available."""
        self.opt_degrees = wanted
        return self


class GSAConfiguration(IterationConfiguration):
    """Settings of a gather-sum-apply iteration."""

    def __init__(self) -> None:
        super().__init__("gather-sum-apply iteration")
        self.direction = EdgeDirection.OUT
        self.opt_num_vertices = False

    def add_broadcast_set_for_gather_function(self, name: str, data: Any) -> Self:
        """Make a data set or a collection available to the gather function."""
        return self._broadcast("gather", name, data)

    def add_broadcast_set_for_sum_function(self, name: str, data: Any) -> Self:
        """Make a data set or a collection available to the sum function."""
        return self._broadcast("sum", name, data)

    def add_broadcast_set_for_apply_function(self, name: str, data: Any) -> Self:
        """Make a data set or a collection available to the apply function."""
        return self._broadcast("apply", name, data)

    def set_direction(self, direction: EdgeDirection) -> Self:
        """Set the direction of values: from source to target (the default), from target to source, or both."""
        self.direction = direction
        return self

    def set_opt_num_vertices(self, wanted: bool) -> Self:
        """Make `get_number_of_vertices` available."""
        self.opt_num_vertices = wanted
        return self
