"""Runs the jobs on Bytewax: one process per unit of parallelism, one worker each.

Bytewax has a watermark for every key, which moves with the largest time seen and with the machine's clock. Here the
clock stands still, so that a replayed stream gives the same windows however fast it is read. Two workers read side by
side without waiting for each other; a key gets records of both, so its watermark waits much longer than Penstock's.

python -m benchmarks.systems.drive_bytewax --job b
"""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import TestingSink, cluster_main, run_main

from benchmarks.harness.cpu import adopt_orphans
from benchmarks.harness.options import Options, Workload
from benchmarks.harness.report import digest, hand_over
from benchmarks.harness.slope import measure_slope

SCATTER = 2_654_435_761
START = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
Reading = tuple[int, datetime, float]


class _Part(StatefulSourcePartition[int, int]):
    """One contiguous part of the sequence."""

    batch = 1_000

    def __init__(self, start: int, end: int) -> None:
        self.next, self.end = start, end

    def next_batch(self) -> range:
        """The next numbers."""
        if self.next >= self.end:
            raise StopIteration
        numbers = range(self.next, min(self.next + self.batch, self.end))
        self.next = numbers.stop
        return numbers

    def snapshot(self) -> int:
        """Where to go on."""
        return self.next


class Numbers(FixedPartitionedSource[int, int]):
    """The numbers from `first` on, cut into one part per worker."""

    def __init__(self, first: int, records: int, parts: int) -> None:
        self.first, self.parts = first, parts
        self.part = -(-records // parts)
        self.end = first + records

    def list_parts(self) -> list[str]:
        """Their names."""
        return [str(part) for part in range(self.parts)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> _Part:
        """Begin to read one."""
        start = self.first + int(for_part) * self.part
        return _Part(resume_state or start, min(start + self.part, self.end))


class _Nothing(StatelessSinkPartition[Any]):
    def write_batch(self, items: list[Any]) -> None:
        """Discard them."""


class Discard(DynamicSink[Any]):
    """A sink that keeps nothing."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Nothing:
        """One per worker."""
        return _Nothing()


# -- the jobs ---------------------------------------------------------------------------------------------------------


def map_filter(flow: Dataflow, load: Workload) -> Any:
    """(a)."""
    numbers = op.input("numbers", flow, Numbers(1, load.records, load.parallelism))
    return op.filter("filter", op.map("map", numbers, lambda n: 2 * n + 1), lambda n: n % 3 != 0)


def running_average(flow: Dataflow, load: Workload) -> Any:
    """(b), (c)."""
    keys = load.keys
    numbers = op.input("numbers", flow, Numbers(1, load.records, load.parallelism))
    keyed = op.map("key", numbers, lambda n: (str(n * SCATTER % keys), float(n)))

    def add(state: tuple[int, float] | None, value: float) -> tuple[tuple[int, float], float]:
        count, total = state or (0, 0.0)
        count, total = count + 1, total + value
        return (count, total), total / count

    return op.map("unkey", op.stateful_map("average", keyed, add), lambda pair: (int(pair[0]), pair[1]))


def readings(flow: Dataflow, load: Workload, name: str = "numbers", events_per_ms: int = 10) -> Any:
    """(key, (key, event time, value)), as benchmarks/jobs/windows.py makes them."""
    keys, splits = load.keys, load.parallelism
    part = -(-load.records // splits)
    per_split = max(1, events_per_ms // splits)
    numbers = op.input(name, flow, Numbers(0, part * splits, splits))

    def reading(n: int) -> tuple[str, Reading]:
        key = n * SCATTER % keys
        return str(key), (key, START + MILLISECOND * (n % part // per_split), float(n))

    return op.map(f"{name}_readings", numbers, reading)


def event_clock(workers: int) -> win.EventClock[Any]:
    """Event time that depends on the events alone, which carry it in their second field."""
    wait = 5 * MILLISECOND if workers == 1 else timedelta(seconds=10)
    return win.EventClock(
        ts_getter=lambda reading: reading[1],
        wait_for_system_duration=wait,
        now_getter=lambda: START,
        to_system_utc=lambda _: None,
    )


def averages(stream: Any, load: Workload, windows: win.Windower[Any]) -> Any:
    """The average of each key and window."""
    folded = win.fold_window(
        "windows",
        stream,
        event_clock(load.parallelism),
        windows,
        builder=lambda: (0, 0.0),
        folder=lambda acc, reading: (acc[0] + 1, acc[1] + reading[2]),
        merger=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        ordered=False,
    )
    return op.map("average", folded.down, lambda item: item[1][1][1] / item[1][1][0])


def tumbling(flow: Dataflow, load: Workload) -> Any:
    """(d)."""
    windows = win.TumblingWindower(length=timedelta(seconds=1), align_to=START)
    return averages(readings(flow, load), load, windows)


def sliding(flow: Dataflow, load: Workload) -> Any:
    """(e)."""
    windows = win.SlidingWindower(length=timedelta(seconds=60), offset=timedelta(seconds=1), align_to=START)
    return averages(readings(flow, load), load, windows)


def sessions(flow: Dataflow, load: Workload) -> Any:
    """(f)."""

    def active(item: tuple[str, Reading]) -> tuple[str, Reading]:
        key, time, value = item[1]
        key = key - key % 3 + (time - START) // timedelta(seconds=1) % 3
        return str(key), (key, time, value)

    stream = op.map("active", readings(flow, load), active)
    return averages(stream, load, win.SessionWindower(gap=timedelta(milliseconds=500)))


def join(flow: Dataflow, load: Workload) -> Any:
    """(g)."""
    half = replace(load, records=load.records // 2)
    joined = win.join_window(
        "join",
        event_clock(load.parallelism),
        win.TumblingWindower(length=timedelta(seconds=1), align_to=START),
        readings(flow, half, "left", events_per_ms=2),
        readings(flow, half, "right", events_per_ms=2),
        insert_mode="product",
        ordered=False,
    )

    def pairs(item: tuple[str, tuple[int, tuple[Reading | None, Reading | None]]]) -> tuple[int, float, float] | None:
        left, right = item[1][1]
        return (left[0], left[2], right[2]) if left and right else None  # it is an outer join

    return op.filter_map("pairs", joined.down, pairs)


BUILDERS: dict[str, Callable[[Dataflow, Workload], Any]] = {
    "a": map_filter,
    "b": running_average,
    "c": running_average,
    "d": tumbling,
    "e": sliding,
    "f": sessions,
    "g": join,
}


# -- running them -----------------------------------------------------------------------------------------------------


def _flow(job: str, load: Workload, sink: Any = None) -> Dataflow:
    flow = Dataflow("benchmark")
    op.output("sink", BUILDERS[job](flow, load), sink or Discard())
    return flow


def _worker(build: Callable[[Any], Dataflow], load: Any, addresses: list[str], process: int) -> None:
    cluster_main(build(load), addresses, process)


def _free_addresses(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def run_processes(build: Callable[[Any], Dataflow], load: Any, processes: int) -> None:
    """Run a dataflow to its end in so many processes."""
    spawn = multiprocessing.get_context("spawn")
    addresses = _free_addresses(processes)
    workers = [spawn.Process(target=_worker, args=(build, load, addresses, process)) for process in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError(f"a Bytewax worker ended with {[worker.exitcode for worker in workers]}")


def run(options: Options) -> dict[str, object]:
    """Do what the options ask for."""
    if options.mode == "collect":
        results: list[Any] = []
        run_main(_flow(options.job, options.workload(options.records), TestingSink(results)))
        return digest(results)

    def prepare(records: int) -> Callable[[], object]:
        load = options.workload(records)
        return lambda: run_processes(partial(_flow, options.job), load, load.parallelism)

    return measure_slope(prepare, expected=options.expected, seconds=options.seconds).as_json()


if __name__ == "__main__":
    adopt_orphans()
    hand_over(run(Options.parse()))
