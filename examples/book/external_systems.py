"""The outside world: custom sources and sinks, and requests for every record (ch. 8)."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sensors import SensorReading
from showcase import Showcase

from penstock.common import Configuration, RestartStrategies, Time, WatermarkStrategy
from penstock.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.base import (
    Committer,
    Sink,
    SinkWriter,
    SinkWriterContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    WriterInitContext,
)
from penstock.datastream.functions import (
    AsyncFunction,
    FileCheckpointCommitter,
    GenericWriteAheadSink,
    MapFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)

book = Showcase(__doc__)


class CountSource(SourceFunction):
    """Counts, until it is told to stop or has reached the end."""

    def __init__(self, until: int) -> None:
        self.until = until
        self.running = True

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        for number in range(self.until):
            if not self.running:
                break
            ctx.collect(number)

    def cancel(self) -> None:
        self.running = False


@book.example("8-10", "A source function")
def count_source(env: StreamExecutionEnvironment) -> DataStream:
    """The simplest source: a loop. It cannot go back, so what it gave is kept in a log beside the checkpoint."""
    return env.add_source(CountSource(5)).map(lambda number: (number, number**2)).set_parallelism(1)


class ResettableCount(Source):
    """Counts from 0: one split, whose offset is the next number."""

    def __init__(self, until: int) -> None:
        self.until = until

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return HowFar(self.until)

    def create_reader(self) -> SourceReader:
        return ReadNumbers()

    def initial_offset(self, split: SourceSplit) -> int:
        return 0


class HowFar(SplitEnumerator):
    """Runs in the driver: says how far a batch reads. Its answers are part of the checkpoint."""

    def __init__(self, until: int) -> None:
        self.until = until

    def discover_splits(self) -> list[SourceSplit]:
        return [SourceSplit("numbers")]

    def latest_offset(self, split: SourceSplit, start_offset: int, max_records: int) -> int:
        return min(start_offset + max_records, self.until)

    def is_finished(self, split: SourceSplit, offset: int) -> bool:
        return offset >= self.until


class ReadNumbers(SourceReader):
    """Runs in the tasks: reads what it is told to."""

    def read(self, split: SourceSplit, start_offset: int, end_offset: int) -> Iterator[tuple[list[int], None]]:
        yield list(range(start_offset, end_offset)), None


class CrashOnce(MapFunction):
    """Fails at one number, but only in the first attempt to run the job."""

    def __init__(self, number: int) -> None:
        self.number = number

    def open(self, runtime_context: RuntimeContext) -> None:
        self.first_attempt = runtime_context.get_attempt_number() == 0

    def map(self, value: int) -> int:
        if value == self.number and self.first_attempt:
            raise RuntimeError(f"crash at {value}, as planned")
        return value


def numbers_in_threes(env: StreamExecutionEnvironment) -> DataStream:
    """Ten numbers, three a batch, in a job that is restarted after a failure."""
    settings = Configuration()
    settings.set_string("penstock.batch.max-records", "3")
    env.configure(settings)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restart_attempts=1, delay_between_attempts=100))
    return env.from_source(ResettableCount(10), WatermarkStrategy.no_watermarks(), "count").set_parallelism(1)


@book.example("8-11", "A source that can go back", own_job=True)
def resettable_count(env: StreamExecutionEnvironment) -> DataStream:
    """Three numbers a batch, and a crash at 7: the job goes on behind the last checkpoint, and no number is missing."""
    return numbers_in_threes(env).map(CrashOnce(7)).set_parallelism(1)


READINGS = [
    SensorReading("sensor_1", 0, 68.0),
    SensorReading("sensor_2", 0, 71.0),
    SensorReading("sensor_1", 1_000, 69.0),
    SensorReading("sensor_2", 1_000, 74.0),
    SensorReading("sensor_1", 2_000, 70.5),
]


class SocketSink(SinkFunction):
    """Writes lines to a socket; there is one connection, so it runs as one task."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.connection = socket.create_connection(self.address)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.connection.sendall(f"{value}\n".encode())

    def close(self) -> None:
        self.connection.close()


@book.example("8-12", "A sink function")
def socket_sink(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """The simplest sink. After a failure lines can come again. What a listener in the driver program has received."""
    listener = socket.create_server(("127.0.0.1", 0))
    received: list[str] = []

    def listen() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile(encoding="utf-8") as lines:
            received.extend(line.rstrip("\n") for line in lines)
        listener.close()

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    lines = env.from_collection(READINGS).map(lambda reading: f"{reading.id} {reading.temperature}").set_parallelism(1)
    lines.add_sink(SocketSink(*listener.getsockname())).set_parallelism(1)

    def lines_received() -> list[Any]:
        listening.join()
        return received

    return {"received": lines_received}


class UpsertSink(SinkFunction):
    """The last temperature of each sensor in a table. Written twice is written once: that makes it idempotent."""

    def __init__(self, database: str) -> None:
        self.database = database

    def open(self, runtime_context: RuntimeContext) -> None:
        self.connection = sqlite3.connect(self.database, timeout=60, isolation_level=None)

    def invoke(self, value: SensorReading, context: SinkFunction.Context) -> None:
        row = (value.temperature, value.id)
        if self.connection.execute("UPDATE temperatures SET temp = ? WHERE sensor = ?", row).rowcount == 0:
            self.connection.execute("INSERT INTO temperatures (temp, sensor) VALUES (?, ?)", row)

    def close(self) -> None:
        self.connection.close()


@book.example("8-13", "An idempotent sink")
def upsert_sink(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """Update, and insert if there was nothing to update; the database is SQLite. What is in the table at the end."""
    directory = tempfile.mkdtemp(prefix="penstock-example-")
    database = str(Path(directory) / "readings.sqlite")
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE temperatures (sensor TEXT PRIMARY KEY, temp REAL)")
    connection.close()
    env.from_collection(READINGS).key_by("id").map(lambda reading: reading).add_sink(UpsertSink(database))

    def rows() -> list[Any]:
        reader = sqlite3.connect(database)
        found = reader.execute("SELECT sensor, temp FROM temperatures ORDER BY sensor").fetchall()
        reader.close()
        shutil.rmtree(directory)
        return found

    return {"table": rows}


class PlainFileSink(SinkFunction):
    """Writes lines at once: a batch that is repeated writes them again."""

    def __init__(self, file: str) -> None:
        self.file = file

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        with Path(self.file).open("a", encoding="utf-8") as lines:
            lines.write(f"{value}\n")


class WriteAheadFileSink(GenericWriteAheadSink):
    """Writes lines when their checkpoint is complete; the committer remembers which were written."""

    def __init__(self, file: str, committer: FileCheckpointCommitter) -> None:
        super().__init__(committer, "write-ahead example")
        self.file = file

    def send_values(self, values: Sequence[Any], checkpoint_id: int, timestamp: int) -> bool:
        with Path(self.file).open("a", encoding="utf-8") as lines:
            lines.writelines(f"{value}\n" for value in values)
        return True


def write_both_ways(numbers: DataStream, crash_at: int) -> dict[str, Callable[[], list[Any]]]:
    """The same numbers through both sinks, with a crash between them; what is in the files at the end."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-example-"))
    plain, logged, committed = (str(directory / name) for name in ("plain", "logged", "committed"))
    numbers.add_sink(PlainFileSink(plain)).set_parallelism(1)
    behind = numbers.map(CrashOnce(crash_at)).set_parallelism(1)
    behind.add_sink(WriteAheadFileSink(logged, FileCheckpointCommitter(committed))).set_parallelism(1)

    def lines_of(file: str) -> list[Any]:
        return [" ".join(Path(file).read_text(encoding="utf-8").split())]

    return {"written at once": lambda: lines_of(plain), "written behind checkpoints": lambda: lines_of(logged)}


@book.example("8-14", "A write-ahead sink", own_job=True)
def write_ahead_sink(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """Three numbers a batch again, and a crash at 7: the batch with 6, 7 and 8 runs twice.

    A plain sink writes them twice. The other one keeps a log of what is to be written and of what was: none is twice.
    """
    return write_both_ways(numbers_in_threes(env), crash_at=7)


class TransactionalFileSink(Sink):
    """Lines in files that appear when their checkpoint is complete, and not before."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return PartWriter(self.target, context)

    def create_committer(self) -> Committer:
        return MoveFiles()


class PartWriter(SinkWriter):
    """Writes one hidden file a batch. A batch that is repeated writes the same file again."""

    def __init__(self, target: str, context: WriterInitContext) -> None:
        self.target, self.subtask = Path(target), context.subtask_id
        self.begin(context.checkpoint_id)

    def begin(self, checkpoint_id: int) -> None:
        self.name = f"part-{checkpoint_id}-{self.subtask}"
        self.lines: list[str] = []

    def write(self, value: Any, context: SinkWriterContext) -> None:
        self.lines.append(f"{value}\n")

    def prepare_commit(self) -> list[tuple[str, str]]:
        if not self.lines:
            return []
        hidden = self.target / f".{self.name}"
        hidden.write_text("".join(self.lines), encoding="utf-8")
        return [(str(hidden), str(self.target / self.name))]


class MoveFiles(Committer):
    """Runs in the driver, once the batch is durable. Can be called again for the same files."""

    def commit(self, committables: list[tuple[str, str]], checkpoint_id: int) -> None:
        for hidden, visible in committables:
            if Path(hidden).exists():
                Path(hidden).rename(visible)


@book.example("8-15", "A transactional sink")
def transactional_file_sink(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """Two-phase commit with files: tasks write hidden ones, the driver makes them visible. All lines, sorted."""
    target = tempfile.mkdtemp(prefix="penstock-example-")
    lines = env.from_collection(READINGS).map(lambda reading: f"{reading.id} {reading.temperature}")
    lines.sink_to(TransactionalFileSink(target))

    def committed() -> list[Any]:
        text = "".join(part.read_text(encoding="utf-8") for part in Path(target).glob("part-*"))
        shutil.rmtree(target)
        return sorted(text.splitlines())

    return {"lines": committed}


class LocationOf(AsyncFunction):
    """Asks a slow service where a sensor is; here a table, and a short wait."""

    LOCATIONS = ("hall", "kitchen", "cellar", "attic")

    async def async_invoke(self, value: SensorReading) -> list[tuple[str, str, float]]:
        await asyncio.sleep(0.01)
        number = int(value.id.removeprefix("sensor_"))
        return [(value.id, self.LOCATIONS[number % len(self.LOCATIONS)], value.temperature)]


@book.example("8-16", "Asynchronous requests")
def sensor_locations(env: StreamExecutionEnvironment) -> DataStream:
    """Up to 100 requests are under way at once; the results keep the order of their readings."""
    readings = env.from_collection(READINGS)
    return AsyncDataStream.ordered_wait(readings, LocationOf(), Time.seconds(5), capacity=100).set_parallelism(1)


if __name__ == "__main__":
    raise SystemExit(book.main())
