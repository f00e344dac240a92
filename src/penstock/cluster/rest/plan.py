"""The plan of a job in the form of Flink's REST API."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.graph.job_graph import JobGraph
    from penstock.runtime.plan.job_vertex import JobVertex

__all__ = ["plan_of"]


def plan_of(graph: JobGraph, job_id: str) -> dict[str, Any]:
    """Return the plan of a job graph, with one node for each task."""
    return {
        "plan": {
            "jid": job_id,
            "name": graph.name,
            "type": "BATCH" if graph.runs_as_batch else "STREAMING",
            "nodes": [_node(graph, vertex) for vertex in graph.vertices],
        }
    }


def _node(graph: JobGraph, vertex: JobVertex) -> dict[str, Any]:
    first, *others = [escape(operator.name) for operator in vertex.operators]
    node: dict[str, Any] = {
        "id": vertex.operators[0].operator_id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": f"{first}<br/>" + "".join(f"+- {name}<br/>" for name in others),
        "optimizer_properties": {},
    }
    if vertex.inputs:
        edges = [graph.edges[edge_id] for edge_id in vertex.inputs]
        node["inputs"] = [
            {
                "num": number,
                "id": graph.vertices[edge.source].operators[0].operator_id,
                "ship_strategy": edge.partitioner.name,
                "exchange": "pipelined_bounded",
            }
            for number, edge in enumerate(edges)
        ]
    return node
