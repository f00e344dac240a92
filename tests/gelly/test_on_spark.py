"""Graphs on Spark give what they give in this process, and become DataFrames."""

import numpy as np
import pytest

from penstock.gelly import Edge, EdgeDirection, ExecutionEnvironment, Graph, Vertex

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
