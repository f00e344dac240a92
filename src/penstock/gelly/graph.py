"""Gelly's graph: vertices and edges with values, and its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.common.errors import InvalidProgramError
from penstock.gelly import kernels, neighborhood
from penstock.gelly.dataset import DataSet
from penstock.gelly.elements import Edge, EdgeDirection, Triplet, Vertex
from penstock.gelly.environment import ExecutionEnvironment
from penstock.gelly.kernels import EDGE, VERTEX
from penstock.gelly.partitions import Partitions

if TYPE_CHECKING:
    from penstock.gelly.algorithm import GraphAlgorithm
    from penstock.gelly.iterations.configuration import (
        GSAConfiguration,
        ScatterGatherConfiguration,
        VertexCentricConfiguration,
    )
    from penstock.gelly.validation import GraphValidator

__all__ = ["Graph"]


class Graph:
    """A directed graph. Vertices have unique ids, which are integers or strings. Several edges may connect two
    vertices. Graphs are immutable: every method returns a new one. They are computed on demand.

    >>> env = ExecutionEnvironment.create_collections_environment()
    >>> graph = Graph.from_collection([Vertex(1, "a"), Vertex(2, "b")], [Edge(1, 2, 0.5)], env)
    >>> graph.map_vertices(lambda vertex: vertex.value.upper()).get_triplets().collect()
    [Triplet(source=1, target=2, source_value='A', target_value='B', edge_value=0.5)]
    """

    def __init__(self, env: ExecutionEnvironment, vertices: Partitions, edges: Partitions) -> None:
        self.env = env
        self.vertex_partitions = vertices
        self.edge_partitions = edges

    # -- creation ------------------------------------------------------------------------------------------------------

    @staticmethod
    def from_collection(
        vertices: Any = None,
        edges: Any = (),
        env: ExecutionEnvironment | None = None,
        *,
        vertex_initializer: Callable[[Any], Any] | None = None,
    ) -> Graph:
        """Create a graph from vertices ``(id, value)`` and edges ``(source, target, value)``.

        Without vertices, the graph has the vertices of the edges, and ``vertex_initializer`` returns the value for an
        id. Both may be collections, Arrow tables, DataFrames, bounded streams, tables or data sets.
        """
        env = env or ExecutionEnvironment.get_execution_environment()
        routed = _routed(env, edges, "edges", EDGE, 2, "source")
        if vertices is not None:
            if vertex_initializer is not None:
                raise InvalidProgramError(
                    "pass either vertices or a vertex_initializer, which creates them from the edges"
                )
            return Graph(env, _checked_vertices(env, vertices), routed)
        ids = env.engine.exchange(partial(kernels.endpoints, env.get_parallelism()), [routed])
        made = env.engine.narrow(partial(kernels.vertices_of_ids, vertex_initializer), [ids])
        return Graph(env, made, routed)

    @staticmethod
    def from_dataframes(
        vertices: Any = None,
        edges: Any = None,
        env: ExecutionEnvironment | None = None,
        *,
        vertex_initializer: Callable[[Any], Any] | None = None,
    ) -> Graph:
        """Create a graph from DataFrames with the columns ``id``, ``value`` and ``source``, ``target``, ``value``.

        Columns with other names are used by position. Values may be missing.
        """
        if edges is None:
            raise InvalidProgramError("from_dataframes() needs edges")
        if env is None:
            session = getattr(edges, "sparkSession", None)
            env = ExecutionEnvironment.get_execution_environment(session)
        return Graph.from_collection(vertices, edges, env, vertex_initializer=vertex_initializer)

    @staticmethod
    def from_csv(
        edges_path: str,
        vertices_path: str | None = None,
        env: ExecutionEnvironment | None = None,
        *,
        id_type: type = int,
        vertex_type: type | None = None,
        edge_type: type | None = None,
        delimiter: str = ",",
        skip_first_line: bool = False,
        vertex_initializer: Callable[[Any], Any] | None = None,
    ) -> Graph:
        """Create a graph from CSV files: lines ``source,target[,value]`` for edges, and lines ``id[,value]`` for
        vertices.

        :param id_type: ``int`` or ``str``
        :param vertex_type: the type of vertex values (``int``, ``float``, ``str`` or ``bool``), or None without values
        :param edge_type: the type of edge values, in the same way
        """
        from penstock.gelly.csv_files import read_csv

        env = env or ExecutionEnvironment.get_execution_environment()
        edge_kinds = dict(zip(EDGE, (id_type, id_type, edge_type), strict=True))
        edges = read_csv(env, edges_path, edge_kinds, delimiter, skip_first_line=skip_first_line)
        vertices = None
        if vertices_path is not None:
            vertex_kinds = dict(zip(VERTEX, (id_type, vertex_type), strict=True))
            vertices = read_csv(env, vertices_path, vertex_kinds, delimiter, skip_first_line=skip_first_line)
        return Graph.from_collection(vertices, edges, env, vertex_initializer=vertex_initializer)

    # -- properties and metrics ----------------------------------------------------------------------------------------

    def get_context(self) -> ExecutionEnvironment:
        """The environment."""
        return self.env

    def get_vertices(self) -> DataSet[Vertex]:
        """The vertices."""
        return DataSet(self.env, self.vertex_partitions, "vertices", VERTEX, Vertex)

    def get_edges(self) -> DataSet[Edge]:
        """The edges."""
        return DataSet(self.env, self.edge_partitions, "edges", EDGE, Edge)

    def get_triplets(self) -> DataSet[Triplet]:
        """The edges with the values of both vertices."""
        half = self._exchange(partial(kernels.triplets, True), self.vertex_partitions, self.edge_partitions)
        full = self._exchange(partial(kernels.triplets, False), self.vertex_partitions, half)
        return DataSet(self.env, full, "triplets", Triplet._fields, Triplet)

    def get_vertex_ids(self) -> DataSet[Any]:
        """The ids of the vertices."""
        return DataSet(self.env, self.vertex_partitions, "vertices", ("id",), lambda number: number)

    def get_edge_ids(self) -> DataSet[tuple[Any, Any]]:
        """Pairs of the ids of source and target."""
        return DataSet(self.env, self.edge_partitions, "edges", EDGE[:2], lambda source, target: (source, target))

    def number_of_vertices(self) -> int:
        """Return the number of vertices."""
        return self.get_vertices().count()

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return self.get_edges().count()

    def in_degrees(self) -> DataSet[tuple[Any, int]]:
        """The number of incoming edges of each vertex."""
        return self._degrees(EdgeDirection.IN)

    def out_degrees(self) -> DataSet[tuple[Any, int]]:
        """The number of outgoing edges of each vertex."""
        return self._degrees(EdgeDirection.OUT)

    def get_degrees(self) -> DataSet[tuple[Any, int]]:
        """The number of incoming and outgoing edges of each vertex."""
        return self._degrees(EdgeDirection.ALL)

    def _degrees(self, direction: EdgeDirection) -> DataSet[tuple[Any, int]]:
        incident = self.incident_edges(direction)
        counted = self.env.engine.narrow(kernels.degrees, [self.vertex_partitions, incident])
        return DataSet(self.env, counted, "degrees", VERTEX, lambda number, degree: (number, degree))

    def validate(self, validator: GraphValidator) -> bool:
        """Whether the graph is valid."""
        return validator.validate(self)

    # -- transformations -----------------------------------------------------------------------------------------------

    def map_vertices(self, mapper: Callable[[Vertex], Any]) -> Graph:
        """Compute new vertex values."""
        return self.derive_vertices(partial(kernels.map_vertices, "map_vertices", mapper))

    def map_edges(self, mapper: Callable[[Edge], Any]) -> Graph:
        """Compute new edge values."""
        return self.derive_edges(partial(kernels.map_edges, "map_edges", mapper))

    def translate_graph_ids(self, translator: Callable[[Any], Any]) -> Graph:
        """Compute new ids. Different vertices must not get the same id."""
        from penstock.gelly.translation import translated

        return translated(self, translator)

    def translate_vertex_values(self, translator: Callable[[Any], Any]) -> Graph:
        """Compute new vertex values from the old values only."""
        return self.map_vertices(lambda vertex: translator(vertex.value))

    def translate_edge_values(self, translator: Callable[[Any], Any]) -> Graph:
        """Compute new edge values from the old values only."""
        return self.map_edges(lambda edge: translator(edge.value))

    def join_with_vertices(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Combine vertex values with those of ``(id, value)`` records: ``function(vertex_value, value)``.

        Vertices without a record do not change. If several records have the same id, one of them is used.
        """
        other = _routed(self.env, data, "input", VERTEX, 1, "id")
        return self.derive_vertices(partial(kernels.join_vertices, "join_with_vertices", function), other)

    def join_with_edges(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Combine edge values with those of ``(source, target, value)`` records: ``function(edge_value, value)``."""
        other = _routed(self.env, data, "edges", EDGE, 2, "source")
        return self.derive_edges(partial(kernels.join_edges, "join_with_edges", function), other)

    def join_with_edges_on_source(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Combine edge values with those of ``(id, value)`` records by the sources of the edges."""
        other = _routed(self.env, data, "input", VERTEX, 1, "id")
        return self.derive_edges(partial(kernels.join_edges_on, "join_with_edges_on_source", function, "source"), other)

    def join_with_edges_on_target(self, data: Any, function: Callable[[Any, Any], Any]) -> Graph:
        """Combine edge values with those of ``(id, value)`` records by the targets of the edges."""
        other = _routed(self.env, data, "input", VERTEX, 1, "id")
        by_target = self._exchange(partial(kernels.moved, "target"), self.edge_partitions)
        step = partial(kernels.join_edges_on, "join_with_edges_on_target", function, "target")
        joined = self.env.engine.narrow(step, [by_target, other])
        return self.but(edges=self._exchange(partial(kernels.moved, "source"), joined))

    def filter_on_vertices(self, predicate: Callable[[Vertex], bool]) -> Graph:
        """Keep the vertices for which the predicate is true, and the edges between them."""
        return self._subgraph(predicate, None)

    def filter_on_edges(self, predicate: Callable[[Edge], bool]) -> Graph:
        """Keep the edges for which the predicate is true, and all vertices."""
        return self.derive_edges(partial(kernels.filter_edges, "filter_on_edges", predicate))

    def subgraph(self, vertex_filter: Callable[[Vertex], bool], edge_filter: Callable[[Edge], bool]) -> Graph:
        """Keep the vertices for which the first predicate is true, and their edges for which the second one is true."""
        return self._subgraph(vertex_filter, edge_filter)

    def _subgraph(self, vertex_filter: Any, edge_filter: Any) -> Graph:
        kept = self.derive_vertices(partial(kernels.filter_vertices, "vertex filter", vertex_filter))
        if edge_filter is not None:
            kept = kept.derive_edges(partial(kernels.filter_edges, "edge filter", edge_filter))
        return kept.edges_between(kept.vertex_partitions, within=True)

    def edges_between(self, vertices: Partitions, *, within: bool) -> Graph:
        """Remove edges whose source or target is not (or is) one of the vertices."""
        edges = self.edge_partitions
        count = self.env.get_parallelism()
        for end, key in (("source", "target"), ("target", "source")):
            step = partial(kernels.edges_with_end, end, key, count, within)
            edges = self.env.engine.exchange(step, [vertices, edges])
        return self.but(edges=edges)

    def reverse(self) -> Graph:
        """Reverse all edges."""
        return self.but(edges=self._exchange(partial(kernels.reversed_edges, False), self.edge_partitions))

    def get_undirected(self) -> Graph:
        """Add an edge in the other direction for each edge."""
        return self.but(edges=self._exchange(partial(kernels.reversed_edges, True), self.edge_partitions))

    def union(self, graph: Graph) -> Graph:
        """Combine the vertices and edges of both graphs. For equal ids, the vertex of this graph is used."""
        engine = self.env.engine
        return Graph(
            self.env,
            engine.narrow(kernels.vertex_union, [self.vertex_partitions, graph.vertex_partitions]),
            engine.narrow(kernels.edge_union, [self.edge_partitions, graph.edge_partitions]),
        )

    def difference(self, graph: Graph) -> Graph:
        """Remove the vertices of the other graph, and their edges."""
        return self.remove_vertices(graph.get_vertices())

    def intersect(self, graph: Graph, distinct_edges: bool) -> Graph:
        """Keep the edges with the same value in both graphs, and their vertices, without values.

        :param distinct_edges: whether to keep each of them once; otherwise as often as it is in both graphs
        """
        engine, count = self.env.engine, self.env.get_parallelism()
        step = partial(kernels.edge_intersection, distinct_edges)
        edges = engine.narrow(step, [self.edge_partitions, graph.edge_partitions])
        ids = engine.exchange(partial(kernels.endpoints, count), [edges])
        return Graph(self.env, engine.narrow(partial(kernels.vertices_of_ids, None), [ids]), edges)

    # -- changes -------------------------------------------------------------------------------------------------------

    def add_vertex(self, vertex: Vertex) -> Graph:
        """Add a vertex, unless one with this id exists."""
        return self.add_vertices([vertex])

    def add_vertices(self, vertices: Any) -> Graph:
        """Add vertices. Those with existing ids are left out."""
        added = _routed(self.env, vertices, "vertices", VERTEX, 1, "id")
        return self.derive_vertices(kernels.vertex_union, added)

    def add_edge(self, source: Vertex, target: Vertex, edge_value: Any = None) -> Graph:
        """Add an edge, and its vertices if they are missing."""
        return self.add_vertices([source, target]).add_edges([Edge(source[0], target[0], edge_value)])

    def add_edges(self, edges: Any) -> Graph:
        """Add edges. Those with a missing vertex are left out."""
        added = _routed(self.env, edges, "edges", EDGE, 2, "source")
        valid = self.but(edges=added).edges_between(self.vertex_partitions, within=True)
        return self.derive_edges(kernels.edge_union, valid.edge_partitions)

    def remove_vertex(self, vertex: Vertex) -> Graph:
        """Remove the vertex with this id, and its edges."""
        return self.remove_vertices([vertex])

    def remove_vertices(self, vertices: Any) -> Graph:
        """Remove the vertices with these ids, and their edges."""
        removed = _routed(self.env, vertices, "vertices", VERTEX, 1, "id")
        return self.derive_vertices(kernels.vertex_difference, removed).edges_between(removed, within=False)

    def remove_edge(self, edge: Edge) -> Graph:
        """Remove all edges with this source and target."""
        return self.remove_edges([edge])

    def remove_edges(self, edges: Any) -> Graph:
        """Remove all edges with the source and target of one of these edges."""
        removed = _routed(self.env, edges, "edges", EDGE, 2, "source")
        return self.derive_edges(kernels.edge_difference, removed)

    # -- neighbourhoods ------------------------------------------------------------------------------------------------

    def reduce_on_edges(
        self, function: Callable[[Any, Any], Any], direction: EdgeDirection
    ) -> DataSet[tuple[Any, Any]]:
        """Reduce the values of each vertex's edges in a direction. A numpy ufunc (``np.minimum``) is fastest."""
        incident = self.incident_edges(direction)
        return self._reduced(partial(kernels.reduced, "reduce_on_edges", function, "value"), incident)

    def reduce_on_neighbors(
        self, function: Callable[[Any, Any], Any], direction: EdgeDirection
    ) -> DataSet[tuple[Any, Any]]:
        """Reduce the values of each vertex's neighbours in a direction. A numpy ufunc (``np.add``) is fastest."""
        step = partial(kernels.reduced, "reduce_on_neighbors", function, "neighbor_value")
        return self._reduced(step, self._neighbors(direction))

    def group_reduce_on_edges(
        self,
        function: neighborhood.EdgesFunction | neighborhood.EdgesFunctionWithVertexValue | Callable[..., Iterable[Any]],
        direction: EdgeDirection,
    ) -> DataSet[Any]:
        """Call a function with each vertex and its edges. A plain function counts as an `EdgesFunction`."""
        incident = self.incident_edges(direction)
        return self._results(partial(neighborhood.edge_groups, function), incident)

    def group_reduce_on_neighbors(
        self,
        function: neighborhood.NeighborsFunction
        | neighborhood.NeighborsFunctionWithVertexValue
        | Callable[..., Iterable[Any]],
        direction: EdgeDirection,
    ) -> DataSet[Any]:
        """Call a function with each vertex and its neighbours. A plain function counts as a `NeighborsFunction`."""
        return self._results(partial(neighborhood.neighbor_groups, function), self._neighbors(direction))

    def incident_edges(self, direction: EdgeDirection) -> Partitions:
        """Return tables ``incident``: the edges of each vertex in a direction, in the partition of the vertex."""
        if direction is EdgeDirection.OUT:
            return self.env.engine.narrow(kernels.outgoing, [self.edge_partitions])
        return self._exchange(partial(kernels.incident, direction, "vertex"), self.edge_partitions)

    def _neighbors(self, direction: EdgeDirection) -> Partitions:
        incident = self._exchange(partial(kernels.incident, direction, "neighbor"), self.edge_partitions)
        return self._exchange(kernels.with_neighbor_values, self.vertex_partitions, incident)

    def _reduced(self, kernel: Callable[..., Any], incident: Partitions) -> DataSet[tuple[Any, Any]]:
        found = self.env.engine.narrow(kernel, [incident])
        return DataSet(self.env, found, "reduced", VERTEX, lambda number, value: (number, value))

    def _results(self, kernel: Callable[..., Any], incident: Partitions) -> DataSet[Any]:
        found = self.env.engine.narrow(kernel, [self.vertex_partitions, incident])
        return DataSet(self.env, found, "results", ("value",), lambda value: value)

    # -- iterations and algorithms -------------------------------------------------------------------------------------

    def run(self, algorithm: GraphAlgorithm) -> Any:
        """Run an algorithm of the library, or your own, and return its result."""
        return algorithm.run(self)

    def run_vertex_centric_iteration(
        self,
        compute_function: Any,
        combiner: Any,
        maximum_number_of_iterations: int,
        parameters: VertexCentricConfiguration | None = None,
    ) -> Graph:
        """Run a Pregel program: each vertex with messages computes a new value and sends messages.

        :param compute_function: a `ComputeFunction`, or a `BatchComputeFunction`, which works on arrays
        :param combiner: a `MessageCombiner`, or None
        """
        from penstock.gelly.iterations.models import vertex_centric

        return vertex_centric(self, compute_function, combiner, maximum_number_of_iterations, parameters)

    def run_scatter_gather_iteration(
        self,
        scatter_function: Any,
        gather_function: Any,
        maximum_number_of_iterations: int,
        parameters: ScatterGatherConfiguration | None = None,
    ) -> Graph:
        """Vertices that have changed send messages (scatter); vertices with messages update their values (gather)."""
        from penstock.gelly.iterations.models import scatter_gather

        return scatter_gather(self, scatter_function, gather_function, maximum_number_of_iterations, parameters)

    def run_gather_sum_apply_iteration(
        self,
        gather_function: Any,
        sum_function: Any,
        apply_function: Any,
        maximum_number_of_iterations: int,
        parameters: GSAConfiguration | None = None,
    ) -> Graph:
        """Gather a value on each edge of changed vertices, sum the values per vertex, and apply the sum to it."""
        from penstock.gelly.iterations.models import gather_sum_apply

        functions = (gather_function, sum_function, apply_function)
        return gather_sum_apply(self, *functions, maximum_number_of_iterations, parameters)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _exchange(self, kernel: Callable[..., Any], *inputs: Partitions) -> Partitions:
        count = self.env.get_parallelism()
        return self.env.engine.exchange(partial(kernel, count), inputs)

    def derive_vertices(self, kernel: Callable[..., Any], *others: Partitions) -> Graph:
        """Return the graph with vertices that a kernel computes from its own and other collections."""
        return self.but(vertices=self.env.engine.narrow(kernel, [self.vertex_partitions, *others]))

    def derive_edges(self, kernel: Callable[..., Any], *others: Partitions) -> Graph:
        """Return the graph with edges that a kernel computes from its own and other collections."""
        return self.but(edges=self.env.engine.narrow(kernel, [self.edge_partitions, *others]))

    def but(self, vertices: Partitions | None = None, edges: Partitions | None = None) -> Graph:
        """Return the graph with other vertices or edges."""
        return Graph(self.env, vertices or self.vertex_partitions, edges or self.edge_partitions)


def _routed(env: ExecutionEnvironment, data: Any, name: str, columns: Sequence[str], keys: int, key: str) -> Partitions:
    """Return records of any source in the partitions of their keys."""
    rows = env.rows(data, columns, keys)
    step = partial(kernels.route, name, tuple(columns), keys, key, env.get_parallelism())
    return env.engine.exchange(step, [rows])


def _checked_vertices(env: ExecutionEnvironment, vertices: Any) -> Partitions:
    routed = _routed(env, vertices, "vertices", VERTEX, 1, "id")
    return env.engine.narrow(kernels.unique_vertices, [routed])
