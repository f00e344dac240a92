"""How many tasks can one driver lead in the continuous mode? Stub tasks, real driver.

    python benchmarks/scale.py --tasks 2,32,100,320,1000

The driver is the real one: sources are planned, steps and checkpoints are coordinated, reports are decoded, savepoints
get their manifest, over real connections. Its tasks are stubs in a few other processes, which answer at once with the
reports that real tasks of the same job have sent before. So the time of a step is the driver's alone, plus that of
stubs, which share the machine. Prints the driver's CPU for each step, checkpoint and savepoint. A second part measures
what a message from task to task costs, as every step sends one between any two, and a third what checkpoints write.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import itertools

from penstock.common import Types, WatermarkStrategy
from penstock.connectors import DiscardingSink
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.checkpoint.checkpoint_coordinator import Batch
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.exchange.frames import TaskReport, encode_frame
from penstock.runtime.plan.offset import Offset
from penstock.runtime.task.stage import encode_reports
from penstock.spark.continuous.connections import Connection, Splitter
from penstock.spark.continuous.engine import ContinuousEngine
from penstock.spark.continuous.messages import Closed, Data, Done, Step, Stop, Written
from penstock.spark.continuous.slots import slots_needed
from penstock.spark.continuous.sockets import Listener, NetworkSettings, SocketDriverLinks, connect
from penstock.spark.continuous.state_files import StateFile
from penstock.spark.continuous.stepper import Stepper
from penstock.testing import MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster, ContinuousJob

HOST = "127.0.0.1"
RECORDS = 1 << 40
STEPS_PER_CHECKPOINT = 10
FILES = 16  # of a task in a manifest, at most


class Count(KeyedProcessFunction):
    """One number of state for each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        """Count a record."""
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def build(cluster: ContinuousCluster, tasks: int) -> tuple[list[Any], Any]:
    """A job with a source, an exchange and state, in as many tasks."""
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(tasks)
    source = DataGeneratorSource(lambda n: n, RECORDS)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    numbers.key_by(lambda n: n % 1_000).process(Count()).uid("count").sink_to(DiscardingSink()).uid("sink")
    return list(env.sinks), env.job_settings("scale")


# -- stubs ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Templates:
    """What a real task has reported after a step, a checkpoint and a savepoint."""

    step: list[TaskReport]
    checkpoint: list[TaskReport]
    savepoint: list[TaskReport]


class Recording(ContinuousEngine):
    """Keeps the reports of one real task."""

    found: dict[str, list[TaskReport]]

    def run(self, batch: Batch) -> list[TaskReport]:
        """Take a step, and look at what comes back."""
        reports = super().run(batch)
        kind = "savepoint" if batch.header.savepoint else "checkpoint" if batch.header.checkpoint else "step"
        self.found[kind] = [report for report in reports if report.subtask == 1]
        return reports


def record_templates(directory: Path) -> Templates:
    """Run the job for some steps with two real tasks."""
    found: dict[str, list[TaskReport]] = {}

    class Job(ContinuousJob):
        steps_per_checkpoint = 3

        def _start_tasks(self, job: bytes, offset: Offset, storage: MemoryCheckpointStorage) -> None:
            super()._start_tasks(job, offset, storage)
            engine: Any = self._engine
            engine.__class__ = type("RecordingEngine", (Recording, type(engine)), {})
            engine.found = found

    cluster = ContinuousCluster(max_records=100)
    cluster._job_class = lambda graph: Job  # type: ignore[method-assign]
    job = cluster.start(*build(cluster, 2))
    for _ in range(12):
        job.run_batch()
    job.savepoint(str(directory / "template"))
    job.close()
    return Templates(found["step"], found["checkpoint"], found["savepoint"])


def run_stubs(address: str, secret: str, first: int, last: int, templates: Path) -> None:
    """The tasks from `first` to before `last`, in this process."""
    network = NetworkSettings(bytes.fromhex(secret))
    known: Templates = pickle.loads(templates.read_bytes())
    selector = selectors.DefaultSelector()
    for task in range(first, last):
        connection = connect(address, network, task, 1)
        selector.register(connection, selectors.EVENT_READ, (task, connection, Splitter()))
    open_tasks = last - first
    while open_tasks:
        for key, _ in selector.select():
            task, connection, splitter = key.data
            piece = connection.receive()
            if piece is None:
                return
            for data in splitter.feed(piece):
                message = pickle.loads(data)
                if isinstance(message, Stop):
                    connection.send_message(pickle.dumps(Closed(task)))
                    selector.unregister(connection)
                    open_tasks -= 1
                elif isinstance(message, Step):
                    answer(connection, task, message, known)


def answer(connection: Connection, task: int, step: Step, known: Templates) -> None:
    """As a real task that has taken a step."""
    header = pickle.loads(step.header)
    reports = known.savepoint if header.savepoint else known.checkpoint if header.checkpoint else known.step
    own = [replace(report, subtask=task) for report in reports]
    if header.savepoint is not None:
        for report in (each for each in own if each.savepoint is not None):
            report.savepoint = replace(report.savepoint, request_id=header.savepoint.request_id, subtask=task)
    if header.checkpoint:
        first = header.checkpoint_id - header.checkpoint_id % FILES
        files = [StateFile(f"{n}-1-0-{task}.state", 1 << 20, 1) for n in range(first, header.checkpoint_id + 1)]
        connection.send_message(pickle.dumps(Written(task, header.checkpoint_id, files)))
    connection.send_message(pickle.dumps(Done(task, header.step, [encode_reports(own, str(task))])))


# -- the driver -------------------------------------------------------------------------------------------------------


class Engine(ContinuousEngine):
    """Notes complete checkpoints where the coordinator of this process looks for them."""

    storage: MemoryCheckpointStorage

    def make_durable(self, batch: Batch) -> None:
        """Wait for the manifest."""
        super().make_durable(batch)
        self.storage.complete(batch.end.checkpoint_id)


class StubJob(ContinuousJob):
    """A job whose tasks are stubs in other processes."""

    templates: Path
    processes: int

    def _start_tasks(self, job: bytes, offset: Offset, storage: MemoryCheckpointStorage) -> None:
        count = slots_needed(self.graph)
        network = NetworkSettings(os.urandom(32))
        listener = Listener(HOST, network)
        bounds = [count * part // self.processes for part in range(self.processes + 1)]
        self.stubs = [
            subprocess.Popen(
                [sys.executable, __file__, "--stubs", listener.address, network.secret.hex(), str(low), str(high),
                 str(self.templates)]
            )
            for low, high in itertools.pairwise(bounds)
        ]  # fmt: skip
        connections = {}
        while len(connections) < count:
            accepted = listener.accept(60)
            if accepted is not None:
                connections[accepted.task] = accepted.connection
        listener.close()
        self.links = SocketDriverLinks(connections)
        self._engine = engine = Engine(self.links, self.files)  # type: ignore[assignment]
        engine.storage = storage
        self.job_bytes = len(job)
        started = time.process_time()
        engine.start(job, "1-0", None)
        self.start_cpu = time.process_time() - started
        self._stepper = Stepper(
            self.checkpoints, engine, offset, interval_ms=STEPS_PER_CHECKPOINT * 1000, clock=lambda: float(self.steps)
        )

    steps = 0

    def run_batch(self) -> bool:
        """One step."""
        self.steps += 1
        return super().run_batch()


def measure(tasks: int, steps: int, templates: Path, processes: int, directory: Path) -> dict[str, float]:
    """CPU of the driver, in milliseconds."""
    cluster = ContinuousCluster(max_records=1_000 * tasks)

    class Job(StubJob):
        pass

    Job.templates, Job.processes = templates, processes
    cluster._job_class = lambda graph: Job  # type: ignore[method-assign]
    sinks, settings = build(cluster, tasks)
    begin = time.process_time()
    job: Any = cluster.start(sinks, settings, directory=str(directory / f"job-{tasks}"))
    planning = time.process_time() - begin - job.start_cpu
    plain: list[tuple[float, float]] = []
    checkpoints: list[tuple[float, float]] = []
    try:
        for _ in range(steps):
            before, cpu, wall = job.checkpoints.batch, time.process_time(), time.perf_counter()
            job.run_batch()
            spent = time.process_time() - cpu, time.perf_counter() - wall
            (plain if job.checkpoints.batch is before else checkpoints).append(spent)
        savepoints = []
        for _ in range(2):
            cpu, wall = time.process_time(), time.perf_counter()
            job.savepoint(str(directory / f"savepoints-{tasks}"))
            savepoints.append((time.process_time() - cpu, time.perf_counter() - wall))
        manifest = max((path.stat().st_size for path in (directory / f"job-{tasks}").rglob("manifest-*")), default=0)
        result = {
            "tasks": tasks,
            "start": (planning + job.start_cpu) * 1e3,
            "job bytes": job.job_bytes,
            "step": middle(plain[3:], 0),
            "step wall": middle(plain[3:], 1),
            "checkpoint": middle(checkpoints[1:], 0) - middle(plain[3:], 0),
            "savepoint": middle(savepoints, 0),
            "manifest bytes": manifest,
        }
    finally:
        job.close()
        for stub in job.stubs:
            stub.wait(30)
    return result


def middle(values: list[tuple[float, float]], which: int) -> float:
    """The median, in milliseconds."""
    ordered = sorted(value[which] for value in values)
    return ordered[len(ordered) // 2] * 1e3


# -- messages between tasks -------------------------------------------------------------------------------------------


def measure_messages(count: int, size: int) -> dict[str, float]:
    """CPU of both ends for a message from one task to another, in microseconds."""
    network = NetworkSettings(os.urandom(32))
    listener = Listener(HOST, network)
    accepted: list[Any] = []
    thread = threading.Thread(target=lambda: accepted.append(listener.accept(20)))
    thread.start()
    connection = connect(listener.address, network, 0, 1)
    thread.join()
    ends = []

    def receive() -> None:
        splitter, seen = Splitter(), 0
        while seen < count:
            for data in splitter.feed(accepted[0].connection.receive()):
                pickle.loads(data)
                seen += 1
        ends.append(time.thread_time())

    receiver = threading.Thread(target=receive)
    receiver.start()
    begin = time.thread_time()
    for step in range(count):
        connection.send_message(pickle.dumps(Data(step, 1, [bytes(size)] if size else []), 5))
    sent = time.thread_time() - begin
    receiver.join()
    connection.close()
    accepted[0].connection.close()
    listener.close()
    return {"bytes": size, "send us": sent / count * 1e6, "receive us": ends[0] / count * 1e6}


# -- what a checkpoint writes ------------------------------------------------------------------------------------------

KEYS = 100_000
MODES = ("micro-batch", "continuous")


class Replace(KeyedProcessFunction):
    """A hundred bytes of state for each key, all of which change with every record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Any:
        """Replace it."""
        self.text.update(f"{value[1]:0100d}")
        yield value


class CheckpointEachStep(ContinuousJob):
    """So that what a checkpoint writes belongs to a known number of records."""

    steps_per_checkpoint = 0


def measure_state(mode: str, changed: int, directory: Path) -> dict[str, Any]:
    """Bytes that one task writes at a checkpoint after so many of its keys have changed, chosen at random."""
    numbers = random.Random(changed)
    records = [(key, 0) for key in range(KEYS)] + [(numbers.randrange(KEYS), n) for n in range(5 * changed)]
    cluster = (ContinuousCluster if mode == "continuous" else MiniCluster)(max_records=KEYS)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    stream = env.from_collection(records).key_by(lambda record: record[0]).process(Replace())
    stream.sink_to(DiscardingSink())
    place = directory / f"{mode}-{changed}"
    if mode == "continuous":
        cluster._job_class = lambda graph: CheckpointEachStep  # type: ignore[method-assign]
    job: Any = cluster.start(list(env.sinks), env.job_settings("state"), directory=str(place))
    job.run_batch()
    written, known = [], files_of(place)
    job.coordinator.sizer.limit = changed
    while not job.over and job.run_batch():
        if mode == "continuous":
            now = files_of(place)
            written.append(sum(size for name, size in now.items() if name not in known))
            known = now
        else:
            written.append(job.progress.checkpoints.latest_completed.written_size)
    job.close()
    state = job.progress.checkpoints.latest_completed.state_size
    middle_one = sorted(written[:4])[1]
    figures = {"state": state, "changed keys": changed, "written": middle_one, "per key": middle_one / changed}
    return {"mode": mode, **figures}


def files_of(directory: Path) -> dict[str, int]:
    """State files, and how large they are."""
    return {path.name: path.stat().st_size for path in directory.rglob("continuous/*") if "manifest" not in path.name}


def bytes_per_record() -> float:
    """Of a small tuple in a frame of a thousand."""
    records = [(n % 1000, 1_700_000_000_000 + n, 20.5) for n in range(1_000)]
    return len(encode_frame(1, 1, "0", 0, [(records, None)], "records")) / len(records)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="2,32,100,320,1000", help="how many stub tasks, one run for each number")
    parser.add_argument("--steps", type=int, default=60, help=f"steps; every {STEPS_PER_CHECKPOINT}th is a checkpoint")
    parser.add_argument("--processes", type=int, default=2, help="processes for the stubs")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--stubs", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stubs is not None:
        address, secret, first, last, templates = options.stubs
        run_stubs(address, secret, int(first), int(last), Path(templates))
        return 0
    figures: dict[str, Any] = {"driver": [], "messages": []}
    with tempfile.TemporaryDirectory(prefix="penstock-scale-") as name:
        directory = Path(name)
        templates = directory / "templates"
        templates.write_bytes(pickle.dumps(record_templates(directory)))
        for tasks in map(int, options.tasks.split(",")):
            found = measure(tasks, options.steps, templates, min(options.processes, tasks), directory)
            figures["driver"].append(found)
            print("  ".join(f"{key}: {value:,.1f}" for key, value in found.items()), flush=True)
    for size in (0, 1_000, 100_000):
        found = measure_messages(20_000 if size < 10_000 else 2_000, size)
        figures["messages"].append(found)
        print("  ".join(f"{key}: {value:,.1f}" for key, value in found.items()), flush=True)
    figures["bytes per record"] = bytes_per_record()
    print(f"bytes per record: {figures['bytes per record']:.1f}")
    with tempfile.TemporaryDirectory(prefix="penstock-scale-") as name:
        figures["state"] = [
            measure_state(mode, changed, Path(name)) for mode in MODES for changed in (100, 1_000, 10_000)
        ]
    for found in figures["state"]:
        print("  ".join(f"{key}: {value}" for key, value in found.items()), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
