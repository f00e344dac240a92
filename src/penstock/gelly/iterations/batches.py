"""Supersteps that call a function for all vertices of a partition, with arrays.

Vertices are addressed by partition and position, so messages carry four bytes instead of an id, and a superstep looks
up no ids. Arcs are sorted by receiver, so messages to the same vertex are adjacent, and a combiner is one call of
``reduceat``.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.gelly import kernels
from penstock.gelly.columns import flat, from_numbers, numbers, ordered, positions, split
from penstock.gelly.functions import failed
from penstock.gelly.iterations.configuration import IterationConfiguration, VertexCentricConfiguration
from penstock.gelly.iterations.supersteps import Iteration, Step, compute_phase, report
from penstock.gelly.partitions import Bundle, Frame, Partitions

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["BatchComputeFunction", "VertexBatch"]

_COMBINERS = (np.add, np.minimum, np.maximum)


class BatchComputeFunction(ABC):
    """A vertex-centric program on arrays: called once per superstep for each partition."""

    @abstractmethod
    def compute(self, batch: VertexBatch) -> None:
        """Read messages, update ``batch.state``, send messages."""


class VertexBatch:
    """The vertices of a partition in a superstep, as numpy arrays. All arrays of vertices have the same rows.

    ``state`` has the columns that are kept between supersteps. It starts with ``{"value": ...}``, the values of the
    vertices. At the end, its column ``value`` has the new values. Add columns as you need them. ``received`` tells
    which vertices have messages. With a combiner, ``messages`` has one combined message per vertex (0 without
    messages). Without a combiner, ``messages`` has all messages, and ``message_targets`` the rows of their receivers,
    in ascending order.
    """

    def __init__(self, step: Step, bundle: Bundle, carrier: Bundle | None, combiner: Any) -> None:
        self._vertices = bundle["vertices"]
        self._arcs = bundle.get("arcs")
        self.size: int = self._vertices.num_rows
        self.superstep_number = step.receive or 0
        self.number_of_vertices = step.number_of_vertices
        self.previous_aggregates: Mapping[str, Any] = step.previous
        self.broadcast_sets: Mapping[str, list[Any]] = {}
        self.aggregates: dict[str, list[Any]] = {}
        self.extra_messages = 0
        self.outbox: list[tuple[Any, dict[str, Any]]] = []
        self.state: dict[str, Any] = self._state(carrier)
        self._combiner = combiner
        self.received = np.zeros(self.size, dtype=bool)
        self.message_targets: Any = np.zeros(0, dtype=np.int64)
        self.messages: Any = np.zeros(self.size if combiner is not None else 0)
        self.message_columns: dict[str, Any] = defaultdict(_no_messages)
        if carrier is not None and "messages" in carrier:
            self._read(carrier["messages"])

    def _state(self, carrier: Bundle | None) -> dict[str, Any]:
        if carrier is None:
            return {"value": _writable(numbers(self._vertices.column("value")))}
        table = carrier["state"]
        return {name: _writable(numbers(table.column(name))) for name in table.column_names}

    def _read(self, table: Any) -> None:
        target = table.column("position").to_numpy()
        self.received[target] = True
        columns = {name: numbers(table.column(name)) for name in table.column_names[1:]}
        if self._combiner is None:
            order = np.argsort(target, kind="stable")
            self.message_targets = target[order]
            self.message_columns.update({name: column[order] for name, column in columns.items()})
            self.messages = self.message_columns["value"]
            return
        values = columns["value"]
        if self._combiner is np.add and values.dtype == np.float64:
            self.messages = np.bincount(target, weights=values, minlength=self.size)
            return
        start = 0 if self._combiner is np.add else _extreme(values.dtype, largest=self._combiner is np.minimum)
        combined = np.full(self.size, start, dtype=values.dtype)
        self._combiner.at(combined, target, values)
        self.messages = np.where(self.received, combined, np.zeros(1, dtype=values.dtype))

    # -- vertices and edges --------------------------------------------------------------------------------------------

    @property
    def ids(self) -> Any:
        """The ids of the vertices."""
        return numbers(self._vertices.column("id"))

    @property
    def edge_rows(self) -> Any:
        """For each edge, the row of the vertex that sends along it."""
        return np.zeros(0, dtype=np.int32) if self._arcs is None else self._arcs.column("sender").to_numpy()

    @property
    def edge_values(self) -> Any:
        """The values of the edges."""
        return np.zeros(0) if self._arcs is None else numbers(self._arcs.column("value"))

    @property
    def edge_outgoing(self) -> Any:
        """For each edge, whether it leaves its vertex. Relevant for the direction `EdgeDirection.ALL`."""
        return np.zeros(0, dtype=bool) if self._arcs is None else numbers(self._arcs.column("outgoing"))

    @property
    def degrees(self) -> Any:
        """For each vertex, the number of edges along which it sends."""
        return np.bincount(self.edge_rows, minlength=self.size)

    # -- messages ------------------------------------------------------------------------------------------------------

    def send_to_neighbors(self, messages: Any, mask: Any = None) -> None:
        """Send the message of each vertex along its edges.

        :param messages: an array with a message for each vertex; without a combiner also a dict of such arrays
        :param mask: which vertices send
        """
        rows = self.edge_rows
        chosen = None if mask is None else np.flatnonzero(mask[rows])
        senders = rows if chosen is None else rows[chosen]
        self._send(chosen, {name: column[senders] for name, column in _columns(messages).items()})

    def send_along_edges(self, messages: Any, mask: Any = None) -> None:
        """Send a message along each edge.

        :param messages: an array with a message for each edge; without a combiner also a dict of such arrays
        :param mask: along which edges to send
        """
        chosen = None if mask is None else np.flatnonzero(mask)
        columns = _columns(messages)
        self._send(chosen, columns if chosen is None else {name: column[chosen] for name, column in columns.items()})

    def _send(self, chosen: Any, columns: dict[str, Any]) -> None:
        if self._arcs is not None and (chosen is None or len(chosen)):
            self.outbox.append((chosen, columns))

    def stay_active(self) -> None:
        """Request another superstep, although no message was sent."""
        self.extra_messages = 1

    # -- all vertices --------------------------------------------------------------------------------------------------

    def aggregate(self, name: str, value: Any) -> None:
        """Add a value to a registered aggregator."""
        self.aggregates.setdefault(name, []).append(value)

    def get_previous_iteration_aggregate(self, name: str) -> Any:
        """Return the aggregate of the previous superstep, or None in the first one."""
        return self.previous_aggregates.get(name)

    def get_broadcast_set(self, name: str) -> list[Any]:
        """Return the records of a broadcast set."""
        if name not in self.broadcast_sets:
            raise InvalidProgramError(f"the configuration of the iteration has no broadcast set {name!r}")
        return self.broadcast_sets[name]

    # -- for the runtime -----------------------------------------------------------------------------------------------

    def message_tables(self, channels: int) -> Iterator[tuple[int, Any]]:
        """Yield combined messages by the partition of their receivers."""
        for chosen, messages in self.outbox:
            columns = messages
            assert self._arcs is not None
            to = self._arcs.column("channel").to_numpy()
            position = self._arcs.column("position").to_numpy()
            if chosen is not None:
                to, position = to[chosen], position[chosen]
            if self._combiner is not None:
                changes = (position[1:] != position[:-1]) | (to[1:] != to[:-1])
                starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
                columns = {"value": self._combiner.reduceat(columns["value"], starts)}
                to, position = to[starts], position[starts]
            table = pa.table({"position": position, **{name: from_numbers(each) for name, each in columns.items()}})
            bounds: Any = np.searchsorted(to, np.arange(channels + 1), side="left")
            for channel, (start, end) in enumerate(itertools.pairwise(bounds.tolist())):
                if end > start:
                    yield channel, table.slice(start, end - start)


def _no_messages() -> Any:
    return np.zeros(0)


def _writable(array: Any) -> Any:
    return array if array.flags.writeable else array.copy()


def _columns(messages: Any) -> dict[str, Any]:
    if isinstance(messages, Mapping):
        return {name: np.asarray(column) for name, column in messages.items()}
    return {"value": np.asarray(messages)}


def _extreme(kind: Any, *, largest: bool) -> Any:
    if np.issubdtype(kind, np.floating):
        return np.inf if largest else -np.inf
    limits = np.iinfo(kind)
    return limits.max if largest else limits.min


# -- topology ----------------------------------------------------------------------------------------------------------


def _questions(count: int, channel: int, incident: Bundle) -> Iterator[Frame]:
    """Send the ids of all neighbours to the partitions that know their positions."""
    if "incident" in incident:
        ids = pc.unique(incident["incident"].column("neighbor"))
        table = pa.table({"id": ids, "origin": pa.array(np.full(len(ids), channel, dtype=np.int32))})
        yield from kernels.send("questions", table, "id", count)


def _answers(count: int, channel: int, vertices: Bundle, questions: Bundle) -> Iterator[Frame]:
    """Send the positions of vertices back."""
    if "questions" not in questions:
        return
    table = questions["questions"]
    found = positions(table.column("id"), ordered(kernels.vertices_in(vertices), "id").column("id"))
    if (found < 0).any():
        raise kernels.missing_vertex(table.column("id")[int(np.flatnonzero(found < 0)[0])].as_py())
    origin = table.column("origin").to_numpy()
    answers = pa.table(
        {
            "id": table.column("id"),
            "channel": pa.array(np.full(len(found), channel, dtype=np.int32)),
            "position": pa.array(found.astype(np.int32)),
        }
    )
    for to, part in split(answers, origin, count):
        yield to, "answers", part


def _topology(channel: int, vertices: Bundle, incident: Bundle, answers: Bundle) -> Iterator[tuple[str, Any]]:
    """Return vertices sorted by id, and arcs sorted by receiver."""
    table = ordered(kernels.vertices_in(vertices), "id")
    if table.num_rows:
        yield "vertices", table
    if "incident" not in incident:
        return
    arcs, places = incident["incident"], answers["answers"]
    sender = positions(arcs.column("vertex"), table.column("id"))
    if (sender < 0).any():
        raise kernels.missing_vertex(arcs.column("vertex")[int(np.flatnonzero(sender < 0)[0])].as_py())
    place = positions(arcs.column("neighbor"), places.column("id"))
    to = places.column("channel").to_numpy()[place]
    position = places.column("position").to_numpy()[place]
    order = np.lexsort((sender, position, to))
    columns = {
        "sender": sender[order].astype(np.int32),
        "channel": to[order],
        "position": position[order],
        "outgoing": flat(arcs.column("outgoing")).take(pa.array(order)),
        "value": arcs.column("value").take(pa.array(order)),
    }
    yield "arcs", pa.table(columns)


# -- supersteps --------------------------------------------------------------------------------------------------------


def _superstep(
    function: BatchComputeFunction,
    combiner: Any,
    configuration: IterationConfiguration,
    step: Step,
    channel: int,
    bundle: Bundle,
    carrier: Bundle | None = None,
) -> Iterator[Frame]:
    if "vertices" not in bundle:
        yield report(0, 0, {})
        return
    batch = VertexBatch(step, bundle, carrier, combiner)
    batch.broadcast_sets = configuration.broadcast_sets.get("compute", {})
    try:
        function.compute(batch)
        sent = list(batch.message_tables(step.channels))
    except PenstockError:
        raise
    except Exception as error:
        failed(type(function).__name__, error, f"a batch of {batch.size} vertices in superstep {step.receive}")
    yield channel, "state", pa.table({name: from_numbers(column) for name, column in batch.state.items()})
    for to, table in sent:
        yield to, "messages", table
    active = batch.size if carrier is None else int(batch.received.sum())
    messages = batch.extra_messages + sum(table.num_rows for _, table in sent)
    yield report(active, messages, _aggregated(configuration, batch))


def _aggregated(configuration: IterationConfiguration, batch: VertexBatch) -> dict[str, Any]:
    found = {}
    for name, values in batch.aggregates.items():
        if name not in configuration.aggregators:
            raise InvalidProgramError(f"the configuration of the iteration has no aggregator {name!r}")
        aggregator = copy.deepcopy(configuration.aggregators[name])
        aggregator.reset()
        for value in values:
            aggregator.aggregate(value)
        found[name] = aggregator.get_aggregate()
    return found


def _result(names: tuple[str, ...], channel: int, bundle: Bundle, carrier: Bundle) -> Iterator[tuple[str, Any]]:
    if "vertices" in bundle:
        table = bundle["vertices"].select(["id"])
        for name in names:
            table = table.append_column(name, carrier["state"].column(name))
        yield "vertices", table


def _included(channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if "vertices" in bundle:
        table = bundle["vertices"]
        yield "vertices", table.filter(table.column("included")).drop_columns(["included"])


def run_batches(
    graph: Graph, function: BatchComputeFunction, combiner: Any, maximum: int, configuration: VertexCentricConfiguration
) -> Graph:
    """Run a vertex-centric iteration on arrays."""
    return graph.but(vertices=final_state(graph, function, combiner, maximum, configuration, ("value",)))


def final_state(
    graph: Graph,
    function: BatchComputeFunction,
    combiner: Any,
    maximum: int,
    configuration: VertexCentricConfiguration,
    columns: tuple[str, ...],
) -> Partitions:
    """Return the columns of the state after the last superstep, with the ids, as tables named ``vertices``.

    With a column ``included``, only the vertices for which it is true are returned.
    """
    if combiner is not None and combiner not in _COMBINERS:
        raise InvalidProgramError(
            "the combiner of a BatchComputeFunction must be numpy.add, numpy.minimum, numpy.maximum or None, got "
            f"{combiner!r}"
        )
    env = graph.env
    engine, count = env.engine, env.get_parallelism()
    incident = graph.incident_edges(configuration.direction)
    questions = engine.exchange(partial(_questions, count), [incident])
    answers = engine.exchange(partial(_answers, count), [graph.vertex_partitions, questions])
    topology = engine.narrow(_topology, [graph.vertex_partitions, incident, answers])
    kernel = partial(_superstep, function, combiner, configuration)
    carrier = Iteration(env, topology, kernel, configuration, compute_phase, maximum).run()
    found = engine.narrow(partial(_result, columns), [topology, carrier])
    return engine.narrow(_included, [found]) if "included" in columns else found
