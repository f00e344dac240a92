"""Summarizes a graph: combines vertices with the same value."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.gelly import kernels
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.columns import channels_of, decode, encode, encode_pickled, flat, split
from penstock.gelly.partitions import Bundle, Frame

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["Summarization", "SummarizedValue"]


class SummarizedValue(NamedTuple):
    """The value of all members of a group, and their number."""

    value: Any
    group_count: int


class Summarization(GraphAlgorithm):
    """Groups vertices by their values, and edges by their values and the groups at their ends.

    The id of a group is the smallest id of its members. Values are grouped by their text (``repr``).
    """

    def run(self, graph: Graph) -> Graph:
        """Return the graph of groups. All its values are `SummarizedValue`."""
        from penstock.gelly.graph import Graph

        env, engine, count = graph.env, graph.env.engine, graph.env.get_parallelism()
        by_value = engine.exchange(partial(_by_value, count), [graph.vertex_partitions])
        groups = engine.exchange(partial(_groups, count), [by_value])
        half = engine.exchange(partial(_renamed, "source", "target", count), [groups, graph.edge_partitions])
        renamed = engine.exchange(partial(_renamed, "target", "source", count), [groups, half])
        vertices = engine.narrow(_vertices, [groups])
        return Graph(env, vertices, engine.narrow(_grouped_edges, [renamed]))


def _by_value(count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    table = kernels.vertices_in(bundle)
    if table.num_rows:
        text = pa.array([repr(value) for value in decode(table.column("value"))], pa.string())
        table = table.append_column("text", text)
        for to, part in split(table, channels_of(text, count), count):
            yield to, "vertices", part


def _groups(count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    """Send the id of its group to each vertex, and its value and size to the group."""
    if "vertices" not in bundle:
        return
    table = bundle["vertices"]
    entries = flat(table.column("text")).dictionary_encode().indices.to_numpy()
    order = np.argsort(entries, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(entries))]).tolist()
    ids, values = decode(table.column("id")), decode(table.column("value"))
    names: list[Any] = [None] * len(ids)
    groups = []
    for start, end in itertools.pairwise(starts):
        members = order[start:end].tolist()
        name = min(ids[row] for row in members)
        groups.append((name, SummarizedValue(values[members[0]], len(members))))
        for row in members:
            names[row] = name
    yield from kernels.send("members", pa.table({"id": table.column("id"), "group": encode(names)}), "id", count)
    made = {"id": encode([name for name, _ in groups]), "value": encode_pickled([value for _, value in groups])}
    yield from kernels.send("groups", pa.table(made), "id", count)


def _vertices(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "groups" in bundle:
        yield "vertices", bundle["groups"]


def _renamed(end: str, key: str, count: int, channel: int, groups: Bundle, bundle: Bundle) -> Iterator[Frame]:
    """Replace the vertex at one end of edges by its group, and send the edges to the partition of the other end.

    After the second end, that is the group of the source, where its edges meet.
    """
    edges = kernels.edges_in(bundle)
    if edges.num_rows == 0:
        return
    members = groups.get("members", kernels.empty(("id", "group")))
    renamed = members.rename_columns(["id", "value"])
    found = kernels.attached(edges, end, {"vertices": renamed}, "group").drop_columns([end])
    found = found.rename_columns([end if name == "group" else name for name in found.column_names])
    yield from kernels.send("edges", found.select(list(kernels.EDGE)), key, count)


def _grouped_edges(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    counts: dict[Any, list[Any]] = {}
    for source, target, value in zip(*[decode(column) for column in kernels.edges_in(bundle).columns], strict=True):
        counts.setdefault((source, target, repr(value)), [value, 0])[1] += 1
    if counts:
        columns = {
            "source": encode([key[0] for key in counts]),
            "target": encode([key[1] for key in counts]),
            "value": encode_pickled([SummarizedValue(*found) for found in counts.values()]),
        }
        yield "edges", pa.table(columns)
