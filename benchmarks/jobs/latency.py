"""(l) Latency: a live socket at 1,000 records/s -> key_by -> process with state -> sink.

Each line carries the moment it was sent; the last operator before the sink writes down how long it took.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import TextIOWrapper

    from penstock.datastream import DataStream

EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])


class RunningAverage(KeyedProcessFunction):
    """Emits (key, moment sent, average so far) for every reading."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: (count, sum)."""
        self.state = runtime_context.get_state(
            ValueStateDescriptor("count_and_sum", Types.TUPLE([Types.LONG(), Types.DOUBLE()]))
        )

    def process_element(
        self, value: tuple[int, int, float], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, int, float]]:
        """Add one reading."""
        count, total = self.state.value() or (0, 0.0)
        count, total = count + 1, total + value[2]
        self.state.update((count, total))
        yield value[0], value[1], total / count


class Stopwatch(MapFunction):
    """Writes one line `sent_ns arrived_ns` per record, flushed once a second so that writing costs no latency."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        """One file per instance; the subtask's index would do, but asking for it fails in PyFlink's thread mode."""
        path = Path(self.directory) / f"samples-{uuid.uuid4().hex}.txt"
        self.file: TextIOWrapper = path.open("w", buffering=1 << 20)
        self.flushed = time.time_ns()

    def map(self, value: tuple[int, int, float]) -> tuple[int, int, float]:
        """Note the arrival and pass the record on."""
        now = time.time_ns()
        self.file.write(f"{value[1]} {now}\n")
        if now - self.flushed > 1_000_000_000:
            self.file.flush()
            self.flushed = now
        return value

    def close(self) -> None:
        """Write what is left."""
        self.file.close()


def parse(line: str) -> tuple[int, int, float]:
    """`key,sent_ns,value`."""
    key, sent, value = line.split(",")
    return int(key), int(sent), float(value)


def build(lines: DataStream, directory: str) -> DataStream:
    """The stream whose records are discarded."""
    return (
        lines.map(parse, output_type=EVENT)
        .key_by(lambda event: event[0], key_type=Types.LONG())
        .process(RunningAverage(), output_type=EVENT)
        .map(Stopwatch(directory), output_type=EVENT)
    )
