"""Neighbours in a simple undirected graph, and all pairs of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.gelly import kernels
from penstock.gelly.columns import groups_of, positions
from penstock.gelly.elements import EdgeDirection
from penstock.gelly.partitions import Bundle, Frame, Partitions

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

_PAIRS = 1 << 20
"""The number of pairs created at a time, so that a vertex with many neighbours does not fill the memory."""

TO, FROM = 1, 2
"""Bits of a code: there is an edge to the neighbour, or from the neighbour."""


def neighbors_of(graph: Graph) -> Partitions:
    """Return tables ``neighbors(vertex, neighbor, code, degree, neighbor_degree)`` without loops: two rows per pair."""
    engine, count = graph.env.engine, graph.env.get_parallelism()
    return engine.exchange(partial(_with_degrees, count), [graph.incident_edges(EdgeDirection.ALL)])


def _with_degrees(count: int, channel: int, incident: Bundle) -> Iterator[Frame]:
    """Find distinct neighbours. Each row goes to the neighbour, as the row of the other end with its degree."""
    if "incident" not in incident:
        return
    table = incident["incident"]
    table = table.filter(pc.not_equal(table.column("vertex"), table.column("neighbor")))
    if table.num_rows == 0:
        return
    ids = pc.unique(pa.chunked_array([*table.column("vertex").chunks, *table.column("neighbor").chunks]))
    vertex, neighbor = (positions(table.column(name), ids) for name in ("vertex", "neighbor"))
    code = np.where(table.column("outgoing").to_numpy(), TO, FROM)
    pairs, first, inverse = np.unique(vertex * len(ids) + neighbor, return_index=True, return_inverse=True)
    codes: Any = np.zeros(len(pairs), dtype=np.int64)
    np.bitwise_or.at(codes, inverse, code)
    degree = np.bincount(vertex[first], minlength=len(ids))[vertex[first]]
    other = np.bitwise_or(np.where(codes & TO, FROM, 0), np.where(codes & FROM, TO, 0))
    rows = table.take(pa.array(first))
    sent = pa.table(
        {
            "vertex": rows.column("neighbor"),
            "neighbor": rows.column("vertex"),
            "code": pa.array(other),
            "neighbor_degree": pa.array(degree),
        }
    )
    yield from kernels.send("neighbors", sent, "vertex", count)


def grouped(bundle: Bundle) -> tuple[Any, Any, Any]:
    """Group the neighbours in a partition by vertex: return distinct vertices, sorted rows and group starts."""
    table = bundle["neighbors"]
    ids, order, starts = groups_of(table.column("vertex"))
    return ids, table.take(pa.array(order)), starts


def row_degrees(starts: Any) -> Any:
    """Return the size of the group of each row."""
    sizes = np.diff(starts)
    return np.repeat(sizes, sizes)


def pairs_in(starts: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all pairs of rows of the same group, as pairs of arrays, some at a time."""
    sizes = np.diff(starts)
    before = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)  # number of rows of its group before a row
    total = np.cumsum(before)
    row = 0
    while row < len(before):
        done = total[row - 1] if row else 0
        end = max(int(np.searchsorted(total, done + _PAIRS, side="right")), row + 1)
        counts = before[row:end]
        second: Any = np.repeat(np.arange(row, end), counts)
        offsets = np.arange(len(second)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.repeat(np.arange(row, end) - counts, counts) + offsets
        if len(second):
            yield first, second
        row = end
