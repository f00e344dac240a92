"""Generators of graphs: ``CompleteGraph(env, 5).generate()``.

As in Gelly, all graphs except `RMatGraph` are undirected: each edge exists in both directions. Ids are integers from 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from penstock.common.errors import InvalidProgramError
from penstock.gelly import kernels
from penstock.gelly.partitions import Frame

if TYPE_CHECKING:
    from penstock.gelly.environment import ExecutionEnvironment
    from penstock.gelly.graph import Graph

__all__ = [
    "CirculantGraph",
    "CompleteGraph",
    "CycleGraph",
    "EchoGraph",
    "EmptyGraph",
    "GraphGenerator",
    "GridGraph",
    "HypercubeGraph",
    "PathGraph",
    "RMatGraph",
    "SingletonEdgeGraph",
    "StarGraph",
]

_BLOCK = 1 << 16
"""Edges are generated in blocks of this size, so that a random graph does not depend on the parallelism."""


class GraphGenerator(ABC):
    """Generates a graph."""

    def __init__(self, env: ExecutionEnvironment) -> None:
        self.env = env

    @abstractmethod
    def generate(self) -> Graph:
        """Generate the graph."""


class _Sources:
    """Generates the edges that start at a range of vertices, or a range of numbered edges."""

    def edges(self, numbers: Any, block: int) -> tuple[Any, Any]:
        """Return sources and targets."""
        raise NotImplementedError


def _generated(env: ExecutionEnvironment, vertices: int | None, work: int, sources: _Sources) -> Graph:
    """Generate a graph with this many vertices. The edges are those of ``work`` numbers."""
    from penstock.gelly.graph import Graph

    engine, count = env.engine, env.get_parallelism()
    edges = engine.exchange(partial(_edges, work, sources, count), [])
    if vertices is None:
        ids = engine.exchange(partial(kernels.endpoints, count), [edges])
        return Graph(env, engine.narrow(partial(kernels.vertices_of_ids, None), [ids]), edges)
    return Graph(env, engine.exchange(partial(_vertices, vertices, count), []), edges)


def _blocks(total: int, count: int, channel: int) -> Iterator[tuple[int, Any]]:
    for block in range(channel, -(-total // _BLOCK), count):
        yield block, np.arange(block * _BLOCK, min((block + 1) * _BLOCK, total), dtype=np.int64)


def _vertices(total: int, count: int, channel: int) -> Iterator[Frame]:
    for _, numbers in _blocks(total, count, channel):
        table = pa.table({"id": numbers, "value": pa.nulls(len(numbers))})
        yield from kernels.send("vertices", table, "id", count)


def _edges(total: int, sources: _Sources, count: int, channel: int) -> Iterator[Frame]:
    for block, numbers in _blocks(total, count, channel):
        source, target = sources.edges(numbers, block)
        if len(source):
            table = pa.table({"source": source, "target": target, "value": pa.nulls(len(source))})
            yield from kernels.send("edges", table, "source", count)


def _at_least(what: str, number: int, minimum: int) -> int:
    if number < minimum:
        raise InvalidProgramError(f"the {what} is {number}; it must be at least {minimum}")
    return number


class _Offsets(_Sources):
    """Edges from each vertex to the vertices at some offsets, around the circle."""

    def __init__(self, vertices: int, offsets: Sequence[int]) -> None:
        self._vertices = vertices
        self._offsets = np.array(offsets, dtype=np.int64)

    def edges(self, numbers: Any, block: int) -> tuple[Any, Any]:
        source: Any = np.repeat(numbers, len(self._offsets))
        return source, (source + np.tile(self._offsets, len(numbers))) % self._vertices


class CirculantGraph(GraphGenerator):
    """Each vertex has edges to the vertices at the same offsets from it, around the circle."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 2)
        self._ranges: list[tuple[int, int]] = []

    def add_range(self, offset: int, length: int) -> Self:
        """Add edges to ``length`` vertices, starting with the one at ``offset``."""
        _at_least("offset", offset, 1)
        _at_least("length", length, 1)
        if offset + length > self._vertices:
            raise InvalidProgramError(
                f"offsets {offset} to {offset + length - 1} are too large for {self._vertices} vertices"
            )
        for start, size in self._ranges:
            if offset < start + size and start < offset + length:
                raise InvalidProgramError(
                    f"offsets {offset} to {offset + length - 1} overlap with {start} to {start + size - 1}"
                )
        self._ranges.append((offset, length))
        return self

    def generate(self) -> Graph:
        """Generate the graph."""
        offsets = [offset for start, length in self._ranges for offset in range(start, start + length)]
        return _generated(self.env, self._vertices, self._vertices, _Offsets(self._vertices, offsets))


class CompleteGraph(GraphGenerator):
    """Every vertex has an edge to every other vertex."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 2)

    def generate(self) -> Graph:
        """Generate the graph."""
        return CirculantGraph(self.env, self._vertices).add_range(1, self._vertices - 1).generate()


class CycleGraph(GraphGenerator):
    """Vertices in a ring."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 3)

    def generate(self) -> Graph:
        """Generate the graph."""
        return CirculantGraph(self.env, self._vertices).add_range(1, 1).add_range(self._vertices - 1, 1).generate()


class EchoGraph(GraphGenerator):
    """All vertices have the same degree, and their neighbours are on the other side of the circle."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int, vertex_degree: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 2)
        self._degree = _at_least("vertex degree", vertex_degree, 1)
        if vertex_degree >= vertex_count:
            raise InvalidProgramError(f"a degree of {vertex_degree} is too large for {vertex_count} vertices")
        if (vertex_count % 2 == 0) == (vertex_degree % 2 == 0):
            raise InvalidProgramError("either the vertex count or the vertex degree must be even, but not both")

    def generate(self) -> Graph:
        """Generate the graph."""
        first = (self._vertices - self._degree + 1) // 2
        return CirculantGraph(self.env, self._vertices).add_range(first, self._degree).generate()


class EmptyGraph(GraphGenerator):
    """Vertices without edges."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 0)

    def generate(self) -> Graph:
        """Generate the graph."""
        return _generated(self.env, self._vertices, 0, _Offsets(1, []))


class _Grid(_Sources):
    def __init__(self, dimensions: Sequence[tuple[int, bool]]) -> None:
        self._dimensions = tuple(dimensions)

    def edges(self, numbers: Any, block: int) -> tuple[Any, Any]:
        sources, targets = [], []
        step = 1
        for size, wraps in reversed(self._dimensions):
            place = numbers // step % size
            for by in (-1, 1):
                to = place + by
                # In a ring of two vertices, both directions lead to the same neighbour: one edge.
                keep = np.ones(len(numbers), dtype=bool) if wraps and size > 2 else (to >= 0) & (to < size)
                sources.append(numbers[keep])
                targets.append((numbers + (to % size - place) * step)[keep])
            step *= size
        return np.concatenate(sources), np.concatenate(targets)


class GridGraph(GraphGenerator):
    """Vertices in a grid of one or more dimensions."""

    def __init__(self, env: ExecutionEnvironment) -> None:
        super().__init__(env)
        self._dimensions: list[tuple[int, bool]] = []

    def add_dimension(self, size: int, wrap_endpoints: bool) -> Self:
        """Add a dimension. Its first and last vertices may be neighbours, too."""
        self._dimensions.append((_at_least("size of a dimension", size, 2), wrap_endpoints))
        return self

    def generate(self) -> Graph:
        """Generate the graph."""
        if not self._dimensions:
            raise InvalidProgramError("a grid needs a dimension: call add_dimension()")
        total = 1
        for size, _ in self._dimensions:
            total *= size
        return _generated(self.env, total, total, _Grid(self._dimensions))


class HypercubeGraph(GraphGenerator):
    """The corners of a cube of any number of dimensions."""

    def __init__(self, env: ExecutionEnvironment, dimensions: int) -> None:
        super().__init__(env)
        self._dimensions = _at_least("number of dimensions", dimensions, 1)

    def generate(self) -> Graph:
        """Generate the graph."""
        grid = GridGraph(self.env)
        for _ in range(self._dimensions):
            grid.add_dimension(2, False)
        return grid.generate()


class PathGraph(GraphGenerator):
    """Vertices in a row."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 2)

    def generate(self) -> Graph:
        """Generate the graph."""
        return GridGraph(self.env).add_dimension(self._vertices, False).generate()


class _Pairs(_Sources):
    def edges(self, numbers: Any, block: int) -> tuple[Any, Any]:
        return numbers, numbers ^ 1


class SingletonEdgeGraph(GraphGenerator):
    """Pairs of vertices with an edge between them."""

    def __init__(self, env: ExecutionEnvironment, vertex_pair_count: int) -> None:
        super().__init__(env)
        self._pairs = _at_least("vertex pair count", vertex_pair_count, 1)

    def generate(self) -> Graph:
        """Generate the graph."""
        return _generated(self.env, 2 * self._pairs, 2 * self._pairs, _Pairs())


class _Star(_Sources):
    def edges(self, numbers: Any, block: int) -> tuple[Any, Any]:
        leaves = numbers[numbers > 0]
        center: Any = np.zeros(len(leaves), dtype=np.int64)
        return np.concatenate([center, leaves]), np.concatenate([leaves, center])


class StarGraph(GraphGenerator):
    """Vertex 0 is in the center, and all others are around it."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 2)

    def generate(self) -> Graph:
        """Generate the graph."""
        return _generated(self.env, self._vertices, self._vertices, _Star())


class _RMat(_Sources):
    def __init__(self, scale: int, chances: tuple[float, float, float], noise: float, seed: int) -> None:
        self._scale = scale
        self._chances = chances
        self._noise = noise
        self._seed = seed

    def edges(self, numbers: Any, block: int) -> tuple[Any, Any]:
        size = len(numbers)
        random = np.random.default_rng([self._seed, block])
        source: Any = np.zeros(size, dtype=np.int64)
        target: Any = np.zeros(size, dtype=np.int64)
        quarters = np.array([*self._chances, 1 - sum(self._chances)])
        for _ in range(self._scale):
            chances = quarters
            if self._noise:
                chances = quarters * (1 + self._noise * (random.random(4) - 0.5))
                chances = chances / chances.sum()
            quarter = np.searchsorted(np.cumsum(chances)[:3], random.random(size), side="right")
            source = 2 * source + quarter // 2
            target = 2 * target + quarter % 2
        return source, target


class RMatGraph(GraphGenerator):
    """A random directed graph with few vertices of high degree and many of low degree (recursive matrix).

    It has this many edges, some of them more than once. Its vertices are those with edges. The same seed gives the same
    graph, whatever the parallelism is.

    :param vertex_count: ids are below the next power of two
    """

    def __init__(self, env: ExecutionEnvironment, vertex_count: int, edge_count: int, seed: int = 0) -> None:
        super().__init__(env)
        self._vertices = _at_least("vertex count", vertex_count, 1)
        self._edges = _at_least("edge count", edge_count, 1)
        self._seed = seed
        self._chances = (0.57, 0.19, 0.19)
        self._noise = 0.0

    def set_constants(self, a: float, b: float, c: float) -> Self:
        """Set the shares of edges in three of the quarters of the matrix: top left, top right, bottom left."""
        if min(a, b, c) < 0 or a + b + c > 1:
            raise InvalidProgramError(f"the constants {a}, {b} and {c} must not be negative, nor more than 1 together")
        self._chances = (a, b, c)
        return self

    def set_noise(self, noise_enabled: bool, noise: float = 0.1) -> Self:
        """Vary the constants randomly by up to this share at every level of the recursion."""
        if not 0 <= noise <= 2:
            raise InvalidProgramError(f"the noise is {noise}; it must be between 0 and 2")
        self._noise = noise if noise_enabled else 0.0
        return self

    def generate(self) -> Graph:
        """Generate the graph."""
        scale = (self._vertices - 1).bit_length()
        return _generated(self.env, None, self._edges, _RMat(scale, self._chances, self._noise, self._seed))
