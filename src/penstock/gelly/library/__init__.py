"""The library of algorithms: ``graph.run(PageRank(0.85, 20))``."""

from penstock.gelly.library.clustering import (
    AverageClusteringCoefficient,
    AverageClusteringResult,
    GlobalClusteringCoefficient,
    GlobalClusteringResult,
    LocalClusteringCoefficient,
    LocalClusteringResult,
)
from penstock.gelly.library.communities import CommunityDetection, LabelPropagation
from penstock.gelly.library.components import ConnectedComponents, GSAConnectedComponents
from penstock.gelly.library.hits import HITS, HITSResult
from penstock.gelly.library.page_rank import PageRank, PageRankResult
from penstock.gelly.library.shortest_paths import GSASingleSourceShortestPaths, SingleSourceShortestPaths
from penstock.gelly.library.similarity import AdamicAdar, AdamicAdarResult, JaccardIndex, JaccardIndexResult
from penstock.gelly.library.summarization import Summarization, SummarizedValue
from penstock.gelly.library.triadic_census import DirectedTriadicCensus, TriadicCensus
from penstock.gelly.library.triangles import TriangleCount, TriangleListing
from penstock.gelly.library.vertex_metrics import VertexMetrics, VertexMetricsResult

__all__ = [
    "HITS",
    "AdamicAdar",
    "AdamicAdarResult",
    "AverageClusteringCoefficient",
    "AverageClusteringResult",
    "CommunityDetection",
    "ConnectedComponents",
    "DirectedTriadicCensus",
    "GSAConnectedComponents",
    "GSASingleSourceShortestPaths",
    "GlobalClusteringCoefficient",
    "GlobalClusteringResult",
    "HITSResult",
    "JaccardIndex",
    "JaccardIndexResult",
    "LabelPropagation",
    "LocalClusteringCoefficient",
    "LocalClusteringResult",
    "PageRank",
    "PageRankResult",
    "SingleSourceShortestPaths",
    "Summarization",
    "SummarizedValue",
    "TriadicCensus",
    "TriangleCount",
    "TriangleListing",
    "VertexMetrics",
    "VertexMetricsResult",
]
