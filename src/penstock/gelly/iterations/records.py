"""Supersteps that call a function for each vertex."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.common.errors import InvalidProgramError, shorten
from penstock.gelly import kernels
from penstock.gelly.columns import as_ids, decode, encode, groups_of, ordered, positions
from penstock.gelly.elements import Edge, Neighbor, Vertex
from penstock.gelly.functions import failed
from penstock.gelly.iterations.aggregators import Aggregator
from penstock.gelly.iterations.functions import IterationContext
from penstock.gelly.iterations.supersteps import Step, report
from penstock.gelly.partitions import Bundle, Frame

# -- topology ----------------------------------------------------------------------------------------------------------


def topology(channel: int, vertices: Bundle, incident: Bundle, *degrees: Bundle) -> Iterator[tuple[str, Any]]:
    """Return vertices sorted by id, and arcs sorted by the vertices that send along them."""
    table = ordered(kernels.vertices_in(vertices), "id")
    if table.num_rows:
        for name, bundle in zip(("in_degree", "out_degree"), degrees, strict=False):
            found = positions(table.column("id"), bundle["degrees"].column("id"))
            table = table.append_column(name, bundle["degrees"].column("value").take(pa.array(found)))
        yield "vertices", table
    if "incident" in incident:
        arcs = incident["incident"]
        sender = positions(arcs.column("vertex"), table.column("id"))
        if (sender < 0).any():
            wrong = int(np.flatnonzero(sender < 0)[0])
            raise kernels.missing_vertex(arcs.column("vertex")[wrong].as_py())
        arcs = arcs.append_column("sender", pa.array(sender))
        yield "arcs", ordered(arcs, "sender", "neighbor")


# -- one task ----------------------------------------------------------------------------------------------------------


@dataclass
class Functions:
    """The functions of an iteration: for received messages, for sending, and for messages in transit."""

    receive: Any
    send: Any
    combine: Callable[[Sequence[Any]], Sequence[Any]] | None
    receiving: Callable[[Partition, Any, Vertex, Sequence[Any]], None]
    sending: Callable[[Partition, Any, int, Vertex], None] | None
    everything_first: bool
    aggregators: dict[str, Aggregator]
    knows_count: bool
    called: Sequence[Any] = ()


class Partition:
    """The vertices of a task in one superstep."""

    def __init__(self, step: Step, bundle: Bundle, carrier: Bundle | None, functions: Functions) -> None:
        self.vertices = kernels.vertices_in(bundle)
        self._arcs = bundle.get("arcs")
        self.ids = decode(self.vertices.column("id"))
        state = None if carrier is None else carrier.get("state")
        values = self.vertices.column("value") if state is None else state.column("value")
        self.values = decode(values)
        self.changed = [True] * len(self.ids) if state is None else decode(state.column("changed"))
        self.inbox = self._received(carrier)
        self._degrees = [decode(self.vertices.column(name)) for name in self.vertices.column_names[2:]]
        aggregators = copy.deepcopy(functions.aggregators)
        for aggregator in aggregators.values():
            aggregator.reset()
        count = step.number_of_vertices if functions.knows_count else -1
        self.context = IterationContext(step.receive or step.send or 0, count, aggregators, step.previous)
        self.targets: list[Any] = []
        self.messages: list[Any] = []
        self._columns: list[list[Any]] | None = None
        self._starts: list[int] = []
        self._at = 0

    def _received(self, carrier: Bundle | None) -> dict[int, list[Any]]:
        if carrier is None or "messages" not in carrier:
            return {}
        table = carrier["messages"]
        ids, order, starts = groups_of(table.column("target"))
        found = positions(ids, self.vertices.column("id"))
        if (found < 0).any():
            missing = ids[int(np.flatnonzero(found < 0)[0])].as_py()
            raise InvalidProgramError(
                f"a message was sent to vertex {shorten(missing)}, which the graph does not have: add the vertex, or "
                "remove the edges that lead to it"
            )
        values = decode(table.column("value").take(pa.array(order)))
        bounds = zip(found.tolist(), starts.tolist(), starts[1:].tolist(), strict=False)
        return {position: values[start:end] for position, start, end in bounds}

    def focus(self, position: int) -> Vertex:
        """Select the vertex for which functions are called."""
        self._at = position
        if self._degrees:
            self.context.degrees = (self._degrees[0][position], self._degrees[1][position])
        return Vertex(self.ids[position], self.values[position])

    def open_outbox(self) -> None:
        """Let functions send messages and read edges."""
        context, targets, messages = self.context, self.targets, self.messages

        def send(target: Any, message: Any) -> None:
            targets.append(target)
            messages.append(message)

        context.send = send
        context.edges = lambda: [
            Edge(vertex, neighbor, value) if outgoing else Edge(neighbor, vertex, value)
            for vertex, neighbor, value, outgoing in self.arcs()
        ]
        context.neighbors = lambda: [neighbor for _, neighbor, _, _ in self.arcs()]

    def arcs(self) -> list[tuple[Any, ...]]:
        """Return the arcs of the current vertex: vertex, neighbour, value, whether the edge leaves the vertex."""
        if self._arcs is None:
            return []
        if self._columns is None:
            self._columns = [decode(self._arcs.column(name)) for name in kernels.INCIDENT]
            counts = np.bincount(self._arcs.column("sender").to_numpy(), minlength=len(self.ids))
            self._starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
        start, end = self._starts[self._at], self._starts[self._at + 1]
        return list(zip(*[column[start:end] for column in self._columns], strict=True))


def superstep(
    functions: Functions, step: Step, channel: int, bundle: Bundle, carrier: Bundle | None = None
) -> Iterator[Frame]:
    """Run the kernel of a superstep."""
    part = Partition(step, bundle, carrier, functions)
    used = {id(each): each for each in (functions.receive, functions.send, *functions.called) if each is not None}
    for function in used.values():
        function.context = part.context
    active = [
        function
        for number, function in ((step.receive, functions.receive), (step.send, functions.send))
        if number is not None and function is not None
    ]
    together = functions.sending is None  # a compute function receives and sends
    if together:
        part.open_outbox()
    for function in active:
        function.pre_superstep()
    called = 0
    if step.receive is not None:
        called = _receive(functions, part, first=carrier is None)
    if step.send is not None and not together:
        _send(functions, part, step.send)
    for function in active:
        function.post_superstep()
    yield from _frames(functions, step, channel, part, called)


def _receive(functions: Functions, part: Partition, *, first: bool) -> int:
    wanted = range(len(part.ids)) if first and functions.everything_first else sorted(part.inbox)
    part.changed = [False] * len(part.ids)
    updates = part.context.updates
    called = 0
    for position in wanted:
        vertex = part.focus(position)
        updates.clear()
        try:
            functions.receiving(part, functions.receive, vertex, part.inbox.get(position, []))
        except Exception as error:
            failed(type(functions.receive).__name__, error, vertex)
        called += 1
        if updates:
            part.values[position] = updates[0]
            part.changed[position] = True
    return called


def _send(functions: Functions, part: Partition, number: int) -> None:
    part.context.superstep = number
    part.open_outbox()
    assert functions.sending is not None
    for position, changed in enumerate(part.changed):
        if changed:
            vertex = part.focus(position)
            try:
                functions.sending(part, functions.send, position, vertex)
            except Exception as error:
                failed(type(functions.send).__name__, error, vertex)


def _frames(functions: Functions, step: Step, channel: int, part: Partition, called: int) -> Iterator[Frame]:
    targets, messages = part.targets, part.messages
    if functions.combine is not None and targets:
        targets, messages = _combined(functions.combine, targets, messages)
    if part.ids:
        yield channel, "state", pa.table({"value": encode(part.values), "changed": pa.array(part.changed)})
    if targets:
        table = pa.table({"target": as_ids(encode(targets), "messages"), "value": encode(messages)})
        yield from kernels.send("messages", table, "target", step.channels)
    aggregates = {name: aggregator.get_aggregate() for name, aggregator in part.context.aggregators.items()}
    changed = called if functions.sending is None else sum(part.changed) if step.receive is not None else 0
    yield report(changed, len(targets), aggregates)


def _combined(
    combine: Callable[[Sequence[Any]], Sequence[Any]], targets: list[Any], messages: list[Any]
) -> tuple[list[Any], list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for target, message in zip(targets, messages, strict=True):
        groups.setdefault(target, []).append(message)
    fewer: tuple[list[Any], list[Any]] = ([], [])
    for target, found in groups.items():
        for message in combine(found) if len(found) > 1 else found:
            fewer[0].append(target)
            fewer[1].append(message)
    return fewer


# -- the three models --------------------------------------------------------------------------------------------------


def compute(part: Partition, function: Any, vertex: Vertex, messages: Sequence[Any]) -> None:
    """Let a vertex-centric program receive and send in one call."""
    function.compute(vertex, messages)


def gather(part: Partition, function: Any, vertex: Vertex, messages: Sequence[Any]) -> None:
    """Let a scatter-gather program receive."""
    function.update_vertex(vertex, messages)


def scatter(part: Partition, function: Any, position: int, vertex: Vertex) -> None:
    """Let a scatter-gather program send."""
    function.send_messages(vertex)


class Gathering:
    """The sending half of a gather-sum-apply program: gathered values go to the vertex at the end of each arc."""

    def __call__(self, part: Partition, function: Any, position: int, vertex: Vertex) -> None:
        """Gather on the arcs of a vertex."""
        for _, neighbor, value, _ in part.arcs():
            part.context.send(neighbor, function.gather(Neighbor(vertex.value, value)))


class Applying:
    """The receiving half of a gather-sum-apply program: sums partial values and applies them."""

    def __init__(self, sum_function: Any) -> None:
        self._sum = sum_function

    def __call__(self, part: Partition, function: Any, vertex: Vertex, messages: Sequence[Any]) -> None:
        """Sum the values, and apply the sum."""
        total = messages[0]
        for message in messages[1:]:
            total = self._sum.sum(total, message)
        function.apply(total, vertex.value)


class Summing:
    """Sums gathered values for the same vertex."""

    def __init__(self, sum_function: Any) -> None:
        self._sum = sum_function

    def __call__(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return one partial value."""
        total = messages[0]
        for message in messages[1:]:
            total = self._sum.sum(total, message)
        return [total]


class Combining:
    """Calls a user's combiner."""

    def __init__(self, combiner: Any) -> None:
        self._combiner = combiner

    def __call__(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return the message that the combiner sends instead of the others."""
        self._combiner.combined = []
        try:
            self._combiner.combine_messages(messages)
        except Exception as error:
            failed(type(self._combiner).__name__, error, messages)
        found: list[Any] = self._combiner.combined
        return found


def result(channel: int, bundle: Bundle, carrier: Bundle) -> Iterator[tuple[str, Any]]:
    """Return the vertices with their new values."""
    vertices = kernels.vertices_in(bundle).select(list(kernels.VERTEX))
    if "state" in carrier:
        vertices = kernels.with_values(vertices, carrier["state"].column("value"))
    yield "vertices", vertices
