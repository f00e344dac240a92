"""Counts triples of vertices by the edges between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.gelly.algorithm import GraphAlgorithm
from penstock.gelly.library.neighbor_pairs import FROM, TO, grouped, neighbors_of
from penstock.gelly.library.triangles import triangles_of
from penstock.gelly.partitions import Bundle

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["DirectedTriadicCensus", "TriadicCensus"]

_BOTH = TO | FROM
# The codes of the pairs (first, second), (first, third), (second, third), for one example of each type of triangle.
_TRIANGLES = {
    "030T": (TO, TO, TO),
    "030C": (TO, FROM, TO),
    "120D": (TO, TO, _BOTH),
    "120U": (FROM, FROM, _BOTH),
    "120C": (TO, FROM, _BOTH),
    "210": (TO, _BOTH, _BOTH),
    "300": (_BOTH, _BOTH, _BOTH),
}
# Types with two connected pairs, by the codes of the two pairs from the view of their common vertex.
_TRIPLETS = {
    (TO, TO): "021D",
    (FROM, FROM): "021U",
    (TO, FROM): "021C",
    (TO, _BOTH): "111U",
    (FROM, _BOTH): "111D",
    (_BOTH, _BOTH): "201",
}
_TYPES = ("003", "012", "102", *_TRIPLETS.values(), *_TRIANGLES)


class TriadicCensus(GraphAlgorithm):
    """Counts triples of vertices by the number of edges between them, in any direction: ``{0: ..., 3: ...}``."""

    def run(self, graph: Graph) -> dict[int, int]:
        """Return the counts for 0, 1, 2 and 3 edges."""
        edges = {0: 0, 1: 0, 2: 0, 3: 0}
        for name, found in DirectedTriadicCensus().run(graph).items():
            edges[sum(map(int, name[:2]))] += found
        return edges


class DirectedTriadicCensus(GraphAlgorithm):
    """Counts triples of vertices by their type: 16 types with the usual names, from ``"003"`` to ``"300"``.

    The digits of a name are the numbers of mutual, of one-way and of missing connections.
    """

    def run(self, graph: Graph) -> dict[str, int]:
        """Return the counts of all types."""
        engine = graph.env.engine
        neighbors = neighbors_of(graph).persist()
        kinds = _summed(engine.narrow(_kinds, [triangles_of(graph, neighbors)]).collect("counts"), 64)
        degrees = _summed(engine.narrow(_triplets, [neighbors]).collect("counts"), 8)
        neighbors.release()
        vertices = graph.number_of_vertices()
        return _census(vertices, kinds, degrees)


def _summed(tables: list[Any], size: int) -> list[int]:
    total = [0] * size
    for table in tables:
        total = [one + two for one, two in zip(total, table.column("count").to_pylist(), strict=True)]
    return total


def _kinds(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    """Count triangles by their codes."""
    if "triangles" in bundle:
        pairs = ("first_second", "first_third", "second_third")
        one, two, three = (bundle["triangles"].column(name).to_numpy() for name in pairs)
        yield "counts", pa.table({"count": np.bincount(one * 16 + two * 4 + three, minlength=64)})


def _triplets(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    """Count triplets by kind, including closed ones, then twice the one-way and the mutual pairs."""
    if "neighbors" not in bundle:
        return
    ids, table, starts = grouped(bundle)
    code = table.column("code").to_numpy()
    group: Any = np.repeat(np.arange(len(ids)), np.diff(starts))
    by_code = {kind: np.bincount(group[code == kind], minlength=len(ids)) for kind in (TO, FROM, _BOTH)}
    counts = []
    for one, two in _TRIPLETS:
        same = by_code[one] * (by_code[one] - 1) // 2
        counts.append(int((same if one == two else by_code[one] * by_code[two]).sum()))
    one_way = int(by_code[TO].sum() + by_code[FROM].sum())
    yield "counts", pa.table({"count": [*counts, one_way, int(by_code[_BOTH].sum())]})


def _flipped(code: int) -> int:
    return (FROM if code & TO else 0) | (TO if code & FROM else 0)


def _names() -> dict[tuple[int, int, int], str]:
    """Return the types of triangles by their three codes."""
    names = {}
    for name, (one, two, three) in _TRIANGLES.items():
        codes = {(0, 1): one, (0, 2): two, (1, 2): three}
        codes |= {(end, start): _flipped(code) for (start, end), code in codes.items()}
        for a, b, c in permutations(range(3)):
            names[codes[a, b], codes[a, c], codes[b, c]] = name
    return names


def _census(vertices: int, kinds: list[int], counts: list[int]) -> dict[str, int]:
    census = dict.fromkeys(_TYPES, 0)
    for (codes, name), found in zip(_TRIPLETS.items(), counts[:6], strict=True):
        assert codes
        census[name] = found
    names = _names()
    for one, two, three in product((TO, FROM, _BOTH), repeat=3):
        found = kinds[one * 16 + two * 4 + three]
        census[names[one, two, three]] += found
        # A triangle has three triplets, which are not separate triads.
        for codes in ((one, two), (_flipped(one), three), (_flipped(two), _flipped(three))):
            key = codes if codes in _TRIPLETS else codes[::-1]
            census[_TRIPLETS[key]] -= found
    # Every pair is in a triple with each other vertex. The triples counted above are not of the types with one pair.
    for name, digit, pairs in (("102", 0, counts[7] // 2), ("012", 1, counts[6] // 2)):
        census[name] = pairs * (vertices - 2) - sum(int(each[digit]) * found for each, found in census.items())
    census["003"] = comb(vertices, 3) - sum(census.values())
    return census
