"""What do thousands of small batches leave behind? Counts the files of a checkpoint, and looks at memory.

    python benchmarks/small_batches.py --batches 3000

A few records a batch, on embedded Spark with a checkpoint directory: keys come and go, their state is cleared by timers
or expires, and the sink commits after the checkpoint, from its log. Every hundred batches the files and bytes below the
checkpoint directory are counted, by the directory they are in, and the resident memory of the driver, of Java and of
all Python workers is read, and what is left in Java's heap after a collection. Exits with 1 if the highest numbers of
the last third of the run are more than half above those of the middle one; of files, for the same number of batches a
second.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness.cpu import processes_of_session
from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource
from penstock.datastream.state import StateTtlConfig, ValueStateDescriptor
from penstock.spark import session

PARALLELISM = 2
PAGE = os.sysconf("SC_PAGE_SIZE")
MEGABYTE = 1 << 20
ALLOWED_GROWTH = 1.5
RECORDS_OF_A_KEY = 10
LIFETIME_MS = 5_000
PLACES = ("offsets", "commits", "state", "committables")


class Visit(KeyedProcessFunction):
    """State of keys that are seen for a while and never again: half of it is cleared by a timer, half expires."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the states."""
        self.cleared = runtime_context.get_state(ValueStateDescriptor("cleared", Types.STRING()))
        expiring = ValueStateDescriptor("expiring", Types.STRING())
        expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(LIFETIME_MS)).build())
        self.expiring = runtime_context.get_state(expiring)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        """Fill them."""
        self.cleared.update(f"{value:0100d}")
        self.expiring.update(f"{value:0100d}")
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + LIFETIME_MS)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        """The key is gone."""
        self.cleared.clear()


class LoggedSink(Sink):
    """Commits after the checkpoint, so that what it commits goes through the commit log; to nowhere."""

    def create_writer(self, context: Any) -> HandOverWriter:
        """Hands the records over."""
        return HandOverWriter()

    def create_committer(self) -> Committer:
        """Throws them away."""
        return _Nowhere()


class _Nowhere(Committer):
    after_checkpoint = True

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        pass

    def recommit(self, committables: list[Any], checkpoint_id: int) -> None:
        pass


@dataclass(slots=True)
class Sample:
    """What there was after a batch."""

    batch: int
    seconds: float
    rate: float
    """Batches a second since the last look: files stay for a time, not for a number of batches."""
    files: Counter[str] = field(default_factory=Counter)
    size: int = 0
    driver: int = 0
    java: int = 0
    heap: int = 0
    workers: int = 0

    def of(self, what: str) -> float:
        """One of the numbers that must not grow."""
        if what in ("files", "size"):
            return (sum(self.files.values()) if what == "files" else self.size) / self.rate
        return float(getattr(self, what))

    def __str__(self) -> str:
        places = "".join(f"{self.files[place]:>13}" for place in (*PLACES, "other"))
        sizes = "".join(
            f"{size / MEGABYTE:>9.1f}" for size in (self.size, self.driver, self.java, self.heap, self.workers)
        )
        return f"{self.batch:>6}{self.seconds:>9.1f}{places}{sizes}"


HEADER = (
    f"{'batch':>6}{'seconds':>9}{''.join(f'{place:>13}' for place in (*PLACES, 'other'))}"
    f"{'on disk':>9}{'driver':>9}{'Java':>9}{'heap':>9}{'workers':>9}   files, MB"
)


def main() -> int:
    """Run and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=3_000)
    parser.add_argument("--records", type=int, default=20, help="per batch")
    parser.add_argument("--every", type=int, default=100, help="batches between two looks")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="small-batches-", ignore_cleanup_errors=True) as directory:
        samples = _run(Path(directory), arguments)
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    grown = [
        what
        for what in ("files", "size", "driver", "heap", "workers")
        if max(sample.of(what) for sample in last) > ALLOWED_GROWTH * max(sample.of(what) for sample in middle)
    ]
    print("bounded" if not grown else f"grew by more than half in the last third: {', '.join(grown)}")
    return 1 if grown else 0


def _run(directory: Path, arguments: argparse.Namespace) -> list[Sample]:
    settings = Configuration()
    settings.set_string("penstock.batch.max-records", str(arguments.records))
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(PARALLELISM)
    env.get_checkpoint_config().set_checkpoint_storage(directory.as_uri())
    numbers = env.from_source(
        DataGeneratorSource(lambda n: n, arguments.batches * arguments.records),
        WatermarkStrategy.no_watermarks(),
        "numbers",
        Types.LONG(),
    )
    visits = numbers.key_by(lambda n: n // RECORDS_OF_A_KEY, key_type=Types.LONG()).process(Visit(), Types.LONG())
    visits.sink_to(LoggedSink())
    client: Any = env.execute_async("small batches")
    done, started = client.get_job_execution_result(), time.monotonic()
    samples: list[Sample] = []
    print(HEADER, flush=True)
    while not done.done():
        batch = client.progress.checkpoint_id or 0
        if batch >= (len(samples) + 1) * arguments.every:
            seconds = time.monotonic() - started
            before = samples[-1] if samples else Sample(0, 0.0, 0.0)
            rate = (batch - before.batch) / (seconds - before.seconds)
            samples.append(_look(directory, Sample(batch, seconds, rate)))
            print(samples[-1], flush=True)
        time.sleep(0.02)
    done.result()
    return samples


def _look(directory: Path, sample: Sample) -> Sample:
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):  # removed meanwhile
            if path.is_file():
                place = path.relative_to(directory).parts[0]
                sample.files[place if place in PLACES else "other"] += 1
                sample.size += path.stat().st_size
    embedded = session._embedded
    assert embedded is not None
    java = embedded.jvm.pid
    runtime = java_runtime(embedded.session)
    runtime.gc()
    sample.heap = int(runtime.totalMemory()) - int(runtime.freeMemory())
    sample.driver, sample.java = _resident(os.getpid()), _resident(java)
    sample.workers = sum(_resident(pid) for pid in processes_of_session(java) if pid != java)
    return sample


def java_runtime(spark: Any) -> Any:
    """Which knows how large the heap is."""
    return spark.sparkContext._jvm.java.lang.Runtime.getRuntime()


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
