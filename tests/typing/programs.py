"""A program whose types are inferred; `expect: TYPE` is what a type checker must say of the line."""

# ruff: noqa: F821 - reveal_type exists for type checkers only

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import penstock as ps
from styles import flink_names, short_forms


@dataclass
class Order:
    user: str
    amount: float


class Length(ps.MapFunction[str, int]):
    def map(self, value: str) -> int:
        return len(value)


class Count(ps.KeyedProcessFunction[str, Order, tuple[str, int]]):
    count: ps.ValueState[int]

    def open(self, runtime_context: ps.RuntimeContext) -> None:
        descriptor = ps.ValueStateDescriptor("count", ps.Types.INT())
        reveal_type(descriptor)  # expect: ValueStateDescriptor[int]
        self.count = runtime_context.get_state(descriptor)
        prices = ps.MapStateDescriptor("prices", ps.Types.STRING(), ps.Types.LIST(ps.Types.DOUBLE()))
        reveal_type(runtime_context.get_map_state(prices))  # expect: MapState[str, list[float]]
        untyped = runtime_context.get_list_state(ps.ListStateDescriptor("anything"))
        reveal_type(untyped)  # expect: ListState[Any]

    def process_element(self, value: Order, ctx: ps.KeyedProcessFunction.Context) -> Iterable[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value.user, count


class Declared(ps.KeyedProcessFunction[str, Order, float]):
    count = ps.ValueState(int, default=0)
    last = ps.ValueState(Order)
    amounts = ps.ListState(float, ttl=timedelta(hours=1))
    by_user = ps.MapState(str, Order)
    largest = ps.ReducingState(float, max)

    def process_element(self, value: Order, ctx: ps.KeyedProcessFunction.Context) -> Iterable[float]:
        reveal_type(self.count.value())  # expect: int
        reveal_type(self.last.value())  # expect: Order | None
        reveal_type(self.amounts.get())  # expect: Iterable[float]
        reveal_type(self.by_user)  # expect: MapState[str, Order]
        reveal_type(self.largest.get())  # expect: float | None
        self.count.update("one")  # expect an error
        yield value.amount


@dataclass
class Total:
    amount: float = 0.0


def running_total(order: Order, total: Total) -> Iterable[tuple[str, float]]:
    total.amount += order.amount
    yield order.user, total.amount


def remember(order: Order, total: Total, timers: ps.Timers) -> None:
    timers.set(after="1 min")


def report(total: Total, timers: ps.Timers) -> Iterable[float]:
    yield total.amount


class Mean(ps.AggregateFunction[Order, tuple[float, int], float]):
    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: Order, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value.amount, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Report(ps.ProcessWindowFunction[float, str, str, ps.TimeWindow]):
    def process(
        self, key: str, context: ps.ProcessWindowFunction.Context[ps.TimeWindow], elements: Iterable[float]
    ) -> Iterable[str]:
        yield from (f"{key} {context.window().end} {element}" for element in elements)


class Both(ps.CoMapFunction[Order, str, bool]):
    def map1(self, value: Order) -> bool:
        return value.amount > 0

    def map2(self, value: str) -> bool:
        return bool(value)


env = ps.StreamExecutionEnvironment.get_execution_environment()
orders = env.from_collection([Order("ann", 1.5), Order("bob", 2.5)])
reveal_type(orders)  # expect: DataStream[Order]
names = orders.map(lambda order: order.user)
reveal_type(names)  # expect: DataStream[str]
reveal_type(orders.filter(lambda order: order.amount > 1))  # expect: DataStream[Order]
reveal_type(names.flat_map(lambda name: name.split()))  # expect: DataStream[str]
reveal_type(names.map(Length()))  # expect: DataStream[int]
reveal_type(env.from_sequence(1, 5).union(env.from_sequence(7, 9)))  # expect: DataStream[int]
reveal_type(env.read_text_file("words.txt"))  # expect: DataStream[str]

keyed = orders.key_by(lambda order: order.user)
reveal_type(keyed)  # expect: KeyedStream[str, Order]
reveal_type(orders.key_by("user"))  # expect: KeyedStream[Any, Order]
reveal_type(keyed.reduce(lambda a, b: Order(a.user, a.amount + b.amount)))  # expect: DataStream[Order]
reveal_type(keyed.process(Count()))  # expect: DataStream[tuple[str, int]]

reveal_type(keyed.process(Declared()))  # expect: DataStream[float]
reveal_type(keyed.process(running_total))  # expect: DataStream[tuple[str, float]]
reveal_type(keyed.process(remember, on_timer=report))  # expect: DataStream[float]

windowed = keyed.window(ps.TumblingEventTimeWindows.of(timedelta(minutes=1)))
reveal_type(windowed)  # expect: WindowedStream[str, Order, TimeWindow]
reveal_type(windowed.allowed_lateness(timedelta(seconds=5)).reduce(lambda a, b: a))  # expect: DataStream[Order]
reveal_type(windowed.aggregate(Mean()))  # expect: DataStream[float]
reveal_type(windowed.aggregate(Mean(), Report()))  # expect: DataStream[str]

reveal_type(names.get_side_output(ps.OutputTag("late", ps.Types.STRING())))  # expect: DataStream[str]
reveal_type(orders.connect(names))  # expect: ConnectedStreams[Order, str]
reveal_type(orders.connect(names).map(Both()))  # expect: DataStream[bool]
reveal_type(names.execute_and_collect())  # expect: CloseableIterator[str]
reveal_type(names.execute_and_collect(limit=3))  # expect: list[str]

reveal_type(keyed.count())  # expect: DataStream[tuple[str, int]]
reveal_type(keyed.window(ps.tumbling(minutes=1)).mean("amount"))  # expect: DataStream[tuple[str, float]]
reveal_type(windowed.top(3, by="amount"))  # expect: DataStream[tuple[str, list[Order]]]
reveal_type(windowed.agg(total=ps.Sum("amount"), n=ps.Count()))  # expect: DataStream[Row]
reveal_type(orders.window_all(ps.sessions(gap="1 min")).count())  # expect: DataStream[int]
reveal_type(orders.with_event_time(lambda order: 5))  # expect: DataStream[Order]
reveal_type(orders.collect())  # expect: CloseableIterator[Order]
reveal_type(env.from_source(ps.FileSource("orders", format=ps.Csv(Order))))  # expect: DataStream[Order]
kafka = ps.KafkaSource(servers="localhost:9092", topics="orders", value=ps.Json(Order))
reveal_type(env.from_source(kafka))  # expect: DataStream[Order]

samples = env.from_collection(short_forms.SAMPLE)
reveal_type(short_forms.averages(samples))  # expect: DataStream[tuple[str, float]]
sensors = samples.key_by(lambda r: r.sensor)
reveal_type(sensors.process(short_forms.running_average))  # expect: DataStream[tuple[str, float]]
reveal_type(sensors.process(short_forms.watch, on_timer=short_forms.silent))  # expect: DataStream[str]
flink = env.from_collection(flink_names.SAMPLE).key_by(lambda r: r.sensor)
reveal_type(flink.process(flink_names.RunningAverage()))  # expect: DataStream[tuple[str, float]]
reveal_type(flink.process(flink_names.Silence()))  # expect: DataStream[str]


def double(number: int) -> int:
    return 2 * number


names.map(double)  # expect an error
keyed.process(Length())  # expect an error
names.key_by(lambda name: name.amount)  # expect an error
keyed.window("a minute")  # expect an error
