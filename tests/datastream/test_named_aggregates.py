"""Windows in a word and aggregates by name."""

import math
import random
from dataclasses import dataclass
from datetime import timedelta

import pytest

from penstock.common import Duration, Row, Time, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.core.window.shorthand import sessions, sliding, tumbling
from penstock.datastream.aggregates import (
    Collect,
    Count,
    CountDistinct,
    Max,
    Mean,
    Min,
    Quantile,
    Sum,
    Top,
    aggregated,
)
from penstock.datastream.window import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)


@dataclass
class Order:
    user: str
    at: int
    amount: float


ORDERS = [
    Order("ann", 0, 3.0),
    Order("bob", 10_000, 9.0),
    Order("ann", 20_000, 5.0),
    Order("ann", 70_000, 1.0),
    Order("bob", 80_000, 7.0),
]


@pytest.fixture
def orders(running_env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda o: o.at)
    return running_env.set_parallelism(1).from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)


def same(one, other):
    return repr(one) == repr(other) and vars(one) == vars(other)


@pytest.mark.parametrize(
    ("word", "assigner"),
    [
        (tumbling(minutes=1), TumblingEventTimeWindows.of(Time.minutes(1))),
        (tumbling(timedelta(minutes=1), offset="15 s"), TumblingEventTimeWindows.of(Time.minutes(1), Time.seconds(15))),
        (tumbling("1 min", processing_time=True), TumblingProcessingTimeWindows.of(Time.minutes(1))),
        (sliding(hours=1, every="1 min"), SlidingEventTimeWindows.of(Time.hours(1), Time.minutes(1))),
        (
            sliding(days=1, hours=1, every=Duration.of_hours(5), offset=7, processing_time=True),
            SlidingProcessingTimeWindows.of(Time.hours(25), Time.hours(5), Time.milliseconds(7)),
        ),
        (sessions(gap="5 min"), EventTimeSessionWindows.with_gap(Time.minutes(5))),
        (sessions(seconds=0.5, milliseconds=1), EventTimeSessionWindows.with_gap(Time.milliseconds(501))),
        (sessions(250, processing_time=True), ProcessingTimeSessionWindows.with_gap(Time.milliseconds(250))),
    ],
    ids=repr,
)
def test_words_are_window_assigners(word, assigner):
    assert same(word, assigner)


@pytest.mark.parametrize("make", [tumbling, lambda: tumbling("1 s", seconds=1), sessions, lambda: sliding(every="1 s")])
def test_windows_need_one_length(make):
    with pytest.raises(InvalidProgramError, match="windows need one length, as keywords or as an argument: "):
        make()


def test_aggregates_of_windows_by_key(orders, collected):
    windows = orders.key_by("user").window(tumbling(minutes=1))
    assert collected(windows.count()) == [("ann", 2), ("bob", 1), ("ann", 1), ("bob", 1)]
    assert collected(windows.mean("amount")) == [("ann", 4.0), ("bob", 9.0), ("ann", 1.0), ("bob", 7.0)]
    assert collected(windows.quantile(0.5, "amount", accuracy=0))[0] == ("ann", 3.0)
    assert collected(windows.top(1, by="amount"))[0] == ("ann", [ORDERS[2]])
    assert collected(windows.agg(total=Sum("amount"), n=Count()))[0] == Row(
        key="ann", window_start=0, window_end=60_000, total=8.0, n=2
    )


def test_sum_of_windows_stays_pyflinks(orders, collected):
    assert collected(orders.key_by("user").window(tumbling(minutes=1)).sum("amount"))[0] == Order("ann", 0, 8.0)


def test_sliding_and_merging_windows_aggregate_too(orders, collected):
    everything = {"total": Sum("amount"), "top": Top(2, "amount"), "all": Collect("amount"), "p": Quantile(1, "amount")}
    hours = collected(orders.key_by("user").window(sliding("2 min", every="1 min")).agg(**everything))
    assert [(row.key, row.window_end, row.total, row.all) for row in hours if row.key == "ann"] == [
        ("ann", 60_000, 8.0, [3.0, 5.0]),
        ("ann", 120_000, 9.0, [3.0, 5.0, 1.0]),
        ("ann", 180_000, 1.0, [1.0]),
    ]
    assert [order.amount for order in hours[2].top] == [5.0, 3.0]
    visits = collected(orders.key_by("user").window(sessions(gap="30 s")).agg(**everything))
    assert [(row.key, row.window_start, row.total, row.all) for row in visits] == [
        ("bob", 10_000, 9.0, [9.0]),
        ("ann", 0, 8.0, [3.0, 5.0]),
        ("ann", 70_000, 1.0, [1.0]),
        ("bob", 80_000, 7.0, [7.0]),
    ]


def test_aggregates_of_all_records_of_a_window(orders, collected):
    windows = orders.window_all(tumbling(minutes=1))
    assert collected(windows.count()) == [3, 2]
    assert collected(windows.mean("amount")) == [17.0 / 3, 4.0]
    assert collected(windows.top(1, by="amount")) == [[ORDERS[1]], [ORDERS[4]]]
    assert collected(windows.quantile(0, "amount", accuracy=0)) == [3.0, 1.0]
    assert collected(windows.agg(most=Max("amount")))[1] == Row(window_start=60_000, window_end=120_000, most=7.0)


def test_windows_without_time_have_no_bounds(orders, collected):
    assert collected(orders.key_by("user").count_window(2).agg(n=Count())) == [
        Row(key="ann", n=2),
        Row(key="bob", n=2),
    ]


def test_aggregates_of_a_keyed_stream_come_with_every_record(orders, collected):
    by_user = orders.key_by("user")
    assert collected(by_user.count()) == [("ann", 1), ("bob", 1), ("ann", 2), ("ann", 3), ("bob", 2)]
    assert collected(by_user.mean("amount"))[-1] == ("bob", 8.0)
    assert collected(by_user.top(1, by=lambda order: -order.amount))[3] == ("ann", [ORDERS[3]])
    assert collected(by_user.agg(low=Min("amount"), users=CountDistinct("user")))[-1] == Row(
        key="bob", low=7.0, users=1
    )


def test_a_stream_without_keys_has_no_aggregates(orders):
    with pytest.raises(AttributeError, match=r"count\(\) needs keys: call key_by\(\) before it"):
        orders.count()


@pytest.mark.parametrize("accuracy", [0.01, 0.05, 0])
@pytest.mark.parametrize("q", [0, 0.1, 0.5, 0.99, 1])
def test_a_quantile_is_off_by_its_accuracy_at_most(q, accuracy):
    chance = random.Random(7)
    values = [chance.choice([0.0, chance.expovariate(1), -chance.paretovariate(0.5), 1e9]) for _ in range(2_000)]
    exact = sorted(values)[max(math.ceil(q * len(values)), 1) - 1]
    assert aggregated(Quantile(q, accuracy=accuracy), values) == pytest.approx(exact, rel=accuracy + 1e-9)


@pytest.mark.parametrize(
    "aggregate",
    [
        Count(),
        Sum(),
        Min(),
        Max(),
        Mean(),
        Collect(),
        CountDistinct(),
        Quantile(0.3),
        Quantile(0.3, accuracy=0),
        Top(3),
        Top(3, smallest=True),
    ],
    ids=repr,
)
def test_merged_accumulators_aggregate_as_one_and_stay_as_they_are(aggregate):
    def accumulated(values):
        accumulator = aggregate.create_accumulator()
        for value in values:
            accumulator = aggregate.add(value, accumulator)
        return accumulator

    one, other, none = accumulated([5, 3, 8]), accumulated([2, 8, 9]), accumulated([])
    whole = aggregated(aggregate, [5, 3, 8, 2, 8, 9])
    assert aggregate.get_result(aggregate.merge(one, other)) == whole
    assert aggregate.get_result(aggregate.merge(aggregate.merge(none, one), aggregate.merge(other, none))) == whole
    assert (one, other) == (accumulated([5, 3, 8]), accumulated([2, 8, 9]))


def test_of_equal_records_the_earlier_is_on_top():
    assert aggregated(Top(2, by=1), [("a", 1), ("b", 2), ("c", 2), ("d", 2)]) == [("b", 2), ("c", 2)]
    assert aggregated(Top(2, by=1, smallest=True), [("a", 1), ("b", 1), ("c", 1)]) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda windows: windows.agg(),
            r"agg\(\) needs named aggregates: .agg\(total=Sum\('amount'\), n=Count\(\)\)",
        ),
        (
            lambda windows: windows.agg(n=5),
            r"'n' of agg\(\) must be an aggregate such as Sum\('amount'\) or Count\(\), got 5",
        ),
        (lambda windows: windows.agg(Count()), r"agg\(\) needs a name for each aggregate: .agg\(total="),
        (lambda windows: windows.agg(key=Count()), r"'key' is a field that agg\(\) adds to its rows"),
        (lambda windows: windows.top(0), r"the number of records for top\(\) must be at least 1, got 0"),
        (
            lambda windows: windows.quantile(99),
            "a quantile must be between 0 and 1, got 99: 0.99 is the 99th percentile",
        ),
        (
            lambda windows: windows.quantile(0.5, accuracy=1),
            "the accuracy of a quantile must be at least 0 and below 1",
        ),
    ],
)
def test_aggregates_that_make_no_sense_are_refused(orders, make, message):
    with pytest.raises(InvalidProgramError, match=message):
        make(orders.key_by("user").window(tumbling(minutes=1)))
