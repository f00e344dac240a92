"""The functions of iterations that work on one vertex at a time. Subclass them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.gelly.elements import Edge, Neighbor, Vertex
from penstock.gelly.iterations.aggregators import Aggregator

__all__ = [
    "ApplyFunction",
    "ComputeFunction",
    "GSAGatherFunction",
    "GatherFunction",
    "IterationContext",
    "MessageCombiner",
    "ScatterFunction",
    "SumFunction",
]


class IterationContext:
    """The data and operations available to functions in a superstep. The runtime fills it in.

    ``updates`` collects the function's changes of the current vertex: a list with the new value, if there is one.
    """

    def __init__(
        self,
        superstep: int,
        number_of_vertices: int,
        aggregators: dict[str, Aggregator],
        previous: dict[str, Any],
    ) -> None:
        self.superstep = superstep
        self.number_of_vertices = number_of_vertices
        self.aggregators = aggregators
        self.previous = previous
        self.updates: list[Any] = []
        self.send: Callable[[Any, Any], None] = _cannot_send
        self.neighbors: Callable[[], Sequence[Any]] = _no_edges
        self.edges: Callable[[], Sequence[Edge]] = _no_edges
        self.degrees: tuple[int, int] = (-1, -1)


def _cannot_send(target: Any, message: Any) -> None:
    raise InvalidProgramError("only compute and scatter functions send messages")


def _no_edges() -> Sequence[Any]:
    raise InvalidProgramError("only compute and scatter functions see edges")


class _IterationFunction:
    """The data available to all functions of iterations."""

    context: IterationContext
    broadcast_sets: dict[str, list[Any]]

    def get_superstep_number(self) -> int:
        """Return the number of the superstep, from 1."""
        return self.context.superstep

    def get_iteration_aggregator(self, name: str) -> Any:
        """Return the aggregator registered under this name."""
        if name not in self.context.aggregators:
            raise InvalidProgramError(f"the configuration of the iteration has no aggregator {name!r}")
        return self.context.aggregators[name]

    def get_previous_iteration_aggregate(self, name: str) -> Any:
        """Return the aggregate of the previous superstep, or None in the first one."""
        return self.context.previous.get(name)

    def get_broadcast_set(self, name: str) -> list[Any]:
        """Return the records of a broadcast set."""
        if name not in self.broadcast_sets:
            raise InvalidProgramError(f"the configuration of the iteration has no broadcast set {name!r}")
        return self.broadcast_sets[name]

    def pre_superstep(self) -> None:
        """Called in every task before a superstep."""

    def post_superstep(self) -> None:
        """Called in every task after a superstep."""


class _Sending(_IterationFunction):
    """Functions that send messages."""

    def get_edges(self) -> Sequence[Edge]:
        """Return the edges of the vertex: the outgoing ones, unless the configuration sets another direction."""
        return self.context.edges()

    def send_message_to(self, target: Any, message: Any) -> None:
        """Send a message to the vertex with this id."""
        self.context.send(target, message)

    def send_message_to_all_neighbors(self, message: Any) -> None:
        """Send a message to the vertex at the other end of each edge."""
        send = self.context.send
        for neighbor in self.context.neighbors():
            send(neighbor, message)


class _Updating(_IterationFunction):
    """Functions that set the value of a vertex."""

    def set_new_vertex_value(self, value: Any) -> None:
        """Set a new value of the vertex."""
        self.context.updates[:] = [value]


class _Counting(_IterationFunction):
    """Functions that know the number of vertices and the degrees of theirs, if configured."""

    def get_number_of_vertices(self) -> int:
        """Return the number of vertices, or -1 unless ``set_opt_num_vertices(True)`` is configured."""
        return self.context.number_of_vertices

    def get_in_degree(self) -> int:
        """Return the in-degree of the vertex, or -1 unless ``set_opt_degrees(True)`` is configured."""
        return self.context.degrees[0]

    def get_out_degree(self) -> int:
        """Return the out-degree of the vertex, or -1 unless ``set_opt_degrees(True)`` is configured."""
        return self.context.degrees[1]


class ComputeFunction(_Sending, _Updating, _Counting, ABC):
    """A vertex-centric program: called for each vertex in the first superstep, then for vertices with messages."""

    @abstractmethod
    def compute(self, vertex: Vertex, messages: Sequence[Any]) -> None:
        """Read messages, set a new value, send messages."""


class MessageCombiner(ABC):
    """Combines messages of a task to the same vertex before they are sent."""

    combined: list[Any]

    @abstractmethod
    def combine_messages(self, messages: Sequence[Any]) -> None:
        """Call `send_combined_message` with the combination of the messages."""

    def send_combined_message(self, message: Any) -> None:
        """Send this instead of the messages."""
        self.combined.append(message)


class ScatterFunction(_Sending, _Counting, ABC):
    """The sending half of a scatter-gather program: called for all vertices first, then for those that have changed."""

    @abstractmethod
    def send_messages(self, vertex: Vertex) -> None:
        """Send messages for a vertex."""


class GatherFunction(_Updating, _Counting, ABC):
    """The receiving half of a scatter-gather program: called for vertices with messages."""

    @abstractmethod
    def update_vertex(self, vertex: Vertex, messages: Sequence[Any]) -> None:
        """Read messages, and set a new value if it changes."""


class GSAGatherFunction(_Counting, ABC):
    """The first step of a gather-sum-apply program."""

    @abstractmethod
    def gather(self, neighbor: Neighbor) -> Any:
        """Return a partial value for an edge, from the neighbour's value and the value of the edge."""


class SumFunction(_Counting, ABC):
    """The second step of a gather-sum-apply program."""

    @abstractmethod
    def sum(self, first: Any, second: Any) -> Any:
        """Combine two partial values. The order must not matter."""


class ApplyFunction(_Updating, _Counting, ABC):
    """The third step of a gather-sum-apply program."""

    @abstractmethod
    def apply(self, new_value: Any, current_value: Any) -> None:
        """Call `set_result` with the new value of the vertex if it changes."""

    def set_result(self, result: Any) -> None:
        """Set a new value of the vertex."""
        self.context.updates[:] = [result]
