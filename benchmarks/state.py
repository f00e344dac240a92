"""What state costs: savepoint and restore of a million keys, batches on large state, recovery after many batches.

    python benchmarks/state.py

Four promises, on an embedded Spark with two cores (`docs/performance.md`). Exits with 1 if one is not kept:

* a savepoint of a million keys of 100 bytes and a restore from it take less than 60 s together, and the driver's memory
  does not grow with the state;
* a batch that touches a hundred keys costs with a million keys in state at most twice what it costs with a thousand;
* so does a batch that adds a hundred elements to a list state, or changes a hundred entries of a map state, that has a
  million of them under one key;
* after `kill -9`, a job that has run many batches is back as soon as one that has run few.

Every figure comes in seconds of the clock and in CPU seconds of the whole process tree: the former mean something on a
quiet machine only.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness.cpu import adopt_orphans, processes_of_session, tree_cpu_seconds
from benchmarks.jobs.keyed_values import SPLITS, Gate, build, build_collection
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.spark import session

PARALLELISM = 2
MEGABYTE = 1 << 20
PATIENCE = 600.0
LIMIT_SECONDS = 60.0
LIMIT_RATIO = 2.0
NOISE_RATIO = 1.5  # of two recoveries that should take the same
DRIVER_GROWTH = 64 * MEGABYTE  # allowed when the state is a thousand times as large


@dataclass(slots=True)
class Cost:
    """Seconds of the clock and of all processors."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:7.2f} s  {self.cpu:7.2f} CPU s"


class Stopwatch:
    """Measures from where it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), tree_cpu_seconds()

    def cost(self, parts: int = 1) -> Cost:
        """Since then, divided into equal parts."""
        return Cost((time.monotonic() - self._wall) / parts, (tree_cpu_seconds() - self._cpu) / parts)


class Run:
    """One execution of the job, fed batch by batch."""

    def __init__(
        self,
        gate: str,
        keys: int,
        *,
        checkpoint: str | None = None,
        savepoint: str | None = None,
        collection: str | None = None,
    ) -> None:
        settings = {"penstock.batch.max-records": "400000"}
        if savepoint is not None:
            settings["execution.savepoint.path"] = savepoint
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(PARALLELISM)
        if checkpoint is not None:
            env.get_checkpoint_config().set_checkpoint_storage(checkpoint)
        if collection is None:
            build(env, gate, keys)
        else:
            build_collection(env, gate, collection, keys)
        self._gate = gate
        self.client: Any = env.execute_async(gate)
        self._done = self.client.get_job_execution_result()

    @property
    def batches(self) -> int:
        """Committed so far, in all its lives."""
        return int(self.client.progress.checkpoint_id)

    def feed(self, records: int) -> None:
        """Let so many records through and wait until they are committed."""
        before = self.client.progress.source_records
        Gate.opened[self._gate] = Gate.opened.get(self._gate, 0) + records // SPLITS
        self._wait(lambda: self.client.progress.source_records >= before + records)

    def started(self) -> None:
        """Wait for the first batch."""
        self._wait(lambda: self.client.progress.recent)

    def _wait(self, condition: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self._done.done():
                self._done.result()
                raise RuntimeError("the job has ended")
            if time.monotonic() > deadline:
                raise TimeoutError(f"no progress in {PATIENCE:.0f} s")
            time.sleep(0.001)


# -- memory -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Memory:
    """Bytes at their highest since `forget_peaks`, and what Java's heap holds after a collection."""

    driver: int
    java: int
    heap: int


def forget_peaks() -> None:
    """Start afresh."""
    for pid in (os.getpid(), _embedded().jvm.pid):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def memory() -> Memory:
    """Look at the driver's two processes."""
    embedded = _embedded()
    java: Any = embedded.session.sparkContext._jvm
    runtime = java.java.lang.Runtime.getRuntime()
    peaks = [_peak(pid) for pid in (os.getpid(), embedded.jvm.pid)]
    runtime.gc()
    return Memory(*peaks, int(runtime.totalMemory()) - int(runtime.freeMemory()))


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _embedded() -> Any:
    assert session._embedded is not None
    return session._embedded


# -- savepoints, and batches on large state ---------------------------------------------------------------------


@dataclass(slots=True)
class StateCost:
    """What a state of some size costs."""

    savepoint: Cost
    restore: Cost
    memory: Memory


def filled(keys: int, collection: str | None = None) -> Run:
    """A job with state: so many keys, or one key with so much in a collection."""
    run = Run(f"{collection or 'state'} of {keys}", keys, collection=collection)
    watch = Stopwatch()
    run.feed(keys)
    what = "keys  " if collection is None else f"in a {collection}"
    print(f"{keys:>9,} {what} filled     {watch.cost()}", flush=True)
    return run


def measure_batches(runs: list[Run], *, batches: int, touched: int) -> list[Cost]:
    """Small batches of all jobs in turn, so that a JVM that gets faster and neighbours that get busy hit all alike."""
    costs: list[list[Cost]] = [[] for _ in runs]
    for number in range(batches // 2 + batches):
        for run, each in zip(runs, costs, strict=True):
            watch = Stopwatch()
            run.feed(touched)
            if number >= batches // 2:
                each.append(watch.cost())
    return [Cost(median(cost.wall for cost in each), sum(cost.cpu for cost in each) / len(each)) for each in costs]


def measure_savepoint(run: Run, keys: int, directory: str, *, touched: int) -> StateCost:
    """Save the state, restore it, and look whether it is all there."""
    forget_peaks()
    watch = Stopwatch()
    path = run.client.stop_with_savepoint(False, directory).result(PATIENCE)
    savepoint = watch.cost()
    watch = Stopwatch()
    run = Run(f"state of {keys}", keys, savepoint=path)
    run.started()
    restore = watch.cost()
    used = memory()
    for _ in range(5):
        run.feed(touched)  # complains if a key is gone
    run.client.cancel().result(PATIENCE)
    return StateCost(savepoint, restore, used)


# -- recovery ---------------------------------------------------------------------------------------------------


def run_until_killed(names: dict[str, int], directory: str, *, keys: int, touched: int) -> None:
    """The process that is killed: jobs with different numbers of batches after them."""
    for name, batches in names.items():
        run = Run(name, keys, checkpoint=f"{directory}/{name}")
        run.feed(keys)
        while run.batches < batches:
            run.feed(touched)
    print(f"ready {_embedded().jvm.pid} {' '.join(str(Gate.opened[name]) for name in names)}", flush=True)
    signal.pause()


def crash(names: dict[str, int], directory: str) -> None:
    """Let another process run the jobs, and kill it with all that it has started."""
    counts = [f"{name}={batches}" for name, batches in names.items()]
    with subprocess.Popen(
        [sys.executable, __file__, "--victim", directory, *counts], stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        line = next((line for line in victim.stdout if line.startswith("ready ")), None)
        if line is None:
            raise RuntimeError("the process that was to be killed has ended by itself")
        _, java, *opened = line.split()
        for pid in {victim.pid, int(java), *processes_of_session(int(java))}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for name, records in zip(names, opened, strict=True):
        Gate.opened[name] = int(records)


def measure_recovery(names: dict[str, int], directory: str, *, keys: int, touched: int, repeat: int) -> dict[str, Cost]:
    """How long each job takes until its first batch after the crash; afterwards it is stopped and comes back again."""
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(repeat):
        for name in names:
            watch = Stopwatch()
            run = Run(name, keys, checkpoint=f"{directory}/{name}")
            run.started()
            costs[name].append(watch.cost())
            run.feed(touched)
            run.client.cancel().result(PATIENCE)
    return {
        name: Cost(median(cost.wall for cost in each), median(cost.cpu for cost in each))
        for name, each in costs.items()
    }


# -- the report -------------------------------------------------------------------------------------------------


def main() -> int:
    """Measure everything and say whether the promises are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs=2, default=[1_000, 1_000_000], help="small and large state")
    parser.add_argument("--batches", type=int, nargs=2, default=[20, 400], help="before the crash")
    parser.add_argument("--measured", type=int, default=40, help="small batches that are measured")
    parser.add_argument("--touched", type=int, default=100, help="keys that a small batch touches")
    parser.add_argument("--only", choices=("state", "collections", "recovery"))
    parser.add_argument("--victim", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.victim:
        directory, *counts = arguments.victim
        names = {name: int(batches) for name, _, batches in (count.partition("=") for count in counts)}
        run_until_killed(names, directory, keys=1_000, touched=arguments.touched)
    adopt_orphans()
    kept = []
    with tempfile.TemporaryDirectory(prefix="penstock-state-") as directory:
        warm_up = Run("warm-up", 10)
        warm_up.feed(100)
        warm_up.client.cancel().result(PATIENCE)
        if arguments.only in (None, "state"):
            kept += report_state(arguments, directory)
        if arguments.only in (None, "collections"):
            kept += report_collections(arguments)
        if arguments.only in (None, "recovery"):
            kept += report_recovery(arguments, directory)
    print("all promises are kept" if all(kept) else "NOT all promises are kept")
    return 0 if all(kept) else 1


def report_state(arguments: argparse.Namespace, directory: str) -> list[bool]:
    """Savepoints and small batches."""
    runs = [filled(keys) for keys in arguments.keys]
    few, many = measure_batches(runs, batches=arguments.measured, touched=arguments.touched)
    costs: list[StateCost] = []
    for keys, run, batch in zip(arguments.keys, runs, (few, many), strict=True):
        cost = measure_savepoint(run, keys, directory, touched=arguments.touched)
        costs.append(cost)
        print(f"{keys:>9,} keys   small batch{batch}")
        print(f"                 savepoint  {cost.savepoint}")
        print(f"                 restore    {cost.restore}")
        used = [part // MEGABYTE for part in (cost.memory.driver, cost.memory.java, cost.memory.heap)]
        print("                 driver: Python at most {} MB, Java at most {} MB, heap after that {} MB".format(*used))
    small, large = costs
    together = large.savepoint.wall + large.restore.wall
    wall, cpu = many.wall / few.wall, many.cpu / few.cpu
    grown = large.memory.driver - small.memory.driver
    heap = large.memory.heap - small.memory.heap
    verdicts = [
        (f"savepoint and restore together {together:.1f} s, limit {LIMIT_SECONDS:.0f}", together < LIMIT_SECONDS),
        (f"driver's Python grew by {grown / MEGABYTE:.0f} MB, its heap by {heap / MEGABYTE:.0f}",
         max(grown, heap) < DRIVER_GROWTH),
        (f"small batch {wall:.2f} times the time, {cpu:.2f} times the CPU, limit {LIMIT_RATIO:.0f}",
         wall <= LIMIT_RATIO and cpu <= LIMIT_RATIO),
    ]  # fmt: skip
    return [_verdict(*verdict) for verdict in verdicts]


def report_collections(arguments: argparse.Namespace) -> list[bool]:
    """Small batches on few and on many elements under one key."""
    kept = []
    for kind in ("list", "map"):
        runs = [filled(count, kind) for count in arguments.keys]
        few, many = measure_batches(runs, batches=arguments.measured, touched=arguments.touched)
        for count, run, batch in zip(arguments.keys, runs, (few, many), strict=True):
            print(f"{count:>9,} in a {kind} small batch{batch}")
            run.client.cancel().result(PATIENCE)
        wall, cpu = many.wall / few.wall, many.cpu / few.cpu
        what = f"small batch on a {kind} {wall:.2f} times the time, {cpu:.2f} times the CPU, limit {LIMIT_RATIO:.0f}"
        kept.append(_verdict(what, wall <= LIMIT_RATIO and cpu <= LIMIT_RATIO))
    return kept


def report_recovery(arguments: argparse.Namespace, directory: str) -> list[bool]:
    """Coming back after a crash."""
    names = {f"after-{batches}-batches": batches for batches in arguments.batches}
    crash(names, directory)
    costs = measure_recovery(names, directory, keys=1_000, touched=arguments.touched, repeat=5)
    for name, cost in costs.items():
        print(f"recovery {name.replace('-', ' '):<19}{cost}")
    few, many = costs.values()
    wall, cpu = many.wall / few.wall, many.cpu / few.cpu
    # The promise is about time. CPU is shown beside it: the changelogs after the last snapshot are some of it.
    what = f"recovery {wall:.2f} times the time (limit {NOISE_RATIO}), {cpu:.2f} times the CPU"
    return [_verdict(what, wall <= NOISE_RATIO)]


def _verdict(what: str, kept: bool) -> bool:
    print(f"  {'kept' if kept else 'NOT KEPT'}: {what}", flush=True)
    return kept


if __name__ == "__main__":
    sys.exit(main())
