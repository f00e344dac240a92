"""The contract of algorithms for `Graph.run`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["GraphAlgorithm"]


class GraphAlgorithm(ABC):
    """An algorithm on a graph: ``graph.run(algorithm)`` returns its result."""

    @abstractmethod
    def run(self, graph: Graph) -> Any:
        """Return the result: another graph, a data set, or values."""
