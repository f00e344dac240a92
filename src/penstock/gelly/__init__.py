"""Gelly, Flink's library for graphs, on Spark.

Graphs with values at vertices and edges, transformations, iterative programs in three models, and a library of
algorithms. Names are those of Gelly's Java API in snake_case.
"""

try:
    import numpy as np  # noqa: F401 - all of it computes on arrays
except ImportError:
    raise ImportError("penstock.gelly needs numpy: pip install 'penstock[gelly]'") from None

from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import BipartiteEdge, Edge, EdgeDirection, Neighbor, Projection, Triplet, Vertex
from penstock.gelly.environment import ExecutionEnvironment, SuperstepReport
from penstock.gelly.functions import batch
from penstock.gelly.graph import Graph
from penstock.gelly.neighborhood import (
    EdgesFunction,
    EdgesFunctionWithVertexValue,
    NeighborsFunction,
    NeighborsFunctionWithVertexValue,
)
from penstock.gelly.validation import GraphValidator, InvalidVertexIdsValidator

__all__ = [
    "BipartiteEdge",
    "DataSet",
    "Edge",
    "EdgeDirection",
    "EdgesFunction",
    "EdgesFunctionWithVertexValue",
    "ExecutionEnvironment",
    "Graph",
    "GraphAlgorithm",
    "GraphValidator",
    "InvalidVertexIdsValidator",
    "Neighbor",
    "NeighborsFunction",
    "NeighborsFunctionWithVertexValue",
    "Projection",
    "SuperstepReport",
    "Triplet",
    "Vertex",
    "batch",
]
