"""The loop of an iteration on the driver: runs supersteps until nothing is left to do.

State and messages travel together as the *carrier*. A superstep is one exchange. Its kernel reads the carrier of the
previous superstep and the topology, which does not move. It writes the new state of its own partition, messages for all
partitions, and a report for the driver.
"""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.common.errors import CheckpointError, InvalidProgramError
from penstock.gelly.environment import ExecutionEnvironment, SuperstepReport
from penstock.gelly.iterations.configuration import IterationConfiguration
from penstock.gelly.partitions import DRIVER, Bundle, Frame, Partitions

_LINEAGE = 10
"""After this many supersteps, the carrier is stored, and its lineage is dropped."""


@dataclass(frozen=True)
class Step:
    """The parameters of a superstep's kernel: which superstep receives messages and which one sends them."""

    channels: int
    number_of_vertices: int
    receive: int | None
    send: int | None
    previous: dict[str, Any] = field(default_factory=dict)


Kernel = Callable[..., Iterator[Frame]]
"""``kernel(step, channel, topology, carrier)``. The first superstep has no carrier."""


def report(active: int, messages: int, aggregates: dict[str, Any]) -> Frame:
    """Return the report of a task, as a frame for the driver."""
    data = pickle.dumps((active, messages, aggregates))
    return DRIVER, "report", pa.table({"report": [data]})


class Phase(NamedTuple):
    """The work of an exchange: the supersteps that receive and send in it, and the one that is complete after it."""

    receive: int | None
    send: int | None
    completes: int | None


def compute_phase(number: int, maximum: int) -> Phase | None:
    """Let a vertex receive and send in one call. Return None after the last superstep."""
    return Phase(number + 1, number + 1, number + 1) if number < maximum else None


def fused_phase(number: int, maximum: int) -> Phase | None:
    """Let the receiving half of a superstep and the sending half of the next one share an exchange."""
    if number > maximum:
        return None
    return Phase(number or None, number + 1 if number < maximum else None, number or None)


def separate_phase(number: int, maximum: int) -> Phase | None:
    """Use one exchange per half, so that the sending half knows the aggregates of the previous superstep."""
    superstep, receives = number // 2 + 1, number % 2
    if superstep > maximum:
        return None
    return Phase(superstep, None, superstep) if receives else Phase(None, superstep, None)


class Iteration:
    """Runs the supersteps of one iteration."""

    def __init__(
        self,
        env: ExecutionEnvironment,
        topology: Partitions,
        kernel: Kernel,
        configuration: IterationConfiguration,
        phase_of: Callable[[int, int], Phase | None],
        maximum: int,
    ) -> None:
        if maximum < 1:
            raise InvalidProgramError(
                f"the {configuration.name} has a maximum of {maximum} iterations; it must be at least 1"
            )
        self._env = env
        self._topology = topology.persist()
        self._kernel = kernel
        self._phase_of = phase_of
        self._maximum = maximum
        self._configuration = configuration

    def run(self) -> Partitions:
        """Return the carrier of the last superstep."""
        vertices, arcs = self._counts()
        identity = (self._configuration.name, self._env.get_parallelism(), vertices, arcs)
        number, carrier, aggregates = self._restored(identity)
        pending: dict[str, Any] = {}
        started = time.perf_counter()
        phase = self._phase_of(number, self._maximum)
        while phase is not None:
            following = self._phase_of(number + 1, self._maximum)
            step = Step(self._env.get_parallelism(), vertices, phase.receive, phase.send, aggregates)
            carrier = self._exchange(step, carrier, number)
            active, messages, found = self._report(carrier)
            pending = self._merged([pending, *found])
            done = self._is_idle(phase, active, messages)
            if phase.completes is not None:
                aggregates, pending = pending, {}
                seconds, started = time.perf_counter() - started, time.perf_counter()
                name = self._configuration.name
                self._env.on_superstep(SuperstepReport(name, phase.completes, active, messages, aggregates, seconds))
                done = done or self._has_converged(phase.completes, aggregates)
                if not done and following is not None:
                    carrier = self._checkpoint(identity, number, phase.completes, carrier, aggregates)
            if done:
                break
            number, phase = number + 1, following
        assert carrier is not None
        if self._configuration.checkpoint_path is not None:
            self._forget()
        return carrier

    def _exchange(self, step: Step, carrier: Partitions | None, number: int) -> Partitions:
        inputs = [self._topology] if carrier is None else [self._topology, carrier]
        made = self._env.engine.exchange(partial(self._kernel, step), inputs)
        if number % _LINEAGE == _LINEAGE - 1 and self._configuration.checkpoint_path is None:
            made.cut_lineage()
        return made

    def _counts(self) -> tuple[int, int]:
        """Return the numbers of vertices and arcs. Computes the topology."""
        counts = self._env.engine.narrow(_count, [self._topology]).collect("count")
        return (
            sum(table.column("vertices")[0].as_py() for table in counts),
            sum(table.column("arcs")[0].as_py() for table in counts),
        )

    def _report(self, carrier: Partitions) -> tuple[int, int, list[dict[str, Any]]]:
        active = messages = 0
        aggregates = []
        for table in carrier.report():
            for data in table.column("report").to_pylist():
                changed, sent, found = pickle.loads(data)
                active += changed
                messages += sent
                aggregates.append(found)
        return active, messages, aggregates

    def _merged(self, partial_aggregates: list[dict[str, Any]]) -> dict[str, Any]:
        merged = {}
        for name, aggregator in self._configuration.aggregators.items():
            total = copy.deepcopy(aggregator)
            total.reset()
            for found in partial_aggregates:
                if name in found:
                    total.aggregate(found[name])
            merged[name] = total.get_aggregate()
        return merged

    @staticmethod
    def _is_idle(phase: Phase, active: int, messages: int) -> bool:
        return messages == 0 if phase.send is not None else active == 0

    def _has_converged(self, superstep: int, aggregates: dict[str, Any]) -> bool:
        criterion = self._configuration.converged
        return criterion is not None and bool(criterion(superstep, aggregates))

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _checkpoint(
        self, identity: tuple[Any, ...], number: int, superstep: int, carrier: Partitions, aggregates: dict[str, Any]
    ) -> Partitions:
        path, engine = self._configuration.checkpoint_path, self._env.engine
        if path is None or superstep % self._configuration.checkpoint_interval:
            return carrier
        before = engine.read_note(f"{path}/latest")
        engine.save(carrier, f"{path}/superstep-{superstep}")
        note = {"identity": identity, "phase": number, "superstep": superstep, "aggregates": aggregates}
        engine.write_note(f"{path}/latest", note)
        if before is not None and before["superstep"] != superstep:
            engine.delete(f"{path}/superstep-{before['superstep']}")
        return engine.load(f"{path}/superstep-{superstep}")

    def _restored(self, identity: tuple[Any, ...]) -> tuple[int, Partitions | None, dict[str, Any]]:
        path = self._configuration.checkpoint_path
        note = None if path is None else self._env.engine.read_note(f"{path}/latest")
        if note is None:
            return 0, None, {}
        if note["identity"] != identity:
            what = ("name", "parallelism", "number of vertices", "number of edges")
            both = zip(what, note["identity"], identity, strict=True)
            differences = ", ".join(f"{name} {was!r}, now {now!r}" for name, was, now in both if was != now)
            raise CheckpointError(
                f"the checkpoint in {path} belongs to another iteration ({differences}): delete the directory, or "
                "set another one"
            )
        carrier = self._env.engine.load(f"{path}/superstep-{note['superstep']}")
        return note["phase"] + 1, carrier, note["aggregates"]

    def _forget(self) -> None:
        path, engine = self._configuration.checkpoint_path, self._env.engine
        note = engine.read_note(f"{path}/latest")
        if note is not None:
            engine.delete(f"{path}/latest")
            engine.delete(f"{path}/superstep-{note['superstep']}")


def _count(channel: int, topology: Bundle) -> Iterator[tuple[str, Any]]:
    vertices = topology["vertices"].num_rows if "vertices" in topology else 0
    arcs = topology["arcs"].num_rows if "arcs" in topology else 0
    yield "count", pa.table({"vertices": [vertices], "arcs": [arcs]})
