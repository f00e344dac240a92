"""(l) Latency: a live socket at 1,000 records/s -> key_by -> process with state -> sink.

(l2) is the same with a second exchange, (lm) with a million keys in state, and (lw) with a tumbling window instead.

Each line carries the moment it was sent; the last operator before the sink writes down how long it took.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import KeyedProcessFunction, MapFunction, ProcessWindowFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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


def build_two(lines: DataStream, directory: str) -> DataStream:
    """Two exchanges in a row."""
    averages = (
        lines.map(parse, output_type=EVENT)
        .key_by(lambda event: event[0], key_type=Types.LONG())
        .process(RunningAverage(), output_type=EVENT)
    )
    again = averages.key_by(lambda event: event[0] % 10, key_type=Types.LONG())
    return again.process(RunningAverage(), output_type=EVENT).map(Stopwatch(directory), output_type=EVENT)


MANY_KEYS = 1_000_000


def build_million(lines: DataStream, directory: str) -> DataStream:
    """Every key has state before it is met: it comes from a sequence, whose records are not measured."""
    fill = lines.get_execution_environment().from_sequence(0, MANY_KEYS - 1)
    return (
        lines.map(parse, output_type=EVENT)
        .union(fill.map(lambda key: (key, 0, 0.5), output_type=EVENT))
        .key_by(lambda event: event[0], key_type=Types.LONG())
        .process(RunningAverage(), output_type=EVENT)
        .filter(lambda event: event[1] > 0)
        .map(Stopwatch(directory), output_type=EVENT)
    )


WINDOW_MS = 100
END_OF_TIME = 1 << 62


class SentAt(TimestampAssigner):
    """Event time is the moment of sending, in milliseconds."""

    def extract_timestamp(self, value: tuple[int, int, float], record_timestamp: int) -> int:
        """From the record."""
        return value[1] // 1_000_000


class Counted(ProcessWindowFunction):
    """Emits (key, moment at which the record that closed the window was sent, count).

    The watermark says which record that was, to the millisecond.
    """

    def process(
        self, key: int, context: ProcessWindowFunction.Context, elements: Iterable[tuple[int, int, float]]
    ) -> Iterator[tuple[int, int, float]]:
        """Count a window."""
        closed_at = context.current_watermark() + 1
        if closed_at < END_OF_TIME:  # else the input has ended
            yield key, closed_at * 1_000_000, float(len(list(elements)))


def build_window(lines: DataStream, directory: str) -> DataStream:
    """The time from the record that closes a window to the window's result."""
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SentAt())
    return (
        lines.map(parse, output_type=EVENT)
        .assign_timestamps_and_watermarks(in_order)
        .key_by(lambda event: event[0], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .process(Counted(), EVENT)
        .map(Stopwatch(directory), output_type=EVENT)
    )
