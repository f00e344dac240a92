"""Graphs on Spark. The rules are tested in this process; here is what Spark adds, and one walk through everything."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.common.errors import InvalidProgramError, UserFunctionError
from penstock.gelly import Edge, EdgeDirection, ExecutionEnvironment, Graph, Vertex, pregel
from penstock.gelly.generator import RMatGraph
from penstock.gelly.library import ConnectedComponents, PageRank, SingleSourceShortestPaths, TriangleCount
from penstock.gelly.partitions import DRIVER

pytestmark = pytest.mark.spark

VERTICES = [Vertex(number, number * 10) for number in range(1, 6)]
EDGES = [Edge(1, 2, 12.0), Edge(1, 3, 13.0), Edge(2, 3, 23.0), Edge(3, 4, 34.0), Edge(3, 5, 35.0), Edge(4, 5, 45.0)]


@pytest.fixture
def env(spark):
    return ExecutionEnvironment.get_execution_environment(spark, parallelism=2)


def test_transformations_give_what_they_give_in_this_process(env):
    def results(env):
        graph = Graph.from_collection(VERTICES, EDGES, env).filter_on_vertices(lambda vertex: vertex.id != 4)
        changed = graph.map_vertices(lambda vertex: (vertex.value, "x")).add_edge(Vertex(9), Vertex(1), 91.0)
        return (
            sorted(changed.get_triplets().collect(), key=repr),
            sorted(graph.reduce_on_neighbors(np.add, EdgeDirection.ALL).collect()),
            graph.number_of_edges(),
        )

    assert results(env) == results(ExecutionEnvironment.create_collections_environment(3))


def test_dataframes_become_graphs_and_results_dataframes(env, spark):
    frame = spark.createDataFrame([("a", "b", 1.5), ("b", "c", 2.5)], "src string, dst string, weight double")
    graph = Graph.from_dataframes(None, frame, env, vertex_initializer=len)
    pairs = graph.map_vertices(lambda vertex: (vertex.value, vertex.id)).get_vertices().to_dataframe()
    assert pairs.schema.simpleString() == "struct<id:string,value:struct<f0:bigint,f1:string>>"
    assert sorted(row["value"]["f1"] for row in pairs.collect()) == ["a", "b", "c"]
    assert sorted(tuple(row) for row in graph.get_edges().to_dataframe().collect()) == sorted(
        map(tuple, frame.collect())
    )


def test_errors_arrive_without_the_noise_of_spark(env):
    graph = Graph.from_collection(VERTICES, [*EDGES, Edge(1, 99, 0.0)], env)
    with pytest.raises(
        UserFunctionError, match=r"'map_vertices'\n  record: Vertex\(id=3, value=30\)\n(.*\n)*Zero"
    ) as error:
        graph.map_vertices(lambda vertex: 1 / (vertex.id - 3)).get_vertices().collect()
    assert "java" not in str(error.value)
    with pytest.raises(InvalidProgramError, match="an edge refers to vertex 99, which the graph does not have"):
        graph.run(ConnectedComponents(5))


def test_supersteps_run_in_the_same_processes(env):
    def kernel(channel, *inputs):
        started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        yield channel, "state", pa.table({"n": [1]})
        yield DRIVER, "report", pa.table({"started": [int(started)]})

    carrier = env.engine.exchange(kernel, [])
    newest = []
    for _ in range(8):
        carrier = env.engine.exchange(kernel, [carrier])
        newest.append(max(table["started"][0].as_py() for table in carrier.report()))
    assert max(newest[4:]) <= max(newest[:4])


class Distance(pregel.ComputeFunction):
    def compute(self, vertex, messages):
        best = min(messages, default=vertex.value)
        if best < vertex.value or (self.get_superstep_number() == 1 and best < math.inf):
            self.set_new_vertex_value(best)
            for edge in self.get_edges():
                self.send_message_to(edge.target, best + edge.value)


class InterruptError(Exception):
    """What ends a program in the middle of an iteration."""


def test_an_iteration_resumes_at_its_last_checkpoint(spark, tmp_path):
    seen = []

    def run(stop):
        def listener(report):
            seen.append(report.superstep)
            if report.superstep == stop:
                raise InterruptError

        env = ExecutionEnvironment.get_execution_environment(spark, parallelism=2).add_superstep_listener(listener)
        chain = [(number, number + 1, 1.0) for number in range(4)]
        start = {0: 0.0}
        graph = Graph.from_collection(
            edges=chain, env=env, vertex_initializer=lambda number: start.get(number, math.inf)
        )
        parameters = pregel.VertexCentricConfiguration().set_checkpoint(f"file://{tmp_path}/paths")
        return graph.run_vertex_centric_iteration(Distance(), None, 20, parameters)

    with pytest.raises(InterruptError):
        run(stop=3)
    seen.clear()
    assert sorted(run(stop=None).get_vertices().collect()) == [(number, float(number)) for number in range(5)]
    assert seen == [3, 4, 5]
    assert [path.name for path in (tmp_path / "paths").iterdir() if not path.name.startswith(".")] == []


def test_library_methods_give_what_they_give_in_this_process(env):
    def results(env):
        graph = RMatGraph(env, 64, 300).generate().map_edges(lambda edge: 1.0).map_vertices(lambda vertex: vertex.id)
        return (
            dict(graph.run(PageRank(0.85, 3)).collect()),
            dict(graph.run(ConnectedComponents(20)).collect()),
            dict(graph.run(SingleSourceShortestPaths(0, 20)).collect()),
            graph.run(TriangleCount()),
        )

    found, expected = results(env), results(ExecutionEnvironment.create_collections_environment(3))
    assert found[0] == pytest.approx(expected[0])
    assert found[1:] == expected[1:]
