"""The contract of algorithms that `Graph.run` runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["GraphAlgorithm"]


class GraphAlgorithm(ABC):
    """An algorithm on a graph: ``graph.run(algorithm)`` gives its result."""

    @abstractmethod
    def run(self, graph: Graph) -> Any:
        """The result: another graph, a data set, or values."""
