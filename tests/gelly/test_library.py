"""Library methods agree with NetworkX on random graphs, or with a slow and obvious model."""

import math
from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.common.errors import InvalidProgramError
from penstock.gelly import Edge, ExecutionEnvironment, Graph, Vertex
from penstock.gelly import library as lib

SIZE = 9
EDGES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=30)
PARALLELISM = st.integers(1, 3)


def simple(edges):
    """Without loops and repeated edges."""
    return sorted({(source, target) for source, target in edges if source != target})


def graph_of(edges, parallelism, vertices=range(SIZE)):
    env = ExecutionEnvironment.create_collections_environment(parallelism)
    values = [(vertex, vertex) for vertex in vertices]
    return Graph.from_collection(values, [(*edge[:2], edge[2] if len(edge) > 2 else 1.0) for edge in edges], env)


def networkx_of(edges, kind=nx.DiGraph):
    reference = kind()
    reference.add_nodes_from(range(SIZE))
    reference.add_edges_from(edges)
    return reference


# -- scores ------------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_page_rank(edges, parallelism):
    edges = simple(edges)
    matrix = nx.google_matrix(networkx_of(edges), alpha=0.85, nodelist=range(SIZE))
    scores = np.full(SIZE, 1 / SIZE)
    for _ in range(500):
        scores = scores @ matrix
    expected = dict(enumerate(scores))
    algorithm = lib.PageRank(0.85, 500, 1e-11).set_include_zero_degree_vertices(True)
    found = dict(graph_of(edges, parallelism).run(algorithm).collect())
    assert found == pytest.approx(expected, abs=1e-8)


def test_page_rank_leaves_out_vertices_without_edges_unless_told():
    graph = graph_of([(0, 1)], 2, range(3))
    without = dict(graph.run(lib.PageRank(0.85, 100)).collect())
    assert sorted(without) == [0, 1]
    assert sum(without.values()) == pytest.approx(1)
    everything = graph.run(lib.PageRank(0.85, 100).set_include_zero_degree_vertices(True))
    assert sorted(result.vertex_id for result in everything.collect()) == [0, 1, 2]


def test_page_rank_does_the_given_number_of_iterations():
    found = dict(graph_of([(0, 1), (1, 0), (2, 0)], 1, range(3)).run(lib.PageRank(0.5, 1)).collect())
    assert found == pytest.approx({0: 1 / 6 + 1 / 3, 1: 1 / 6 + 1 / 6, 2: 1 / 6})


@settings(max_examples=25)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_hits(edges, parallelism):
    edges = simple(edges)
    assume(edges)
    matrix = nx.to_numpy_array(networkx_of(edges), nodelist=range(SIZE))
    authority = matrix.sum(axis=0)
    for _ in range(5):
        hub = matrix @ authority
        hub = hub / (math.sqrt((hub**2).sum()))
        authority = matrix.T @ hub
        authority = authority / math.sqrt((authority**2).sum())
    ends = {end for edge in edges for end in edge}
    found = graph_of(edges, parallelism).run(lib.HITS(5)).collect()
    assert {result.vertex_id for result in found} == ends
    for result in found:
        assert result.hub_score == pytest.approx(hub[result.vertex_id], abs=1e-9)
        assert result.authority_score == pytest.approx(authority[result.vertex_id], abs=1e-9)


def test_hits_ends_at_its_threshold():
    supersteps = []
    graph = graph_of([(0, 1), (1, 2), (2, 0), (0, 2)], 2, range(3))
    graph.env.add_superstep_listener(lambda report: supersteps.append(report.superstep))
    found = graph.run(lib.HITS(convergence_threshold=1e-10)).collect()
    matrix = nx.to_numpy_array(networkx_of([(0, 1), (1, 2), (2, 0), (0, 2)]), nodelist=range(3))
    _, vectors = np.linalg.eigh(matrix @ matrix.T)
    assert [result.hub_score for result in sorted(found)] == pytest.approx(np.abs(vectors[:, -1]).tolist(), abs=1e-6)
    assert 10 < supersteps[-1] < 1_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: lib.PageRank(1.5, 3),
        lambda: lib.PageRank(0.85),
        lambda: lib.PageRank(0.85, 0),
        lib.HITS,
        lambda: lib.HITS(0),
    ],
)
def test_settings_that_make_no_sense_are_an_error(make):
    with pytest.raises(InvalidProgramError, match=r"between 0 and 1|never end|at least one iteration"):
        make()


# -- components and paths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [lib.ConnectedComponents, lib.GSAConnectedComponents])
@settings(max_examples=25)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_connected_components(algorithm, edges, parallelism):
    expected = {
        vertex: min(component)
        for component in nx.connected_components(networkx_of(edges, nx.Graph))
        for vertex in component
    }
    assert dict(graph_of(edges, parallelism).run(algorithm(20)).collect()) == expected


def test_components_of_texts_need_the_general_algorithm():
    named = graph_of([(0, 1)], 2, range(3)).map_vertices(lambda vertex: f"v{vertex.id}")
    with pytest.raises(InvalidProgramError, match=r"use map_vertices.* or GSAConnectedComponents"):
        named.run(lib.ConnectedComponents(5))
    assert sorted(named.run(lib.GSAConnectedComponents(5)).collect()) == [(0, "v0"), (1, "v0"), (2, "v2")]


@pytest.mark.parametrize("algorithm", [lib.SingleSourceShortestPaths, lib.GSASingleSourceShortestPaths])
@settings(max_examples=25)
@given(edges=st.lists(st.tuples(*[st.integers(0, SIZE - 1)] * 2, st.integers(0, 9).map(float)), max_size=30))
def test_shortest_paths(algorithm, edges):
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(SIZE))
    reference.add_weighted_edges_from(edges)
    expected = nx.single_source_dijkstra_path_length(reference, 0)
    found = dict(graph_of(edges, 2).run(algorithm(0, 20)).collect())
    assert found == {vertex: expected.get(vertex, math.inf) for vertex in range(SIZE)}


def test_shortest_paths_have_no_more_edges_than_iterations():
    edges = [(0, 1), (1, 2), (2, 3)]
    for algorithm in (lib.SingleSourceShortestPaths, lib.GSASingleSourceShortestPaths):
        found = dict(graph_of(edges, 2, range(4)).run(algorithm(0, 2)).collect())
        assert found == {0: 0, 1: 1, 2: 2, 3: math.inf}


@pytest.mark.parametrize("algorithm", [lib.SingleSourceShortestPaths, lib.GSASingleSourceShortestPaths])
def test_negative_weights_are_an_error(algorithm):
    with pytest.raises(InvalidProgramError, match=r"shortest paths need edge values that are not negative.*-0.5"):
        graph_of([(0, 1, 1.0), (0, 2, -0.5)], 2).run(algorithm(0, 5))


def test_shortest_paths_without_weights_or_source_are_an_error():
    graph = graph_of([(0, 1)], 2)
    with pytest.raises(InvalidProgramError, match="does not have the source vertex 77"):
        graph.run(lib.SingleSourceShortestPaths(77, 5))
    with pytest.raises(InvalidProgramError, match="need numbers as edge values"):
        graph.map_edges(lambda edge: "far").run(lib.SingleSourceShortestPaths(0, 5))


# -- communities -------------------------------------------------------------------------------------------------------


def slow_label_propagation(edges, labels, iterations):
    labels, senders = dict(labels), set(labels)
    for _ in range(iterations):
        received = {}
        for source, target in edges:
            if source in senders:
                received.setdefault(target, []).append(labels[source])
        for vertex, found in received.items():
            counts = Counter(found)
            most = max(counts.values())
            best = max(label for label, count in counts.items() if count == most)
            labels[vertex] = max(best, labels[vertex]) if most == 1 else best
        senders = set(received)
    return labels


@settings(max_examples=40)
@given(
    edges=EDGES,
    parallelism=PARALLELISM,
    labels=st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE),
    text=st.booleans(),
)
def test_label_propagation(edges, parallelism, labels, text):
    labels = dict(enumerate(map(str, labels) if text else labels))
    graph = graph_of(edges, parallelism).map_vertices(lambda vertex: labels[vertex.id])
    found = dict(graph.run(lib.LabelPropagation(4)).collect())
    assert found == slow_label_propagation(edges, labels, 4)


def slow_community_detection(edges, labels, iterations, delta):
    both = [*edges, *[(target, source, value) for source, target, value in edges]]
    state, senders = {vertex: (label, 1.0) for vertex, label in labels.items()}, set(labels)
    for step in range(1, iterations + 1):
        received = {}
        for source, target, value in both:
            if source in senders:
                label, score = state[source]
                received.setdefault(target, {}).setdefault(label, []).append(score * value)
        for vertex, scores in received.items():
            label = min(scores, key=lambda each: (-sum(sorted(scores[each])), each))
            moved = label != state[vertex][0]
            state[vertex] = (label, max(scores[label]) - (delta / step if moved else 0))
        senders = set(received)
    return {vertex: label for vertex, (label, _) in state.items()}


@settings(max_examples=40)
@given(
    edges=st.lists(st.tuples(*[st.integers(0, SIZE - 1)] * 2, st.sampled_from([0.5, 1.0, 2.0])), max_size=20),
    parallelism=PARALLELISM,
)
def test_community_detection(edges, parallelism):
    labels = {vertex: vertex * 10 for vertex in range(SIZE)}
    graph = graph_of(edges, parallelism).map_vertices(lambda vertex: vertex.id * 10)
    found = graph.run(lib.CommunityDetection(3, 0.5))
    assert dict(found.get_vertices().collect()) == slow_community_detection(edges, labels, 3, 0.5)
    assert found.number_of_edges() == len(edges)


# -- triangles and what builds on them ---------------------------------------------------------------------------------


@settings(max_examples=40)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_triangles_and_clustering_coefficients(edges, parallelism):
    reference = networkx_of(simple(edges), nx.Graph)
    graph = graph_of(edges, parallelism)
    expected = sorted(
        triple
        for triple in combinations(range(SIZE), 3)
        if all(reference.has_edge(*pair) for pair in combinations(triple, 2))
    )
    assert sorted(graph.run(lib.TriangleListing()).collect()) == expected
    assert graph.run(lib.TriangleCount()) == len(expected)
    local = {result.vertex_id: result for result in graph.run(lib.LocalClusteringCoefficient()).collect()}
    assert {vertex: result.degree for vertex, result in local.items()} == {
        vertex: degree for vertex, degree in reference.degree if degree
    }
    scores = {
        vertex: result.get_local_clustering_coefficient_score() for vertex, result in local.items() if result.degree > 1
    }
    assert scores == pytest.approx({vertex: nx.clustering(reference, vertex) for vertex in scores})
    average = graph.run(lib.AverageClusteringCoefficient())
    assert average.vertex_count == len(scores)
    if scores:
        assert average.average_clustering_coefficient == pytest.approx(sum(scores.values()) / len(scores))
        whole = graph.run(lib.GlobalClusteringCoefficient())
        assert whole.get_global_clustering_coefficient_score() == pytest.approx(nx.transitivity(reference))


def test_scores_without_pairs_are_not_numbers():
    graph = graph_of([(0, 1)], 1)
    assert math.isnan(graph.run(lib.AverageClusteringCoefficient()).average_clustering_coefficient)
    assert math.isnan(graph.run(lib.GlobalClusteringCoefficient()).get_global_clustering_coefficient_score())
    assert math.isnan(graph.run(lib.LocalClusteringCoefficient()).collect()[0].get_local_clustering_coefficient_score())


@settings(max_examples=60)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_triadic_census(edges, parallelism):
    edges = simple(edges)
    expected = nx.triadic_census(networkx_of(edges))
    graph = graph_of(edges, parallelism)
    assert graph.run(lib.DirectedTriadicCensus()) == expected
    reference = networkx_of(edges, nx.Graph)
    pairs = Counter(
        sum(reference.has_edge(*pair) for pair in combinations(triple, 2)) for triple in combinations(range(SIZE), 3)
    )
    assert graph.run(lib.TriadicCensus()) == {number: pairs[number] for number in range(4)}


@settings(max_examples=40)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_vertex_metrics(edges, parallelism):
    reference = networkx_of(simple(edges))
    undirected = reference.to_undirected()
    degrees = [degree for _, degree in undirected.degree]
    found = graph_of(edges, parallelism).run(lib.VertexMetrics().set_include_zero_degree_vertices(True))
    assert found.number_of_vertices == SIZE
    assert found.number_of_edges == reference.number_of_edges()
    assert found.number_of_bidirectional_edges == reference.number_of_edges() - undirected.number_of_edges()
    assert found.number_of_triplets == sum(math.comb(degree, 2) for degree in degrees)
    assert found.maximum_triplets == math.comb(max(degrees), 2)
    assert found.maximum_degree == max(degrees)
    assert found.maximum_out_degree == max(degree for _, degree in reference.out_degree)
    assert found.maximum_in_degree == max(degree for _, degree in reference.in_degree)
    assert found.get_density() == pytest.approx(nx.density(reference))


def test_vertex_metrics_leave_out_vertices_without_edges_unless_told():
    found = graph_of([(0, 1)], 2, range(3)).run(lib.VertexMetrics())
    assert found.number_of_vertices == 2
    assert found.get_average_degree() == 0.5
    assert math.isnan(graph_of([], 1).run(lib.VertexMetrics()).get_density())


@settings(max_examples=40)
@given(edges=EDGES, parallelism=PARALLELISM)
def test_similarity(edges, parallelism):
    reference = networkx_of(simple(edges), nx.Graph)
    graph = graph_of(edges, parallelism)
    pairs = [pair for pair in combinations(range(SIZE), 2) if any(True for _ in nx.common_neighbors(reference, *pair))]
    found = {result[:2]: result.get_jaccard_index_score() for result in graph.run(lib.JaccardIndex()).collect()}
    assert found == pytest.approx({(u, v): score for u, v, score in nx.jaccard_coefficient(reference, pairs)})
    scores = {result[:2]: result.adamic_adar_score for result in graph.run(lib.AdamicAdar()).collect()}
    assert scores == pytest.approx({(u, v): score for u, v, score in nx.adamic_adar_index(reference, pairs)})


def test_similarity_can_be_limited():
    star = [(0, leaf) for leaf in (1, 2, 3)]
    graph = graph_of([*star, (4, 1), (4, 2), (5, 3)], 2)
    every = {result[:2]: result.get_jaccard_index_score() for result in graph.run(lib.JaccardIndex()).collect()}
    high = graph.run(lib.JaccardIndex().set_minimum_score(1, 2)).collect()
    assert {result[:2] for result in high} == {pair for pair, score in every.items() if score >= 0.5}
    low = graph.run(lib.JaccardIndex().set_maximum_score(1, 2)).collect()
    assert {result[:2] for result in low} == {pair for pair, score in every.items() if score < 0.5}
    scores = {result[:2]: result.adamic_adar_score for result in graph.run(lib.AdamicAdar()).collect()}
    average = sum(scores.values()) / len(scores)
    above = graph.run(lib.AdamicAdar().set_minimum_ratio(1.0)).collect()
    assert {result[:2] for result in above} == {pair for pair, score in scores.items() if score >= average}
    best = graph.run(lib.AdamicAdar().set_minimum_score(max(scores.values()))).collect()
    assert {result[:2] for result in best} == {pair for pair, score in scores.items() if score == max(scores.values())}


def test_ids_may_be_strings_everywhere():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    env = ExecutionEnvironment.create_collections_environment(3)
    graph = Graph.from_collection(edges=[(*edge, 1.0) for edge in edges], env=env)
    assert graph.run(lib.TriangleListing()).collect() == [("a", "b", "c")]
    assert dict(graph.run(lib.SingleSourceShortestPaths("a", 9)).collect())["d"] == 3.0
    assert len(graph.run(lib.PageRank(0.85, 5)).collect()) == 4
    assert len(graph.run(lib.JaccardIndex()).collect()) == 5


@pytest.mark.parametrize(
    "algorithm",
    [
        lib.PageRank(0.85, 3), lib.HITS(3), lib.ConnectedComponents(3), lib.LabelPropagation(3), lib.TriangleListing(),
        lib.LocalClusteringCoefficient(), lib.JaccardIndex(), lib.AdamicAdar(),
    ],
)  # fmt: skip
def test_an_empty_graph_has_no_results(algorithm):
    env = ExecutionEnvironment.create_collections_environment(2)
    assert Graph.from_collection([], [], env).run(algorithm).collect() == []


def test_summarization():
    vertices = [Vertex(1, "city"), Vertex(2, "city"), Vertex(3, "town"), Vertex(4, "town"), Vertex(5, ("odd", 1))]
    edges = [
        Edge(1, 2, "road"),
        Edge(2, 1, "road"),
        Edge(1, 3, "rail"),
        Edge(2, 4, "rail"),
        Edge(2, 3, "road"),
        Edge(5, 5),
    ]
    for parallelism in (1, 3):
        env = ExecutionEnvironment.create_collections_environment(parallelism)
        summary = Graph.from_collection(vertices, edges, env).run(lib.Summarization())
        assert sorted(summary.get_vertices().collect()) == [(1, ("city", 2)), (3, ("town", 2)), (5, (("odd", 1), 1))]
        assert sorted(summary.get_edges().collect(), key=repr) == [
            (1, 1, ("road", 2)), (1, 3, ("rail", 2)), (1, 3, ("road", 1)), (5, 5, (None, 1)),
        ]  # fmt: skip
