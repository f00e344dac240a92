"""New ids for a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.gelly import kernels
from penstock.gelly.columns import as_ids
from penstock.gelly.functions import mapped
from penstock.gelly.partitions import Bundle, Frame

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph


def translated(graph: Graph, translator: Callable[[Any], Any]) -> Graph:
    """Return the graph with the ids of the translator."""
    from penstock.gelly.graph import Graph

    env, count = graph.env, graph.env.get_parallelism()
    vertices = env.engine.exchange(partial(_vertices, translator, count), [graph.vertex_partitions])
    edges = env.engine.exchange(partial(_edges, translator, count), [graph.edge_partitions])
    return Graph(env, env.engine.narrow(kernels.unique_vertices, [vertices]), edges)


def _vertices(translator: Callable[[Any], Any], count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    table = kernels.vertices_in(bundle)
    yield from kernels.send("vertices", _with_ids(table, ("id",), translator), "id", count)


def _edges(translator: Callable[[Any], Any], count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    table = kernels.edges_in(bundle)
    yield from kernels.send("edges", _with_ids(table, ("source", "target"), translator), "source", count)


def _with_ids(table: Any, names: tuple[str, ...], translator: Callable[[Any], Any]) -> Any:
    for name in names:
        ids = mapped("translate_graph_ids", translator, table.select([name]), _only)
        table = table.set_column(table.schema.get_field_index(name), name, as_ids(ids, "translate_graph_ids"))
    return table


def _only(value: Any) -> Any:
    return value
