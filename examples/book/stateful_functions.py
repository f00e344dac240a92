"""Functions with state: per key, per task, broadcast; state that cleans up after itself (ch. 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sensors import HOUR, Mark, SensorReading, at, clock, scripted, stamped
from showcase import Showcase

from penstock.common import Types
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import (
    CheckpointedFunction,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

book = Showcase(__doc__)

READINGS = [
    SensorReading("sensor_1", at(8, 0), 68.0),
    SensorReading("sensor_2", at(8, 0), 71.0),
    SensorReading("sensor_1", at(8, 1), 68.5),
    SensorReading("sensor_2", at(8, 2), 74.0),
    SensorReading("sensor_1", at(8, 3), 71.0),
    SensorReading("sensor_2", at(8, 4), 73.0),
    SensorReading("sensor_1", at(10, 0), 90.0),
    SensorReading("sensor_2", at(10, 0), 70.0),
]


class TemperatureAlert(FlatMapFunction):
    """Tells when a temperature differs from the one before by more than a threshold.

    A state that was never written is None. So the first reading of a sensor never alerts; in the book's Scala it is
    compared with 0.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def flat_map(self, value: SensorReading) -> Iterator[tuple[str, float, float]]:
        last = self.last.value()
        self.last.update(value.temperature)
        if last is not None and abs(value.temperature - last) > self.threshold:
            yield value.id, value.temperature, abs(value.temperature - last)


@book.example("7-2", "Temperature alert")
def temperature_alert(env: StreamExecutionEnvironment) -> DataStream:
    """Keyed state: every sensor has a last temperature of its own. Sensor, temperature, difference if above 1.7."""
    return stamped(env, READINGS).key_by("id").flat_map(TemperatureAlert(1.7))


class HighTempCounter(FlatMapFunction, CheckpointedFunction):
    """Counts hot readings in a plain field of the task, and writes it to operator state when a checkpoint is taken.

    State of a task is a list, whose entries are dealt out anew when the number of tasks changes: hence ten parts.
    """

    PARTS = 10

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.parts = context.get_operator_state_store().get_list_state(ListStateDescriptor("hot", Types.LONG()))
        self.count = sum(self.parts.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.parts.update(split(self.count, self.PARTS))

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def flat_map(self, value: SensorReading) -> Iterator[tuple[int, int]]:
        if value.temperature > self.threshold:
            self.count += 1
            yield self.subtask, self.count


def split(count: int, parts: int) -> list[int]:
    """A number as a sum of nearly equal ones: 23 in ten parts is three times 3 and seven times 2."""
    small, larger = divmod(count, parts)
    return [small + 1] * larger + [small] * (parts - larger)


@book.example("7-4", "Hot readings per task")
def high_temp_counter(env: StreamExecutionEnvironment) -> DataStream:
    """Operator state: each of two tasks counts the readings above 70 °F that it has seen. Task, count."""
    by_number = stamped(env, READINGS).partition_custom(lambda key, tasks: int(key[-1]) % tasks, lambda value: value.id)
    return by_number.flat_map(HighTempCounter(70.0)).set_parallelism(2)


class ThresholdUpdate(NamedTuple):
    """From now on a sensor alerts above this difference; 0: not any more."""

    id: str
    timestamp: int
    threshold: float


THRESHOLDS = MapStateDescriptor("thresholds", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


class UpdatableTemperatureAlert(KeyedBroadcastProcessFunction):
    """As 7-2, with a threshold for each sensor that can be changed while the job runs.

    Readings wait for the watermark, which covers both inputs: so the result does not depend on who was faster.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting", Types.LONG(), Types.DOUBLE()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_broadcast_element(self, value: ThresholdUpdate, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        state = ctx.get_broadcast_state(THRESHOLDS)
        state.put(value.id, [*(state.get(value.id) or []), (value.timestamp, value.threshold)])

    def process_element(self, value: SensorReading, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        self.waiting.put(value.timestamp, value.temperature)
        ctx.timer_service().register_event_time_timer(value.timestamp)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[Any]:
        temperature, last = self.waiting.get(timestamp), self.last.value()
        self.waiting.remove(timestamp)
        self.last.update(temperature)  # also without a threshold: one may come later
        changes = ctx.get_broadcast_state(THRESHOLDS).get(ctx.get_current_key()) or []
        _, threshold = max((change for change in changes if change[0] <= timestamp), default=(0, 0.0))
        if threshold and last is not None and abs(temperature - last) > threshold:
            yield ctx.get_current_key(), clock(timestamp), temperature, abs(temperature - last)


@book.example("7-7", "Thresholds from another stream")
def updatable_alert(env: StreamExecutionEnvironment) -> DataStream:
    """Broadcast state: all tasks know all thresholds. Sensor 2 gets one at 8:03, sensor 1 loses its own at 9:00."""
    updates = [
        ThresholdUpdate("sensor_1", at(8, 0), 2.0),
        ThresholdUpdate("sensor_2", at(8, 3), 0.5),
        ThresholdUpdate("sensor_1", at(9, 0), 0.0),
    ]
    thresholds = stamped(env, updates).broadcast(THRESHOLDS)
    return stamped(env, READINGS).key_by("id").connect(thresholds).process(UpdatableTemperatureAlert())


class TwoCounters(MapFunction, CheckpointedFunction):
    """Counts readings of the key in keyed state, and readings of the task in operator state."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        keyed = context.get_keyed_state_store()
        self.of_key = keyed.get_state(ValueStateDescriptor("of key", Types.LONG(), default_value=0))
        self.parts = context.get_operator_state_store().get_list_state(ListStateDescriptor("of task", Types.LONG()))
        self.of_task = sum(self.parts.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.parts.update([self.of_task])

    def map(self, value: SensorReading) -> tuple[str, int, int]:
        self.of_key.update(self.of_key.value() + 1)
        self.of_task += 1
        return value.id, self.of_key.value(), self.of_task


@book.example("7-8", "Two counters")
def two_counters(env: StreamExecutionEnvironment) -> DataStream:
    """Keyed and operator state in one function. Sensor, its readings so far, readings of the (only) task so far."""
    return stamped(env, READINGS).key_by("id").map(TwoCounters()).set_parallelism(1)


class SelfCleaningAlert(KeyedProcessFunction):
    """As 7-2, but a sensor that is silent for an hour is forgotten: its state is gone, and it starts afresh."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
        self.forget_at = runtime_context.get_state(ValueStateDescriptor("forget at", Types.LONG()))

    def process_element(self, value: SensorReading, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers, old = ctx.timer_service(), self.forget_at.value()
        if old is not None:
            timers.delete_event_time_timer(old)  # one timer a key is enough
        timers.register_event_time_timer(value.timestamp + HOUR)
        self.forget_at.update(value.timestamp + HOUR)
        last = self.last.value()
        self.last.update(value.temperature)
        if last is not None and abs(value.temperature - last) > self.threshold:
            yield value.id, value.temperature, abs(value.temperature - last)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        self.last.clear()
        self.forget_at.clear()


@book.example("7-13", "State that cleans up after itself")
def self_cleaning_alert(env: StreamExecutionEnvironment) -> DataStream:
    """The readings of 7-2: at 10:00 both sensors have been silent for more than an hour, so nothing is compared."""
    script = [*READINGS[:6], Mark(at(9, 30)), *READINGS[6:]]
    return scripted(env, script).key_by("id").process(SelfCleaningAlert(1.7))


if __name__ == "__main__":
    raise SystemExit(book.main())
