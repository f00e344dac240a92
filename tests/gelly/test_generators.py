"""Generators make the graphs that NetworkX makes."""

import networkx as nx
import pytest

from penstock.common.errors import InvalidProgramError
from penstock.gelly import ExecutionEnvironment
from penstock.gelly import generator as gen


def pairs(graph):
    return sorted(graph.get_edge_ids().collect())


def both_ways(reference):
    return sorted([*reference.edges, *[(target, source) for source, target in reference.edges]])


def on_grid(*sizes, periodic=False):
    reference = nx.grid_graph(list(reversed(sizes)), periodic=periodic)
    return nx.relabel_nodes(reference, {node: number for number, node in enumerate(sorted(reference))})


GRAPHS = [
    ("complete", lambda env: gen.CompleteGraph(env, 6), nx.complete_graph(6)),
    (
        "circulant",
        lambda env: gen.CirculantGraph(env, 7).add_range(1, 2).add_range(5, 2),
        nx.circulant_graph(7, [1, 2]),
    ),
    ("cycle", lambda env: gen.CycleGraph(env, 5), nx.cycle_graph(5)),
    ("echo", lambda env: gen.EchoGraph(env, 8, 3), nx.circulant_graph(8, [3, 4])),
    ("empty", lambda env: gen.EmptyGraph(env, 4), nx.empty_graph(4)),
    ("no vertices", lambda env: gen.EmptyGraph(env, 0), nx.empty_graph(0)),
    ("grid", lambda env: gen.GridGraph(env).add_dimension(3, False).add_dimension(4, False), on_grid(3, 4)),
    ("ring of 2", lambda env: gen.GridGraph(env).add_dimension(2, True), nx.path_graph(2)),
    (
        "torus",
        lambda env: gen.GridGraph(env).add_dimension(3, True).add_dimension(4, True),
        on_grid(3, 4, periodic=True),
    ),
    ("hypercube", lambda env: gen.HypercubeGraph(env, 3), on_grid(2, 2, 2)),
    ("path", lambda env: gen.PathGraph(env, 5), nx.path_graph(5)),
    ("singleton edges", lambda env: gen.SingletonEdgeGraph(env, 3), nx.Graph([(0, 1), (2, 3), (4, 5)])),
    ("star", lambda env: gen.StarGraph(env, 5), nx.star_graph(4)),
]


@pytest.mark.parametrize(("make", "reference"), [each[1:] for each in GRAPHS], ids=[each[0] for each in GRAPHS])
def test_a_generator_makes_vertices_and_edges_in_both_directions(env, make, reference):
    graph = make(env).generate()
    assert sorted(graph.get_vertex_ids().collect()) == sorted(reference)
    assert pairs(graph) == both_ways(reference)


@pytest.mark.parametrize("noise", [False, True])
def test_a_random_graph_depends_on_the_seed_and_not_on_the_parallelism(noise):
    def edges(parallelism, seed):
        env = ExecutionEnvironment.create_collections_environment(parallelism)
        return pairs(gen.RMatGraph(env, 1_000, 70_000, seed=seed).set_noise(noise).generate())

    one = edges(1, 5)
    assert len(one) == 70_000
    assert max(max(edge) for edge in one) < 1_024
    assert edges(3, 5) == one
    assert edges(1, 6) != one


def test_a_random_graph_has_the_vertices_of_its_edges_and_follows_its_constants(env):
    graph = gen.RMatGraph(env, 64, 500).set_constants(1.0, 0.0, 0.0).generate()
    assert graph.get_vertex_ids().collect() == [0]
    skewed = gen.RMatGraph(env, 64, 5_000).generate()
    degrees = dict(skewed.out_degrees().collect())
    assert degrees[0] > 10 * 5_000 / 64


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda env: gen.CompleteGraph(env, 1), "the vertex count is 1; it must be at least 2"),
        (lambda env: gen.CycleGraph(env, 2), "at least 3"),
        (lambda env: gen.CirculantGraph(env, 5).add_range(3, 3), "offsets 3 to 5 are too large for 5 vertices"),
        (lambda env: gen.CirculantGraph(env, 9).add_range(1, 3).add_range(3, 1), "offsets 3 to 3 overlap with 1 to 3"),
        (lambda env: gen.EchoGraph(env, 4, 2), "must be even, but not both"),
        (lambda env: gen.EchoGraph(env, 4, 4), "a degree of 4 is too large for 4 vertices"),
        (lambda env: gen.GridGraph(env).generate(), "a grid needs a dimension"),
        (lambda env: gen.RMatGraph(env, 4, 4).set_constants(0.9, 0.2, 0.0), "nor more than 1 together"),
        (lambda env: gen.RMatGraph(env, 4, 4).set_noise(True, 3.0), "the noise is 3.0"),
    ],
)
def test_what_cannot_be_generated_is_an_error(env, make, message):
    with pytest.raises(InvalidProgramError, match=message):
        make(env)
