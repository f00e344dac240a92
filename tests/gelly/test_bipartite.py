"""Bipartite graphs and their projections."""

import pytest

from penstock.common.errors import InvalidProgramError
from penstock.gelly import BipartiteEdge, Projection, Vertex
from penstock.gelly.bipartite import BipartiteGraph

PEOPLE = [Vertex(1, "Ada"), Vertex(2, "Grace"), Vertex(3, "Alan")]
CLUBS = [Vertex(1, "chess"), Vertex(2, "go")]
MEMBERS = [BipartiteEdge(1, 1, "a"), BipartiteEdge(2, 1, "b"), BipartiteEdge(2, 2, "c"), BipartiteEdge(3, 2, "d")]


@pytest.fixture
def clubs(env):
    return BipartiteGraph.from_collection(PEOPLE, CLUBS, MEMBERS, env)


def test_a_bipartite_graph_has_the_vertices_and_edges_it_is_made_of(clubs):
    assert sorted(clubs.get_top_vertices().collect()) == PEOPLE
    assert sorted(clubs.get_bottom_vertices().collect()) == CLUBS
    assert sorted(clubs.get_edges().collect()) == MEMBERS


def test_a_simple_projection_has_an_edge_for_each_shared_vertex_and_direction(clubs):
    top = clubs.projection_top_simple()
    assert sorted(top.get_vertices().collect()) == PEOPLE
    assert sorted(top.get_edges().collect()) == [
        (1, 2, ("a", "b")), (2, 1, ("b", "a")), (2, 3, ("c", "d")), (3, 2, ("d", "c")),
    ]  # fmt: skip
    bottom = clubs.projection_bottom_simple()
    assert sorted(bottom.get_vertices().collect()) == CLUBS
    assert sorted(bottom.get_edges().collect()) == [(1, 2, ("b", "c")), (2, 1, ("c", "b"))]


def test_a_full_projection_has_all_values_on_the_way(clubs):
    top = sorted(clubs.projection_top_full().get_edges().collect())
    assert top[0] == (1, 2, Projection(1, "chess", "Ada", "Grace", "a", "b"))
    assert len(top) == 4
    bottom = sorted(clubs.projection_bottom_full().get_edges().collect())
    assert bottom[0] == (1, 2, Projection(2, "Grace", "chess", "go", "b", "c"))
    assert len(bottom) == 2


def test_an_edge_to_a_missing_vertex_is_an_error(env):
    broken = BipartiteGraph.from_collection(PEOPLE, CLUBS, [(1, 9)], env)
    with pytest.raises(InvalidProgramError, match="vertex 9, which the graph does not have"):
        broken.projection_top_full().number_of_edges()
