"""The three models of iterations, composed of graph, functions and supersteps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.common.errors import InvalidProgramError
from penstock.gelly import kernels
from penstock.gelly.elements import EdgeDirection
from penstock.gelly.iterations import records
from penstock.gelly.iterations.batches import BatchComputeFunction, run_batches
from penstock.gelly.iterations.configuration import (
    GSAConfiguration,
    IterationConfiguration,
    ScatterGatherConfiguration,
    VertexCentricConfiguration,
)
from penstock.gelly.iterations.functions import (
    ApplyFunction,
    ComputeFunction,
    GatherFunction,
    GSAGatherFunction,
    MessageCombiner,
    ScatterFunction,
    SumFunction,
)
from penstock.gelly.iterations.supersteps import Iteration, Phase, compute_phase, fused_phase, separate_phase

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph


def vertex_centric(
    graph: Graph, function: Any, combiner: Any, maximum: int, parameters: VertexCentricConfiguration | None
) -> Graph:
    """Run a vertex-centric iteration."""
    configuration = parameters or VertexCentricConfiguration()
    if isinstance(function, BatchComputeFunction):
        return run_batches(graph, function, combiner, maximum, configuration)
    _check(function, ComputeFunction, "compute function")
    if combiner is not None:
        _check(combiner, MessageCombiner, "combiner")
    compute = _with_broadcast_sets(function, configuration, "compute")
    functions = records.Functions(
        receive=compute,
        send=compute,
        combine=None if combiner is None else records.Combining(combiner),
        receiving=records.compute,
        sending=None,
        everything_first=True,
        aggregators=configuration.aggregators,
        knows_count=True,
    )
    return _run(graph, functions, configuration, configuration.direction, compute_phase, maximum)


def scatter_gather(
    graph: Graph, scatter: Any, gather: Any, maximum: int, parameters: ScatterGatherConfiguration | None
) -> Graph:
    """Run a scatter-gather iteration."""
    configuration = parameters or ScatterGatherConfiguration()
    _check(scatter, ScatterFunction, "scatter function")
    _check(gather, GatherFunction, "gather function")
    functions = records.Functions(
        receive=_with_broadcast_sets(gather, configuration, "gather"),
        send=_with_broadcast_sets(scatter, configuration, "scatter"),
        combine=None,
        receiving=records.gather,
        sending=records.scatter,
        everything_first=False,
        aggregators=configuration.aggregators,
        knows_count=configuration.opt_num_vertices,
    )
    phases = separate_phase if configuration.aggregators else fused_phase
    degrees = configuration.opt_degrees
    return _run(graph, functions, configuration, configuration.direction, phases, maximum, degrees=degrees)


def gather_sum_apply(
    graph: Graph, gather: Any, summing: Any, apply: Any, maximum: int, parameters: GSAConfiguration | None
) -> Graph:
    """Run a gather-sum-apply iteration."""
    configuration = parameters or GSAConfiguration()
    _check(gather, GSAGatherFunction, "gather function")
    _check(summing, SumFunction, "sum function")
    _check(apply, ApplyFunction, "apply function")
    summing = _with_broadcast_sets(summing, configuration, "sum")
    functions = records.Functions(
        receive=_with_broadcast_sets(apply, configuration, "apply"),
        send=_with_broadcast_sets(gather, configuration, "gather"),
        combine=records.Summing(summing),
        receiving=records.Applying(summing),
        sending=records.Gathering(),
        everything_first=False,
        aggregators=configuration.aggregators,
        knows_count=configuration.opt_num_vertices,
        called=(summing,),
    )
    phases = separate_phase if configuration.aggregators else fused_phase
    return _run(graph, functions, configuration, configuration.direction, phases, maximum)


def _check(function: Any, kind: type, what: str) -> None:
    if not isinstance(function, kind):
        raise InvalidProgramError(
            f"the {what} is a {type(function).__name__}: pass an instance of a subclass of {kind.__module__}."
            f"{kind.__name__}"
        )


def _with_broadcast_sets(function: Any, configuration: IterationConfiguration, name: str) -> Any:
    function = copy.copy(function)
    function.broadcast_sets = configuration.broadcast_sets.get(name, {})
    return function


def _run(
    graph: Graph,
    functions: records.Functions,
    configuration: IterationConfiguration,
    direction: EdgeDirection,
    phases: Callable[[int, int], Phase | None],
    maximum: int,
    *,
    degrees: bool = False,
) -> Graph:
    from penstock.gelly.graph import Graph

    env, engine = graph.env, graph.env.engine
    inputs = [graph.vertex_partitions, graph.incident_edges(direction)]
    if degrees:
        both = [graph.incident_edges(each) for each in (EdgeDirection.IN, EdgeDirection.OUT)]
        inputs += [engine.narrow(kernels.degrees, [graph.vertex_partitions, each]) for each in both]
    topology = engine.narrow(records.topology, inputs)
    iteration = Iteration(env, topology, partial(records.superstep, functions), configuration, phases, maximum)
    carrier = iteration.run()
    return Graph(env, engine.narrow(records.result, [topology, carrier]), graph.edge_partitions)
