"""State that others may ask for while the job runs (ch. 7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from sensors import SensorReading
from showcase import Showcase

from penstock.common import Configuration, JobID, Time, Types, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource
from penstock.datastream.functions import FlatMapFunction, RuntimeContext
from penstock.datastream.queryable_state import QueryableStateClient
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

book = Showcase(__doc__)

SENSORS = [f"sensor_{number}" for number in range(1, 6)]
PER_SECOND = 50
TEMPERATURE = ValueStateDescriptor("any name", Types.DOUBLE())  # of an answer; only the kind of state counts


def reading(index: int) -> SensorReading:
    """The sensors take turns, ten readings a second each; every sensor warms up by a tenth of a degree a reading."""
    turn, sensor = divmod(index, len(SENSORS))
    return SensorReading(SENSORS[sensor], turn * 100, 60 + sensor + turn / 10)


def readings(env: StreamExecutionEnvironment, seconds: float) -> DataStream:
    """Live, for some seconds."""
    source = DataGeneratorSource(reading, round(seconds * PER_SECOND), PER_SECOND)
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda one: one.timestamp)
    return env.from_source(source, in_order, "sensors").set_parallelism(1)


class TemperatureAlert(FlatMapFunction):
    """Tells when a temperature jumps; what it remembers for that, others may ask for."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("lastTemp", Types.DOUBLE())
        descriptor.set_queryable("lastTemperature")  # before the state is asked for
        self.last = runtime_context.get_state(descriptor)

    def flat_map(self, value: SensorReading) -> Iterator[tuple[str, float, float]]:
        last = self.last.value()
        if last is not None and abs(value.temperature - last) > self.threshold:
            yield value.id, value.temperature, abs(value.temperature - last)
        self.last.update(value.temperature)


def last_temperatures(stream: DataStream) -> DataStream:
    """Alerts, and the last temperature of each sensor as queryable state."""
    return stream.key_by("id").flat_map(TemperatureAlert(1.7))


def max_temperatures(stream: DataStream) -> None:
    """The highest temperature of each sensor in the last full second, as queryable state."""
    highest = stream.key_by("id").window(TumblingEventTimeWindows.of(Time.seconds(1))).max("temperature")
    highest.map(lambda one: (one.id, one.temperature)).key_by(lambda pair: pair[0]).as_queryable_state("maxTemperature")


class TemperatureDashboard:
    """A separate client that only knows the address of the job and its id."""

    def __init__(self, port: int, job_id: JobID | str, state: str) -> None:
        self.client = QueryableStateClient("127.0.0.1", port)
        self.job_id, self.state = job_id, state

    def refresh(self) -> tuple[str, ...]:
        """Asks for all sensors at once, then waits for the answers; those that are not there yet are dashes."""
        asked = [
            self.client.get_kv_state(self.job_id, self.state, sensor, Types.STRING(), TEMPERATURE) for sensor in SENSORS
        ]
        return tuple(_shown(answer.result().value()) if answer.exception() is None else "-" for answer in asked)


def _shown(value: Any) -> str:
    return f"{value[1] if isinstance(value, tuple) else value:.3f}"


def ask_while_it_runs(env: StreamExecutionEnvironment, state: str, times: int) -> Callable[[], list[Any]]:
    """Enable queries for jobs of this environment, and query them once a second."""
    settings = Configuration()
    settings.set_string("queryable-state.enable", "true")
    settings.set_string("queryable-state.proxy.ports", "0")  # any; the default is 9069
    env.configure(settings)
    seen: list[tuple[str, ...]] = []
    asking: list[threading.Thread] = []

    def ask(client: Any) -> None:
        dashboard = TemperatureDashboard(client.job.query_port, client.get_job_id(), state)
        while len(seen) < times and not client.get_job_execution_result().done():
            row = dashboard.refresh()
            if set(row) != {"-"}:
                seen.append(row)
            threading.Event().wait(1)
        dashboard.client.shutdown_and_wait()
        client.cancel()

    def start(client: Any) -> None:
        asking.append(threading.Thread(target=ask, args=(client,)))
        asking[0].start()

    def rows() -> list[Any]:
        asking[0].join()
        return [tuple(SENSORS), *seen]

    env.register_job_listener(start)
    return rows


@book.example("7-14", "State with a public name", own_job=True)
def queryable_alert(env: StreamExecutionEnvironment) -> dict[str, DataStream | Callable[[], list[Any]]]:
    """A function's own state, asked for twice from outside: the last temperatures. No temperature jumps: no alerts."""
    table = ask_while_it_runs(env, "lastTemperature", 2)
    return {"alerts": last_temperatures(readings(env, 60)), "asked once a second": table}


@book.example("7-15", "A stream as a table", own_job=True)
def queryable_maximum(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """Results of windows, each replacing the one before it: a sink that can be asked instead of a store."""
    table = ask_while_it_runs(env, "maxTemperature", 2)
    max_temperatures(readings(env, 60))
    return {"asked once a second": table}


@book.example("7-16", "A dashboard", own_job=True)
def dashboard(env: StreamExecutionEnvironment) -> dict[str, DataStream | Callable[[], list[Any]]]:
    """Five questions at once, five times. Every answer is of a completed checkpoint, not always of the same one."""
    table = ask_while_it_runs(env, "lastTemperature", 5)
    return {"alerts": last_temperatures(readings(env, 60)), "dashboard": table}


if __name__ == "__main__":
    raise SystemExit(book.main())
