"""Steps on the vertices and edges of one partition.

Vertices are tables ``vertices(id, value)`` in the partition of their id. Edges are tables ``edges(source, target,
value)`` in the partition of their source. Every function here computes one partition and runs in a task.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.errors import InvalidProgramError, shorten
from penstock.gelly.columns import as_ids, channels_of, concat, decode, encode, flat, groups_of, positions, split
from penstock.gelly.elements import Edge, EdgeDirection, Vertex
from penstock.gelly.functions import called, mapped
from penstock.gelly.partitions import Bundle, Frame

VERTEX = ("id", "value")
EDGE = ("source", "target", "value")

Tables = Iterator[tuple[str, Any]]


def vertices_in(bundle: Bundle) -> Any:
    """Return the vertices of a partition."""
    return bundle["vertices"] if "vertices" in bundle else empty(VERTEX)


def edges_in(bundle: Bundle) -> Any:
    """Return the edges of a partition."""
    return bundle["edges"] if "edges" in bundle else empty(EDGE)


def empty(names: Sequence[str]) -> Any:
    """Return a table without rows."""
    return pa.table({name: pa.nulls(0) for name in names})


def send(name: str, table: Any, key: str, count: int) -> Iterator[Frame]:
    """Send each row of a table to the partition of its key."""
    for channel, part in split(table, channels_of(table.column(key), count), count):
        yield channel, name, part


def with_values(table: Any, values: Any) -> Any:
    """Return the table with other values in its column ``value``."""
    return table.set_column(table.schema.get_field_index("value"), "value", values)


# -- input -------------------------------------------------------------------------------------------------------------


def route(
    name: str, columns: tuple[str, ...], keys: int, key: str, count: int, channel: int, bundle: Bundle
) -> Iterator[Frame]:
    """Send rows of any source to the partitions of their keys. The first ``keys`` columns are ids to check."""
    if "rows" in bundle:
        yield from send(name, normal(name, bundle["rows"], columns, keys), key, count)


def normal(name: str, rows: Any, columns: tuple[str, ...], keys: int) -> Any:
    """Return rows with these columns, found by name or otherwise by position. Missing values are None."""
    names = rows.column_names
    if not set(columns[:keys]) <= set(names):
        if not keys <= len(names) <= len(columns):
            raise InvalidProgramError(
                f"{name} need the columns {', '.join(columns)}, but there are {', '.join(names)}: select them first"
            )
        rows = rows.rename_columns(list(columns[: len(names)]))
    found = {column: as_ids(rows.column(column), name) for column in columns[:keys]}
    for column in columns[keys:]:
        found[column] = rows.column(column) if column in rows.column_names else pa.nulls(rows.num_rows)
    return pa.table(found)


def unique_vertices(channel: int, bundle: Bundle) -> Tables:
    """Return vertices after checking that their ids are distinct."""
    vertices = vertices_in(bundle)
    if vertices.num_rows:
        entries, _, starts = groups_of(vertices.column("id"))
        twice = np.flatnonzero(np.diff(starts) > 1)
        if len(twice):
            found = ", ".join(shorten(entries[number].as_py()) for number in twice[:5].tolist())
            raise InvalidProgramError(
                f"{len(twice)} ids belong to more than one vertex of the input, for instance {found}: remove the "
                "duplicates first"
            )
        yield "vertices", vertices


def endpoints(count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    """Send the ids at both ends of the edges."""
    edges = edges_in(bundle)
    for column in ("source", "target"):
        if edges.num_rows:
            yield from send("ids", pa.table({"id": pc.unique(edges.column(column))}), "id", count)


def vertices_of_ids(initializer: Callable[[Any], Any] | None, channel: int, bundle: Bundle) -> Tables:
    """Create vertices for ids, with the values of the initializer."""
    if "ids" not in bundle:
        return
    ids = pc.unique(flat(bundle["ids"].column("id")))
    ids = ids.take(pc.sort_indices(ids))
    table = pa.table({"id": ids})
    value = pa.nulls(len(ids)) if initializer is None else mapped("vertex initializer", initializer, table, _only)
    yield "vertices", table.append_column("value", value)


def _only(value: Any) -> Any:
    return value


# -- maps, filters, joins ----------------------------------------------------------------------------------------------


def map_vertices(name: str, function: Callable[..., Any], channel: int, bundle: Bundle) -> Tables:
    """Return vertices with new values."""
    vertices = vertices_in(bundle)
    if vertices.num_rows:
        yield "vertices", with_values(vertices, mapped(name, function, vertices, Vertex))


def map_edges(name: str, function: Callable[..., Any], channel: int, bundle: Bundle) -> Tables:
    """Return edges with new values."""
    edges = edges_in(bundle)
    if edges.num_rows:
        yield "edges", with_values(edges, mapped(name, function, edges, Edge))


def kept(name: str, function: Callable[..., Any] | None, table: Any, make: Callable[..., Any]) -> Any:
    """Return the rows for which a function returns true."""
    if function is None or table.num_rows == 0:
        return table
    mask = mapped(name, function, table, make)
    if not pa.types.is_boolean(mask.type):
        mask = encode([bool(value) for value in decode(mask)])
    return table.filter(mask)


def filter_vertices(name: str, function: Callable[..., Any] | None, channel: int, bundle: Bundle) -> Tables:
    """Return the vertices for which a function returns true."""
    yield "vertices", kept(name, function, vertices_in(bundle), Vertex)


def filter_edges(name: str, function: Callable[..., Any] | None, channel: int, bundle: Bundle) -> Tables:
    """Return the edges for which a function returns true."""
    yield "edges", kept(name, function, edges_in(bundle), Edge)


def edges_with_end(
    end: str, key: str, count: int, within: bool, channel: int, vertices: Bundle, edges: Bundle
) -> Iterator[Frame]:
    """Send edges whose ``end`` is (or is not) among the vertices to the partition of ``key``."""
    table = edges_in(edges)
    there = positions(table.column(end), vertices_in(vertices).column("id")) >= 0
    yield from send("edges", table.filter(pa.array(there if within else ~there)), key, count)


def join_vertices(name: str, function: Callable[..., Any], channel: int, vertices: Bundle, other: Bundle) -> Tables:
    """Join the values of vertices with those of another collection, by id."""
    table = vertices_in(vertices)
    if table.num_rows:
        yield "vertices", _joined(name, function, table, "id", other)


def join_edges_on(
    name: str, function: Callable[..., Any], end: str, channel: int, edges: Bundle, other: Bundle
) -> Tables:
    """Join the values of edges with those of another collection, by one of their ends."""
    table = edges_in(edges)
    if table.num_rows:
        yield "edges", _joined(name, function, table, end, other)


def _joined(name: str, function: Callable[..., Any], table: Any, key: str, other: Bundle) -> Any:
    if "input" not in other:
        return table
    found = positions(table.column(key), other["input"].column("id"))
    return _combined(name, function, table, found, other["input"].column("value"))


def _combined(name: str, function: Callable[..., Any], table: Any, found: Any, values: Any) -> Any:
    here = np.flatnonzero(found >= 0)
    if len(here) == 0:
        return table
    old, new = decode(table.column("value")), decode(values.take(pa.array(found[here])))
    results = called(name, function, ((old[row], value) for row, value in zip(here.tolist(), new, strict=True)))
    for row, value in zip(here.tolist(), results, strict=True):
        old[row] = value
    return with_values(table, encode(old))


def join_edges(name: str, function: Callable[..., Any], channel: int, edges: Bundle, other: Bundle) -> Tables:
    """Join the values of edges with those of another collection of edges."""
    table = edges_in(edges)
    if table.num_rows == 0:
        return
    if "edges" in other:
        mine, theirs = pair_codes(table, other["edges"])
        found = positions(pa.array(mine), pa.array(theirs))
        table = _combined(name, function, table, found, other["edges"].column("value"))
    yield "edges", table


def pair_codes(left: Any, right: Any) -> tuple[Any, Any]:
    """Number the pairs of source and target, equally in both tables."""
    columns = [table.column(name) for table in (left, right) for name in EDGE[:2]]
    ids = pc.unique(concat([pa.table({"id": column}) for column in columns]).column("id"))
    one, two, three, four = (positions(column, ids) for column in columns)
    return one * len(ids) + two, three * len(ids) + four


# -- neighbourhoods ----------------------------------------------------------------------------------------------------


def moved(key: str, count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    """Send edges to the partition of another key."""
    yield from send("edges", edges_in(bundle), key, count)


def reversed_edges(both: bool, count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    """Send edges in the other direction, or in both."""
    edges = edges_in(bundle)
    if both:
        yield from send("edges", edges, "source", count)
    swapped = pa.table([edges.column("target"), edges.column("source"), edges.column("value")], names=list(EDGE))
    yield from send("edges", swapped, "source", count)


INCIDENT = ("vertex", "neighbor", "value", "outgoing")


def incident(direction: EdgeDirection, by: str, count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    """Send edges as seen by their vertices, to the partition of the vertex or of its neighbour."""
    edges = edges_in(bundle)
    for outgoing in (True, False):
        if direction is (EdgeDirection.IN if outgoing else EdgeDirection.OUT):
            continue
        ends = EDGE[:2] if outgoing else EDGE[1::-1]
        columns = [*[edges.column(end) for end in ends], edges.column("value"), pa.array([outgoing] * len(edges))]
        yield from send("incident", pa.table(columns, names=list(INCIDENT)), by, count)


def outgoing(channel: int, bundle: Bundle) -> Tables:
    """Return edges as seen by their sources, in whose partition they already are."""
    edges = edges_in(bundle)
    if edges.num_rows:
        columns = [*edges.select(list(EDGE)).columns, pa.array(np.ones(edges.num_rows, dtype=bool))]
        yield "incident", pa.table(columns, names=list(INCIDENT))


def with_neighbor_values(count: int, channel: int, vertices: Bundle, bundle: Bundle) -> Iterator[Frame]:
    """Send incident edges with the value of the neighbour to the partition of the vertex."""
    if "incident" in bundle:
        table = bundle["incident"]
        yield from send("incident", attached(table, "neighbor", vertices, "neighbor_value"), "vertex", count)


def attached(table: Any, key: str, vertices: Bundle, name: str) -> Any:
    """Add a column to the table: the value of the vertex with the id ``key``. The vertex must exist."""
    known = vertices_in(vertices)
    found = positions(table.column(key), known.column("id"))
    missing = np.flatnonzero(found < 0)
    if len(missing):
        raise missing_vertex(table.column(key)[int(missing[0])].as_py())
    return table.append_column(name, known.column("value").take(pa.array(found)))


def missing_vertex(name: object) -> InvalidProgramError:
    """Return the error for an edge whose vertex is missing."""
    return InvalidProgramError(
        f"an edge refers to vertex {shorten(name)}, which the graph does not have: add the vertex, remove the edge, or "
        "find all such edges with graph.validate(InvalidVertexIdsValidator())"
    )


def triplets(half: bool, count: int, channel: int, vertices: Bundle, bundle: Bundle) -> Iterator[Frame]:
    """Send edges with the value of their source (the first half), then of their target."""
    edges = edges_in(bundle)
    if edges.num_rows == 0:
        return
    if half:
        yield from send("edges", attached(edges, "source", vertices, "source_value"), "target", count)
    else:
        full = attached(edges, "target", vertices, "target_value").rename_columns(
            ["source", "target", "edge_value", "source_value", "target_value"]
        )
        yield channel, "triplets", full


def degrees(channel: int, vertices: Bundle, bundle: Bundle) -> Tables:
    """Return the number of incident edges of each vertex."""
    table = vertices_in(vertices)
    ids = table.column("id")
    counts: Any = np.zeros(len(ids), dtype=np.int64)
    if "incident" in bundle:
        found = positions(bundle["incident"].column("vertex"), ids)
        if (found < 0).any():
            wrong = int(np.flatnonzero(found < 0)[0])
            raise missing_vertex(bundle["incident"].column("vertex")[wrong].as_py())
        counts += np.bincount(found, minlength=len(ids))
    yield "degrees", pa.table({"id": ids, "value": counts})


def reduced(name: str, function: Callable[..., Any], column: str, channel: int, bundle: Bundle) -> Tables:
    """Reduce the values of each vertex's incident edges (or neighbours) to one."""
    if "incident" not in bundle:
        return
    table = bundle["incident"]
    ids, order, starts = groups_of(table.column("vertex"))
    values = table.column(column).take(pa.array(order))
    if isinstance(function, np.ufunc):
        result = pa.array(function.reduceat(flat(values).to_numpy(zero_copy_only=False), starts[:-1]))
    else:
        result = encode(_reduced_groups(name, function, decode(values), starts.tolist()))
    yield "reduced", pa.table({"id": ids, "value": result})


def _reduced_groups(name: str, function: Callable[..., Any], values: list[Any], starts: list[int]) -> list[Any]:
    results = []
    for start, end in itertools.pairwise(starts):
        result = values[start]
        for value in values[start + 1 : end]:
            [result] = called(name, function, [(result, value)])
        results.append(result)
    return results


# -- sets --------------------------------------------------------------------------------------------------------------


def vertex_union(channel: int, *bundles: Bundle) -> Tables:
    """Return all vertices. For equal ids, the vertex of the first input is used."""
    tables = [bundle["vertices"] for bundle in bundles if "vertices" in bundle]
    if tables:
        table = concat(tables)
        _, order, starts = groups_of(table.column("id"))
        yield "vertices", table.take(pa.array(np.sort(order[starts[:-1]])))


def vertex_difference(channel: int, mine: Bundle, theirs: Bundle) -> Tables:
    """Return the vertices whose ids are not in the other input."""
    table = vertices_in(mine)
    there = positions(table.column("id"), vertices_in(theirs).column("id")) >= 0
    yield "vertices", table.filter(pa.array(~there))


def edge_union(channel: int, *bundles: Bundle) -> Tables:
    """Return the edges of all inputs."""
    tables = [bundle["edges"] for bundle in bundles if "edges" in bundle]
    if tables:
        yield "edges", concat(tables)


def edge_difference(channel: int, mine: Bundle, theirs: Bundle) -> Tables:
    """Return the edges whose source and target are not those of an edge in the other input."""
    table = edges_in(mine)
    if "edges" in theirs and table.num_rows:
        codes, removed = pair_codes(table, theirs["edges"])
        table = table.filter(pa.array(~np.isin(codes, removed)))
    yield "edges", table


def edge_intersection(distinct: bool, channel: int, mine: Bundle, theirs: Bundle) -> Tables:
    """Return the edges with the same value in both inputs: once, or as often as both have them."""
    left = [_hashable(edge) for edge in zip(*[decode(column) for column in edges_in(mine).columns], strict=True)]
    counts: dict[Any, int] = {}
    for edge in zip(*[decode(column) for column in edges_in(theirs).columns], strict=True):
        counts[_hashable(edge)] = counts.get(_hashable(edge), 0) + 1
    rows = []
    for row, edge in enumerate(left):
        if counts.get(edge, 0):
            counts[edge] = 0 if distinct else counts[edge] - 1
            rows.append(row)
    yield "edges", edges_in(mine).take(pa.array(rows, pa.int64()))


def _hashable(edge: tuple[Any, ...]) -> Any:
    try:
        hash(edge)
    except TypeError:
        return (*edge[:2], repr(edge[2]))
    return edge
