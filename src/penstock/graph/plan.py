"""The execution plan as JSON (in Flink's layout) and as readable text."""

from __future__ import annotations

import json
from typing import Any

from penstock.graph.job_graph import JobGraph, operator_ids, translate
from penstock.graph.pattern_picture import automaton_of
from penstock.graph.settings import JobSettings
from penstock.graph.stream_graph import StreamGraphGenerator, StreamNode
from penstock.graph.transformation import Transformation
from penstock.runtime.cep.state import Automaton
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.plan.job_vertex import JobVertex

_KINDS = {"source": "Data Source", "operator": "Operator", "sink": "Data Sink"}


def execution_plan_json(sinks: list[Transformation], settings: JobSettings) -> str:
    """Return the stream graph as JSON: nodes with their parallelism and predecessors, and their tasks."""
    graph = StreamGraphGenerator(sinks, settings).generate()
    ids = operator_ids(graph)
    job = translate(sinks, settings)
    nodes: list[dict[str, Any]] = []
    committers: list[dict[str, Any]] = []
    next_id = max(node.id for node in graph.nodes) + 1
    for node in graph.nodes:
        description: dict[str, Any] = {
            "id": node.id,
            "type": node.name,
            "pact": _KINDS[node.kind],
            "contents": node.description,
            "parallelism": node.parallelism,
            "operator_id": ids[node.id],
        }
        if node.uid is not None:
            description["uid"] = node.uid
        if (automaton := automaton_of(node.operator)) is not None:
            description["pattern"] = automaton.description
        if node.inputs:
            description["predecessors"] = [
                {
                    "id": edge.source.id,
                    "ship_strategy": edge.partitioner.name,
                    "side": "second" if edge.input_index else "first",
                    **({"side_output": edge.tag_id} if edge.tag_id else {}),
                }
                for edge in node.inputs
            ]
        nodes.append(description)
        if isinstance(node.operator, SinkOperator) and not node.operator.as_function:
            label = _sink_label(node, node.operator)
            description["type"] = f"{label}: Writer"
            if node.operator.sink.create_committer() is not None:
                committer = {
                    "id": next_id + len(committers),
                    "type": f"{label}: Committer",
                    "pact": _KINDS["operator"],
                    "contents": f"{label}: Committer",
                    "parallelism": node.parallelism,
                    "predecessors": [{"id": node.id, "ship_strategy": "FORWARD", "side": "first"}],
                }
                committers.append(committer)
    nodes += committers
    tasks = [
        {
            "task": vertex.name,
            "stage": vertex.level,
            "parallelism": vertex.parallelism,
            "inputs": [
                {"task": job.vertices[job.edges[e].source].name, "ship_strategy": job.edges[e].partitioner.name}
                for e in vertex.inputs
            ],
        }
        for vertex in job.vertices
    ]
    sizes = {"stages": job.levels, "channels": job.channels}
    return json.dumps({"nodes": nodes, "tasks": tasks, **sizes, "mode": _mode(job)}, indent=2)


def _sink_label(node: StreamNode, operator: SinkOperator) -> str:
    """Return the name of a sink in the program, or "Sink", as in Flink."""
    name = node.name.removeprefix("Sink: ")
    return "Sink" if name == type(operator.sink).__name__ else name


def plan_text(job: JobGraph) -> str:
    """Return the job graph as text, stage by stage."""
    sizes = _counted(len(job.vertices), "task"), _counted(job.levels + 1, "stage"), _counted(job.channels, "channel")
    lines = [f"{job.name}: {sizes[0]} in {sizes[1]}, {sizes[2]}, {_mode(job)}"]
    for level in range(job.levels + 1):
        lines.append(f"stage {level}" + (" (sources)" if level == 0 else ""))
        for vertex in job.vertices:
            if vertex.level == level:
                lines.append(f"  [{vertex.id}] {vertex.name}  x{vertex.parallelism}")
                lines += [f"        pattern {automaton.description}" for automaton in _automata(vertex)]
                for edge_id in vertex.inputs:
                    edge = job.edges[edge_id]
                    side = f" side output '{edge.tag_id}'" if edge.tag_id else ""
                    lines.append(f"        <- [{edge.source}]{side} {edge.partitioner.name.lower()}")
    return "\n".join(lines)


def _automata(vertex: JobVertex) -> list[Automaton]:
    """Return the automata of a task's patterns."""
    return [automaton for one in vertex.operators if (automaton := automaton_of(one.operator)) is not None]


def _mode(job: JobGraph) -> str:
    """Return the execution mode: batch job, streaming query or continuous."""
    return "batch" if job.runs_as_batch else job.settings.execution_mode.value


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
