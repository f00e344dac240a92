"""Graphs: where they come from, what they know, how they are transformed."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, TypeMismatchError, UnsupportedFeatureError, UserFunctionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.gelly import (
    Edge,
    EdgeDirection,
    EdgesFunction,
    EdgesFunctionWithVertexValue,
    ExecutionEnvironment,
    Graph,
    InvalidVertexIdsValidator,
    NeighborsFunction,
    NeighborsFunctionWithVertexValue,
    Triplet,
    Vertex,
    batch,
)
from penstock.table import StreamTableEnvironment
from penstock.testing import MiniCluster

VERTICES = [Vertex(1, 10), Vertex(2, 20), Vertex(3, 30), Vertex(4, 40), Vertex(5, 50)]
EDGES = [
    Edge(1, 2, 12.0),
    Edge(1, 3, 13.0),
    Edge(2, 3, 23.0),
    Edge(3, 4, 34.0),
    Edge(3, 5, 35.0),
    Edge(4, 5, 45.0),
    Edge(5, 1, 51.0),
]


@pytest.fixture
def graph(env):
    return Graph.from_collection(VERTICES, EDGES, env)


def vertices(graph):
    return sorted(graph.get_vertices().collect())


def edges(graph):
    return sorted(graph.get_edges().collect())


# -- creation ----------------------------------------------------------------------------------------------------------


def test_a_graph_has_the_vertices_and_edges_it_is_made_of(graph):
    assert vertices(graph) == VERTICES
    assert edges(graph) == EDGES


def test_without_vertices_a_graph_has_those_of_its_edges(env):
    graph = Graph.from_collection(edges=[(1, 2), (2, 7)], env=env, vertex_initializer=lambda number: number * 10)
    assert vertices(graph) == [(1, 10), (2, 20), (7, 70)]
    assert edges(graph) == [(1, 2, None), (2, 7, None)]


def test_ids_may_be_strings(env):
    graph = Graph.from_collection([("a", 1), ("ö", 2)], [("a", "ö", (1, "x"))], env)
    assert edges(graph) == [("a", "ö", (1, "x"))]
    assert sorted(graph.in_degrees().collect()) == [("a", 0), ("ö", 1)]


def test_arrow_tables_are_taken_by_name_or_by_position(env):
    named = pa.table({"value": [0.5], "target": [2], "source": [1]})
    by_position = pa.table({"src": pa.array([1], pa.int32()), "dst": pa.array([2], pa.int32()), "weight": [0.5]})
    for table in (named, by_position):
        assert edges(Graph.from_collection(edges=table, env=env)) == [(1, 2, 0.5)]


def test_bounded_streams_can_be_graphs_and_graphs_streams(env):
    streams = StreamExecutionEnvironment(executor=MiniCluster())
    graph = Graph.from_collection(edges=streams.from_collection([(1, 2, "x"), (2, 3, "y")]), env=env)
    back = graph.get_edges().to_stream(streams).map(lambda edge: edge.value * 2)
    assert sorted(back.execute_and_collect()) == ["xx", "yy"]


def test_tables_and_pandas_can_be_graphs(env):
    tables = StreamTableEnvironment.create(StreamExecutionEnvironment(executor=MiniCluster()))
    table = tables.from_elements([(1, 2, 0.5), (2, 3, 1.5)], ["a", "b", "weight"])
    assert edges(Graph.from_collection(edges=table, env=env)) == [(1, 2, 0.5), (2, 3, 1.5)]
    frame = pd.DataFrame({"target": [2], "source": [1]})
    assert edges(Graph.from_collection(edges=frame, env=env)) == [(1, 2, None)]


def test_rows_can_be_edges(env):
    assert edges(Graph.from_collection(edges=[Row(1, 2, 0.5)], env=env)) == [(1, 2, 0.5)]


def test_csv_files_with_and_without_values(env, tmp_path):
    (tmp_path / "edges.csv").write_text("from;to;weight\n1;2;0.5\n2;3;1.5\n")
    (tmp_path / "vertices.csv").write_text("id;name\n1;a\n2;b\n3;c\n")
    graph = Graph.from_csv(
        str(tmp_path / "edges.csv"),
        str(tmp_path / "vertices.csv"),
        env,
        vertex_type=str,
        edge_type=float,
        delimiter=";",
        skip_first_line=True,
    )
    assert vertices(graph) == [(1, "a"), (2, "b"), (3, "c")]
    assert edges(graph) == [(1, 2, 0.5), (2, 3, 1.5)]
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "one").write_text("a,b\n")
    (tmp_path / "pairs" / "two").write_text("b,c\n")
    graph = Graph.from_csv(str(tmp_path / "pairs"), env=env, id_type=str)
    assert edges(graph) == [("a", "b", None), ("b", "c", None)]


def test_a_csv_file_of_other_types_is_an_error(env, tmp_path):
    (tmp_path / "edges.csv").write_text("1,two\n")
    with pytest.raises(InvalidProgramError, match=r"edges.csv does not have the columns source, target"):
        Graph.from_csv(str(tmp_path / "edges.csv"), env=env)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(1.5, 2)], "edges: ids are 64-bit integers or strings, all of the same type; one of them is 1.5"),
        ([(1, 2), ("a", 2)], "all of the same type; one of them is"),
        ([(None, 2)], "missing ids"),
        ([(1,)], r"record \(1,\) does not fit: it needs 2 to 3 fields \(source, target, value\)"),
        (["12"], "record '12' does not fit"),
        (17, "17 is not a collection of records"),
    ],
)
def test_edges_that_are_no_edges_are_an_error(env, given, message):
    with pytest.raises(InvalidProgramError, match=message):
        Graph.from_collection(edges=given, env=env).number_of_edges()


def test_vertices_with_the_same_id_are_an_error(env):
    with pytest.raises(InvalidProgramError, match="1 ids belong to more than one vertex of the input, for instance 7"):
        Graph.from_collection([(7, "a"), (8, "b"), (7, "c")], [], env).number_of_vertices()


def test_ids_of_vertices_and_edges_must_have_the_same_type(env):
    graph = Graph.from_collection([("1", 0), ("2", 0)], [(1, 2)], env)
    with pytest.raises(InvalidProgramError, match="integers in one place and strings in another"):
        graph.get_triplets().collect()


# -- properties --------------------------------------------------------------------------------------------------------


def test_numbers_ids_and_degrees(graph):
    assert (graph.number_of_vertices(), graph.number_of_edges()) == (5, 7)
    assert sorted(graph.get_vertex_ids().collect()) == [1, 2, 3, 4, 5]
    assert sorted(graph.get_edge_ids().collect()) == [edge[:2] for edge in EDGES]
    assert sorted(graph.out_degrees().collect()) == [(1, 2), (2, 1), (3, 2), (4, 1), (5, 1)]
    assert sorted(graph.in_degrees().collect()) == [(1, 1), (2, 1), (3, 2), (4, 1), (5, 2)]
    assert sorted(graph.get_degrees().collect()) == [(1, 3), (2, 2), (3, 4), (4, 2), (5, 3)]


def test_a_vertex_without_edges_has_degree_zero(env):
    assert Graph.from_collection([(1, None)], [], env).get_degrees().collect() == [(1, 0)]


def test_triplets_have_the_values_of_both_ends(graph):
    assert min(graph.get_triplets().collect()) == Triplet(1, 2, 10, 20, 12.0)


def test_the_validator_finds_edges_to_missing_vertices(env, graph):
    assert graph.validate(InvalidVertexIdsValidator())
    broken = Graph.from_collection(VERTICES, [*EDGES, (5, 9, 0.0), (8, 1, 0.0)], env)
    assert not broken.validate(InvalidVertexIdsValidator())
    assert InvalidVertexIdsValidator().missing_ids(broken) == [8, 9]


@pytest.mark.parametrize("read", ["get_triplets", "in_degrees"])
def test_an_edge_to_a_missing_vertex_is_an_error_where_the_vertex_is_needed(env, read):
    broken = Graph.from_collection([(1, 0)], [(1, 9)], env)
    with pytest.raises(InvalidProgramError, match="an edge refers to vertex 9, which the graph does not have"):
        getattr(broken, read)().collect()


# -- transformations ---------------------------------------------------------------------------------------------------


def test_maps_change_values(graph):
    assert vertices(graph.map_vertices(lambda vertex: (vertex.id, str(vertex.value))))[0] == (1, (1, "10"))
    assert edges(graph.map_edges(lambda edge: edge.value - edge.target))[0] == (1, 2, 10.0)
    assert vertices(graph.translate_vertex_values(lambda value: value + 1))[0] == (1, 11)
    assert edges(graph.translate_edge_values(int))[0] == (1, 2, 12)


def test_functions_on_batches_get_tables(graph):
    doubled = graph.map_vertices(batch(lambda table: pc.multiply(table["value"], 2)))
    assert vertices(doubled)[0] == (1, 20)
    kept = graph.filter_on_edges(batch(lambda table: table["value"].to_numpy() > 40))
    assert edges(kept) == [(4, 5, 45.0), (5, 1, 51.0)]


def test_a_function_on_batches_must_return_a_value_for_each_row(env):
    graph = Graph.from_collection(edges=[(1, 2)], env=env)
    with pytest.raises(TypeMismatchError, match="map_edges returned 3 values for a batch of 1 rows"):
        graph.map_edges(batch(lambda table: [1, 2, 3])).get_edges().collect()
    with pytest.raises(TypeMismatchError, match="map_edges works on batches and must return one value per row"):
        graph.map_edges(batch(lambda table: 5)).get_edges().collect()


def test_a_function_that_fails_names_itself_and_the_record(graph):
    with pytest.raises(UserFunctionError, match=r"'map_vertices'\n  record: Vertex\(id=3, value=30\)\n(.*\n)*ZeroDiv"):
        graph.map_vertices(lambda vertex: 1 / (vertex.id - 3)).get_vertices().collect()


def test_ids_can_be_translated(graph):
    named = graph.translate_graph_ids(lambda number: f"v{number}")
    assert vertices(named)[0] == ("v1", 10)
    assert edges(named)[0] == ("v1", "v2", 12.0)
    with pytest.raises(InvalidProgramError, match="more than one vertex"):
        graph.translate_graph_ids(lambda number: 0).number_of_vertices()


def test_filters_keep_edges_between_kept_vertices(graph):
    assert edges(graph.filter_on_vertices(lambda vertex: vertex.id != 3)) == [(1, 2, 12.0), (4, 5, 45.0), (5, 1, 51.0)]
    assert vertices(graph.filter_on_edges(lambda edge: edge.value > 40)) == VERTICES
    part = graph.subgraph(lambda vertex: vertex.id > 2, lambda edge: edge.value < 40)
    assert (vertices(part), edges(part)) == (VERTICES[2:], [(3, 4, 34.0), (3, 5, 35.0)])


def test_joins_combine_values_and_leave_the_rest(env, graph):
    joined = graph.join_with_vertices([(1, "one"), (3, "three"), (9, "nine")], lambda value, other: f"{value}{other}")
    assert vertices(joined) == [(1, "10one"), (2, 20), (3, "30three"), (4, 40), (5, 50)]
    joined = graph.join_with_edges([(1, 2, 1.0), (5, 1, 2.0), (2, 1, 9.0)], lambda value, other: value + other)
    assert edges(joined)[0] == (1, 2, 13.0)
    assert edges(joined)[-1] == (5, 1, 53.0)
    on_source = graph.join_with_edges_on_source(graph.out_degrees(), lambda value, degree: value / degree)
    assert edges(on_source)[:3] == [(1, 2, 6.0), (1, 3, 6.5), (2, 3, 23.0)]
    on_target = graph.join_with_edges_on_target([(5, 1.0)], lambda value, other: -other)
    assert [edge for edge in edges(on_target) if edge.value < 0] == [(3, 5, -1.0), (4, 5, -1.0)]


def test_reverse_and_undirected(graph):
    assert edges(graph.reverse()) == sorted(edge.reverse() for edge in EDGES)
    assert edges(graph.get_undirected()) == sorted(EDGES + [edge.reverse() for edge in EDGES])


def test_set_operations(env, graph):
    other = Graph.from_collection([(5, 0), (6, 60)], [(5, 6, 56.0), (3, 5, 35.0)], env)
    both = graph.union(other)
    assert vertices(both) == [*VERTICES, (6, 60)]
    assert len(edges(both)) == 9
    rest = graph.difference(other)
    assert (vertices(rest), edges(rest)) == (VERTICES[:4], [edge for edge in EDGES if 5 not in edge[:2]])


@pytest.mark.parametrize(("distinct", "times"), [(True, 1), (False, 2)])
def test_an_intersection_takes_equal_edges_once_or_as_often_as_both_have_them(env, distinct, times):
    one = Graph.from_collection(edges=[(1, 2, 5), (1, 2, 5), (1, 2, 5), (1, 3, 6)], env=env)
    two = Graph.from_collection(edges=[(1, 2, 5), (1, 2, 5), (1, 3, 7)], env=env)
    common = one.intersect(two, distinct)
    assert edges(common) == [(1, 2, 5)] * times
    assert vertices(common) == [(1, None), (2, None)]


def test_vertices_and_edges_can_be_added(graph):
    assert vertices(graph.add_vertex(Vertex(6, 60)).add_vertex(Vertex(1, 0))) == [*VERTICES, (6, 60)]
    more = graph.add_edge(Vertex(6, 60), Vertex(1, 0), 61.0)
    assert (vertices(more), edges(more)) == ([*VERTICES, (6, 60)], [*EDGES, (6, 1, 61.0)])
    assert edges(graph.add_edges([(5, 2, 52.0), (5, 9, 59.0), (9, 5, 95.0)])) == [*EDGES, (5, 2, 52.0)]


def test_vertices_and_edges_can_be_removed(graph):
    fewer = graph.remove_vertices([Vertex(3), Vertex(9)])
    assert vertices(fewer) == [vertex for vertex in VERTICES if vertex.id != 3]
    assert edges(fewer) == [edge for edge in EDGES if 3 not in edge[:2]]
    assert edges(graph.remove_edge(Edge(1, 2))) == EDGES[1:]
    assert edges(graph.remove_edges([(1, 2), (2, 1), (5, 1)])) == EDGES[1:-1]


# -- neighbourhoods ----------------------------------------------------------------------------------------------------


def test_edge_values_are_reduced_by_vertex(graph):
    smallest = [(1, 12.0), (2, 23.0), (3, 34.0), (4, 45.0), (5, 51.0)]
    assert sorted(graph.reduce_on_edges(min, EdgeDirection.OUT).collect()) == smallest
    assert sorted(graph.reduce_on_edges(np.minimum, EdgeDirection.OUT).collect()) == smallest
    largest = [(1, 51.0), (2, 12.0), (3, 23.0), (4, 34.0), (5, 45.0)]
    assert sorted(graph.reduce_on_edges(max, EdgeDirection.IN).collect()) == largest


def test_values_of_neighbours_are_reduced_by_vertex(graph):
    def plus(one, two):
        return one + two

    for function in (plus, np.add):
        assert sorted(graph.reduce_on_neighbors(function, EdgeDirection.IN).collect()) == [
            (1, 50), (2, 10), (3, 30), (4, 30), (5, 70),
        ]  # fmt: skip
        assert sorted(graph.reduce_on_neighbors(function, EdgeDirection.ALL).collect()) == [
            (1, 100), (2, 40), (3, 120), (4, 80), (5, 80),
        ]  # fmt: skip


class HeavyEdges(EdgesFunction):
    def iterate_edges(self, edges):
        for vertex, edge in edges:
            if edge.value > 40:
                yield vertex, edge.target


class EdgesOfSmallVertices(EdgesFunctionWithVertexValue):
    def iterate_edges(self, vertex, edges):
        if vertex.value < 30:
            yield vertex.id, sorted(edge.target for edge in edges)


class LargerNeighbors(NeighborsFunction):
    def iterate_neighbors(self, neighbors):
        for vertex, edge, neighbor in neighbors:
            if neighbor.value > 40:
                yield vertex, neighbor.id, edge.value


class Difference(NeighborsFunctionWithVertexValue):
    def iterate_neighbors(self, vertex, neighbors):
        yield vertex.id, sum(neighbor.value for _, neighbor in neighbors) - vertex.value


def test_functions_on_edges(graph):
    assert sorted(graph.group_reduce_on_edges(HeavyEdges(), EdgeDirection.OUT).collect()) == [(4, 5), (5, 1)]
    assert sorted(graph.group_reduce_on_edges(HeavyEdges(), EdgeDirection.ALL).collect()) == [
        (1, 1), (4, 5), (5, 1), (5, 5),
    ]  # fmt: skip
    found = graph.group_reduce_on_edges(EdgesOfSmallVertices(), EdgeDirection.OUT).collect()
    assert sorted(found) == [(1, [2, 3]), (2, [3])]


def test_functions_on_neighbours(graph):
    found = graph.group_reduce_on_neighbors(LargerNeighbors(), EdgeDirection.OUT).collect()
    assert sorted(found) == [(3, 5, 35.0), (4, 5, 45.0)]
    found = graph.group_reduce_on_neighbors(Difference(), EdgeDirection.OUT).collect()
    assert sorted(found) == [(1, 40), (2, 10), (3, 60), (4, 10), (5, -40)]


def test_a_plain_function_of_a_neighbourhood_that_fails_names_the_vertex(graph):
    def fail(edges):
        yield edges[0].nonsense

    with pytest.raises(UserFunctionError, match=r"'group_reduce_on_edges'\n  record: \d"):
        graph.group_reduce_on_edges(fail, EdgeDirection.OUT).collect()


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_as_arrow_have_structs_for_tuples(graph):
    table = graph.map_vertices(lambda vertex: (vertex.id, "x")).get_vertices().to_arrow()
    assert table.sort_by("id").to_pylist()[0] == {"id": 1, "value": {"f0": 1, "f1": "x"}}


def test_results_can_be_counted_cut_iterated_and_printed(env, capsys):
    graph = Graph.from_collection([(1, "a")], [], env)
    assert (graph.get_vertices().count(), graph.get_edges().count()) == (1, 0)
    assert graph.get_vertices().first(5) == list(graph.get_vertices()) == [(1, "a")]
    graph.get_vertices().print()
    assert capsys.readouterr().out == "Vertex(id=1, value='a')\n"


def test_without_spark_there_are_no_dataframes(graph):
    with pytest.raises(UnsupportedFeatureError, match=r"use to_arrow\(\)"):
        graph.get_vertices().to_dataframe()


def test_an_environment_needs_a_partition():
    with pytest.raises(InvalidProgramError, match="the parallelism is 0"):
        ExecutionEnvironment.create_collections_environment(0)
