"""Iterations: the three models, for one vertex at a time and for batches."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.errors import CheckpointError, InvalidProgramError, UserFunctionError
from penstock.gelly import Edge, EdgeDirection, ExecutionEnvironment, Graph, Vertex, gsa, pregel, spargel
from penstock.gelly.aggregators import DoubleMaxAggregator, LongSumAggregator

WEIGHTED = [Edge(1, 2, 12.0), Edge(1, 3, 13.0), Edge(2, 3, 23.0), Edge(3, 4, 34.0), Edge(3, 5, 35.0), Edge(5, 1, 51.0)]
DISTANCES = [(1, 0.0), (2, 12.0), (3, 13.0), (4, 47.0), (5, 48.0), (6, math.inf)]


def weighted(env, edges=WEIGHTED, vertices=range(1, 7), source=1):
    values = [(vertex, 0.0 if vertex == source else math.inf) for vertex in vertices]
    return Graph.from_collection(values, edges, env)


def values(graph):
    return sorted(graph.get_vertices().collect())


class Distance(pregel.ComputeFunction):
    def compute(self, vertex, messages):
        best = min(messages, default=vertex.value)
        if best < vertex.value or self.get_superstep_number() == 1:
            self.set_new_vertex_value(best)
            if best < math.inf:
                for edge in self.get_edges():
                    self.send_message_to(edge.target, best + edge.value)


class Nearest(pregel.MessageCombiner):
    def combine_messages(self, messages):
        self.send_combined_message(min(messages))


class SendDistance(spargel.ScatterFunction):
    def send_messages(self, vertex):
        for edge in self.get_edges():
            self.send_message_to(edge.target, vertex.value + edge.value)


class TakeDistance(spargel.GatherFunction):
    def update_vertex(self, vertex, messages):
        if min(messages) < vertex.value:
            self.set_new_vertex_value(min(messages))


class GatherDistance(gsa.GatherFunction):
    def gather(self, neighbor):
        return neighbor.neighbor_value + neighbor.edge_value


class Minimum(gsa.SumFunction):
    def sum(self, first, second):
        return min(first, second)


class Apply(gsa.ApplyFunction):
    def apply(self, new_value, current_value):
        if new_value < current_value:
            self.set_result(new_value)


class BatchDistance(pregel.BatchComputeFunction):
    def compute(self, batch):
        value = batch.state["value"]
        better = batch.received & (batch.messages < value) if batch.superstep_number > 1 else value < math.inf
        if batch.superstep_number > 1:
            value[better] = batch.messages[better]
        batch.send_along_edges(value[batch.edge_rows] + batch.edge_values, better[batch.edge_rows])


MODELS = {
    "vertex-centric": lambda graph, limit: graph.run_vertex_centric_iteration(Distance(), None, limit),
    "combined": lambda graph, limit: graph.run_vertex_centric_iteration(Distance(), Nearest(), limit),
    "batches": lambda graph, limit: graph.run_vertex_centric_iteration(BatchDistance(), np.minimum, limit),
    "scatter-gather": lambda graph, limit: graph.run_scatter_gather_iteration(SendDistance(), TakeDistance(), limit),
    "gather-sum-apply": lambda graph, limit: graph.run_gather_sum_apply_iteration(
        GatherDistance(), Minimum(), Apply(), limit
    ),
}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_finds_the_shortest_paths(env, model):
    assert values(MODELS[model](weighted(env), 10)) == DISTANCES


@pytest.mark.parametrize("model", MODELS)
@given(
    edges=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 9).map(float)), max_size=30),
    parallelism=st.integers(1, 4),
)
def test_every_model_agrees_with_dijkstra(model, edges, parallelism):
    env = ExecutionEnvironment.create_collections_environment(parallelism)
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(9))
    reference.add_weighted_edges_from(edges)
    expected = nx.single_source_dijkstra_path_length(reference, 0)
    found = MODELS[model](weighted(env, edges, range(9), source=0), 20)
    assert values(found) == [(vertex, expected.get(vertex, math.inf)) for vertex in range(9)]


@pytest.mark.parametrize("model", MODELS)
def test_an_iteration_ends_when_nothing_changes(env, model):
    reports = []
    env.add_superstep_listener(reports.append)
    MODELS[model](weighted(env), 100)
    assert [report.superstep for report in reports] == list(range(1, len(reports) + 1))
    assert len(reports) < 6


@pytest.mark.parametrize("model", MODELS)
def test_an_iteration_ends_at_its_maximum(env, model):
    reports = []
    env.add_superstep_listener(reports.append)
    supersteps = 2 if model in {"vertex-centric", "combined", "batches"} else 1
    found = dict(values(MODELS[model](weighted(env), supersteps)))
    assert len(reports) == supersteps
    assert (found[3], found[4]) == (13.0, math.inf)


@pytest.mark.parametrize("model", MODELS)
def test_an_iteration_without_supersteps_is_an_error(env, model):
    with pytest.raises(InvalidProgramError, match="has a maximum of 0 iterations; it must be at least 1"):
        MODELS[model](weighted(env), 0)


@pytest.mark.parametrize("model", MODELS)
def test_an_edge_to_a_missing_vertex_is_an_error(env, model):
    graph = weighted(env, [*WEIGHTED, Edge(1, 99, 1.0)])
    with pytest.raises(InvalidProgramError, match="vertex 99, which the graph does not have"):
        MODELS[model](graph, 10)


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_graph_stays_empty(env, model):
    assert values(MODELS[model](Graph.from_collection([], [], env), 10)) == []


@pytest.mark.parametrize("model", ["vertex-centric", "batches"])
def test_ids_may_be_strings(env, model):
    graph = weighted(env).translate_graph_ids(str)
    assert values(MODELS[model](graph, 10)) == [(str(vertex), distance) for vertex, distance in DISTANCES]


# -- functions ---------------------------------------------------------------------------------------------------------


class CountMessages(pregel.ComputeFunction):
    def compute(self, vertex, messages):
        if self.get_superstep_number() == 1:
            self.send_message_to_all_neighbors(1)
        else:
            self.set_new_vertex_value(sum(messages))


class BatchCount(pregel.BatchComputeFunction):
    def compute(self, batch):
        if batch.superstep_number == 1:
            batch.state["value"] = np.zeros(batch.size, dtype=np.int64)
            batch.send_to_neighbors(np.ones(batch.size, dtype=np.int64))
        else:
            batch.state["value"] = batch.messages


@pytest.mark.parametrize(("function", "combiner"), [(CountMessages(), None), (BatchCount(), np.add)])
@pytest.mark.parametrize(
    ("direction", "counts"),
    [
        (EdgeDirection.OUT, [0, 1, 1]),
        (EdgeDirection.IN, [1, 1, 0]),
        (EdgeDirection.ALL, [1, 2, 1]),
    ],
)
def test_the_direction_says_which_neighbours_get_messages(env, function, combiner, direction, counts):
    graph = Graph.from_collection([(1, 0), (2, 0), (3, 0)], [(1, 2), (2, 3)], env)
    parameters = pregel.VertexCentricConfiguration().set_direction(direction)
    found = graph.run_vertex_centric_iteration(function, combiner, 2, parameters)
    assert [value for _, value in values(found)] == counts


class CollectLabels(pregel.BatchComputeFunction):
    def compute(self, batch):
        if batch.superstep_number == 1:
            batch.send_to_neighbors({"label": batch.ids, "double": batch.ids * 2})
        else:
            found = [[] for _ in range(batch.size)]
            columns = batch.message_columns
            for row, label, double in zip(batch.message_targets, columns["label"], columns["double"], strict=True):
                found[row].append((int(label), int(double)))
            batch.state["value"] = np.array([str(sorted(each)) for each in found], dtype=object)


def test_messages_of_batches_without_a_combiner_may_have_several_columns(env):
    graph = Graph.from_collection([(1, 0), (2, 0), (3, 0)], [(1, 3), (2, 3), (3, 1)], env)
    found = graph.run_vertex_centric_iteration(CollectLabels(), None, 2)
    assert values(found) == [(1, "[(3, 6)]"), (2, "[]"), (3, "[(1, 2), (2, 4)]")]


class Aggregating(pregel.ComputeFunction):
    def pre_superstep(self):
        self.total = self.get_iteration_aggregator("total")

    def compute(self, vertex, messages):
        self.total.aggregate(vertex.id)
        self.set_new_vertex_value((self.get_previous_iteration_aggregate("total"), self.get_number_of_vertices()))
        self.send_message_to_all_neighbors(None)


def test_aggregates_of_a_superstep_are_known_in_the_next(env):
    graph = Graph.from_collection([(1, None), (2, None)], [(1, 2), (2, 1)], env)
    parameters = pregel.VertexCentricConfiguration().register_aggregator("total", LongSumAggregator())
    reports = []
    env.add_superstep_listener(reports.append)
    assert values(graph.run_vertex_centric_iteration(Aggregating(), None, 1, parameters))[0] == (1, (None, 2))
    assert values(graph.run_vertex_centric_iteration(Aggregating(), None, 2, parameters))[0] == (1, (3, 2))
    assert reports[-1].aggregates == {"total": 3}


class ScatterChange(spargel.ScatterFunction):
    def send_messages(self, vertex):
        self.get_iteration_aggregator("sent").aggregate(len(self.get_edges()))
        self.send_message_to_all_neighbors((vertex.value, self.get_previous_iteration_aggregate("sent")))


class GatherChange(spargel.GatherFunction):
    def update_vertex(self, vertex, messages):
        self.set_new_vertex_value(
            (
                max(sent or 0 for _, sent in messages),
                self.get_in_degree(),
                self.get_out_degree(),
                self.get_number_of_vertices(),
            )
        )


def test_scatter_gather_knows_aggregates_degrees_and_the_number_of_vertices(env):
    graph = Graph.from_collection([(1, 0), (2, 0), (3, 0)], [(1, 2), (2, 3), (3, 1), (1, 3)], env)
    parameters = spargel.ScatterGatherConfiguration().register_aggregator("sent", LongSumAggregator())
    parameters.set_opt_degrees(True).set_opt_num_vertices(True)
    found = graph.run_scatter_gather_iteration(ScatterChange(), GatherChange(), 2, parameters)
    assert values(found) == [(1, (4, 1, 2, 3)), (2, (4, 1, 1, 3)), (3, (4, 2, 1, 3))]


class UseBroadcast(spargel.GatherFunction):
    def update_vertex(self, vertex, messages):
        self.set_new_vertex_value(sum(self.get_broadcast_set("bonus")) + self.get_in_degree())


def test_functions_read_broadcast_sets_and_options_are_off_by_default(env):
    graph = Graph.from_collection([(1, 0), (2, 0)], [(1, 2)], env)

    class Send(spargel.ScatterFunction):
        def send_messages(self, vertex):
            self.send_message_to_all_neighbors(len(self.get_broadcast_set("ids")))

    parameters = spargel.ScatterGatherConfiguration()
    parameters.add_broadcast_set_for_gather_function("bonus", [100, 5])
    parameters.add_broadcast_set_for_scatter_function("ids", graph.get_vertex_ids())
    found = graph.run_scatter_gather_iteration(Send(), UseBroadcast(), 1, parameters)
    assert values(found) == [(1, 0), (2, 104)]  # the degree is -1: not asked for


@pytest.mark.parametrize("name", ["nonsense", "total"])
def test_what_is_not_configured_is_an_error(env, name):
    class Ask(pregel.ComputeFunction):
        def compute(self, vertex, messages):
            (self.get_broadcast_set if name == "total" else self.get_iteration_aggregator)(name)

    with pytest.raises(InvalidProgramError, match=f"configuration of the iteration has no .* '{name}'"):
        Graph.from_collection([(1, 0)], [], env).run_vertex_centric_iteration(Ask(), None, 1)


def test_a_convergence_criterion_ends_an_iteration(env):
    class Grow(pregel.ComputeFunction):
        def compute(self, vertex, messages):
            self.set_new_vertex_value(vertex.value + 1)
            self.get_iteration_aggregator("largest").aggregate(vertex.value + 1)
            self.send_message_to(vertex.id, None)

    parameters = pregel.VertexCentricConfiguration().register_aggregator("largest", DoubleMaxAggregator())
    parameters.set_convergence_criterion(lambda superstep, aggregates: aggregates["largest"] >= 5)
    graph = Graph.from_collection([(1, 0), (2, 2)], [], env)
    assert values(graph.run_vertex_centric_iteration(Grow(), None, 50, parameters)) == [(1, 3), (2, 5)]


def test_a_function_that_fails_names_itself_and_the_vertex(env):
    class Fail(pregel.ComputeFunction):
        def compute(self, vertex, messages):
            raise ValueError("no luck")

    with pytest.raises(
        UserFunctionError, match=r"'Fail'\n  record: Vertex\(id=1, value=0.0\)\n(.*\n)*ValueError: no luck"
    ):
        weighted(env, [], [1]).run_vertex_centric_iteration(Fail(), None, 1)


def test_a_message_to_a_missing_vertex_is_an_error(env):
    class Lost(pregel.ComputeFunction):
        def compute(self, vertex, messages):
            self.send_message_to(99, None)

    with pytest.raises(InvalidProgramError, match="a message was sent to vertex 99, which the graph does not have"):
        weighted(env).run_vertex_centric_iteration(Lost(), None, 2)


def test_other_objects_than_functions_are_an_error(env):
    with pytest.raises(InvalidProgramError, match="the compute function is a str: pass an instance of a subclass of"):
        weighted(env).run_vertex_centric_iteration("compute", None, 1)
    with pytest.raises(InvalidProgramError, match=r"numpy.add, numpy.minimum, numpy.maximum or None"):
        weighted(env).run_vertex_centric_iteration(BatchCount(), np.multiply, 1)


# -- checkpoints -------------------------------------------------------------------------------------------------------


class InterruptError(Exception):
    """What ends a program in the middle of an iteration."""


@pytest.mark.parametrize("model", ["vertex-centric", "batches", "scatter-gather"])
def test_an_iteration_resumes_at_its_last_checkpoint(env, tmp_path, model):
    edges = [(number, number + 1, 1.0) for number in range(12)]
    seen = []

    def run(stop):
        def listener(report):
            seen.append(report.superstep)
            if report.superstep == stop:
                raise InterruptError

        fresh = ExecutionEnvironment.create_collections_environment(env.get_parallelism()).add_superstep_listener(
            listener
        )
        graph = weighted(fresh, edges, range(13), source=0)
        if model == "scatter-gather":
            parameters = spargel.ScatterGatherConfiguration().set_checkpoint(str(tmp_path / "c"), interval=2)
            return graph.run_scatter_gather_iteration(SendDistance(), TakeDistance(), 20, parameters)
        parameters = pregel.VertexCentricConfiguration().set_checkpoint(str(tmp_path / "c"), interval=2)
        function, combiner = (Distance(), Nearest()) if model == "vertex-centric" else (BatchDistance(), np.minimum)
        return graph.run_vertex_centric_iteration(function, combiner, 20, parameters)

    with pytest.raises(InterruptError):
        run(stop=6)
    assert seen == [1, 2, 3, 4, 5, 6]
    seen.clear()
    assert values(run(stop=None)) == [(number, float(number)) for number in range(13)]
    assert seen[0] == 5  # superstep 4 is the last one with a checkpoint
    assert list((tmp_path / "c").iterdir()) == []


def test_a_checkpoint_of_another_graph_is_an_error(env, tmp_path):
    def stop(report):
        if report.superstep == 2:
            raise InterruptError

    parameters = pregel.VertexCentricConfiguration().set_name("paths").set_checkpoint(str(tmp_path))
    env.add_superstep_listener(stop)
    with pytest.raises(InterruptError):
        weighted(env).run_vertex_centric_iteration(Distance(), None, 9, parameters)
    other = weighted(env).add_vertex(Vertex(7, 0.0))
    with pytest.raises(CheckpointError, match=r"to another iteration \(number of vertices 6, now 7\): delete"):
        other.run_vertex_centric_iteration(Distance(), None, 9, parameters)


def test_a_terminal_shows_every_superstep(env, capsys):
    env.print_progress()
    parameters = pregel.VertexCentricConfiguration().set_name("paths")
    weighted(env).run_vertex_centric_iteration(Distance(), Nearest(), 2, parameters)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == [
        "paths: superstep 1, 6 active vertices, 2 messages",
        "paths: superstep 2, 2 active vertices, 3 messages",
    ]
