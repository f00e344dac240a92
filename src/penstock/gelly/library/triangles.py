"""Triangles: three vertices with an edge between any two of them, in any direction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.gelly import kernels
from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.columns import positions
from penstock.gelly.dataset import DataSet
from penstock.gelly.library.neighbor_pairs import grouped, neighbors_of, pairs_in, row_degrees
from penstock.gelly.partitions import Bundle, Frame, Partitions

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["TriangleCount", "TriangleListing"]

ENDS = ("first", "second", "third")


class TriangleListing(GraphAlgorithm):
    """Lists all triangles once, as tuples of three ids. Ignores directions, loops and repeated edges."""

    def run(self, graph: Graph) -> DataSet[tuple[Any, Any, Any]]:
        """Return the triangles."""
        found = triangles_of(graph, neighbors_of(graph))
        return DataSet(graph.env, found, "triangles", ENDS, lambda *ids: tuple(sorted(ids)))


class TriangleCount(GraphAlgorithm):
    """Counts triangles."""

    def run(self, graph: Graph) -> int:
        """Return the number of triangles."""
        return TriangleListing().run(graph).count()


def triangles_of(graph: Graph, neighbors: Partitions) -> Partitions:
    """Return tables ``triangles(first, second, third, first_second, first_third, second_third)``, with codes for the
    pairs.

    The vertex with the lowest degree proposes the pairs of its few neighbours. One of the neighbours closes the
    triangle.
    """
    engine, count = graph.env.engine, graph.env.get_parallelism()
    open_triangles = engine.exchange(partial(_open, count), [neighbors])
    return engine.narrow(_closed, [neighbors, open_triangles])


def _open(count: int, channel: int, bundle: Bundle) -> Iterator[Frame]:
    if "neighbors" not in bundle:
        return
    _, table, starts = grouped(bundle)
    degree, other = row_degrees(starts), table.column("neighbor_degree").to_numpy()
    earlier = pc.less(table.column("vertex"), table.column("neighbor")).to_numpy()
    table = table.filter(pa.array((degree < other) | ((degree == other) & earlier)))
    if table.num_rows == 0:
        return
    _, table, starts = grouped({"neighbors": table})
    code = table.column("code").to_numpy()
    for one, two in pairs_in(starts):
        # The two neighbours are sorted by id, so that the code of their pair is unambiguous.
        left, right = (table.column("neighbor").take(pa.array(rows)) for rows in (one, two))
        swap = pc.less(right, left).to_numpy()
        low, high = np.where(swap, two, one), np.where(swap, one, two)
        pairs = pa.table(
            {
                "first": table.column("vertex").take(pa.array(low)),
                "second": table.column("neighbor").take(pa.array(low)),
                "third": table.column("neighbor").take(pa.array(high)),
                "first_second": pa.array(code[low]),
                "first_third": pa.array(code[high]),
            }
        )
        yield from kernels.send("open", pairs, "second", count)


def _closed(channel: int, bundle: Bundle, proposed: Bundle) -> Iterator[tuple[str, Any]]:
    if "open" not in proposed or "neighbors" not in bundle:
        return
    table, known = proposed["open"], bundle["neighbors"]
    ids = pc.unique(known.column("neighbor"))
    vertices = pc.unique(known.column("vertex"))
    keys = positions(known.column("vertex"), vertices) * len(ids) + positions(known.column("neighbor"), ids)
    third = positions(table.column("third"), ids)
    second = positions(table.column("second"), vertices)
    wanted = np.where((third < 0) | (second < 0), -1, second * len(ids) + third)
    found = positions(pa.array(wanted), pa.array(keys))
    table = table.filter(pa.array(found >= 0))
    code = known.column("code").to_numpy()[found[found >= 0]]
    yield "triangles", table.append_column("second_third", pa.array(code))
