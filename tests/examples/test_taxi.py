"""The taxi exercises: the generators, the course's own tests, the published results, what the programs print."""

import hourly_tips
import long_ride_alerts
import pytest
import ride_cleansing
import rides_and_fares
import taxi_data
from taxi_data import BEGIN, HOUR, MINUTE, TaxiFare, TaxiRide, fare, minutes, ride

from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.operators.keyed_co_process import KeyedCoProcessOperator
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.testing import KeyedOneInputOperatorHarness, KeyedTwoInputOperatorHarness, MiniCluster

streaming = pytest.mark.variants(modes=("STREAMING",))
PENN_STATION = (-73.9947, 40.750626)
NORTH_POLE = (0.0, 90.0)


def a_ride(ride_id=1, *, is_start=True, at=BEGIN, start=PENN_STATION, end=PENN_STATION):
    return TaxiRide(ride_id, is_start, at, *start, *end, 1, 1, 1)


def a_fare(ride_id=1, driver=1, at=BEGIN, tip=1.0):
    return TaxiFare(ride_id, driver, driver, at, "CASH", tip, 0.0, tip)


def collected(stream):
    return list(stream.execute_and_collect())


# -- generators -------------------------------------------------------------------------------------------------------


def test_of_ten_thousand_rides_as_many_are_in_the_city_and_long_as_in_the_course():
    starts = [ride(ride_id, is_start=True) for ride_id in range(1, 10_001)]
    outside = [one.ride_id for one in starts if not ride_cleansing.is_in_city(one)]
    assert (len(outside), outside[0]) == (88, 1497)
    long_ones = [one.ride_id for one in starts if minutes(one.ride_id) > 120]
    assert (len(long_ones), long_ones[0]) == (40, 1539)
    assert [one.ride_id for one in starts if minutes(one.ride_id) == 120] == [1715, 2904, 5695, 7892, 8494]
    assert sum(fare(one.ride_id).tip for one in starts) == 168_130


def generated(batches, order=None):
    generator = taxi_data.RideBatches(batches)
    generator.open(None)
    return [generator.map(index) for index in order or range(batches)]


def test_every_ride_has_one_begin_and_one_end_and_some_ends_come_first():
    events = [event for batch in generated(200) for event in batch]
    seen, early = set(), 0
    for event in events:
        early += not event.is_start and (event.ride_id, True) not in seen
        seen.add((event.ride_id, event.is_start))
    assert len(events) == len(seen) == 2 * 1_000
    assert early > 0


def test_the_same_number_gives_the_same_batch_in_any_order():
    expected = generated(120)
    assert generated(120, order=[100, 3, 4, 119]) == [expected[index] for index in (100, 3, 4, 119)]


def test_cells_count_from_the_north_west_corner():
    assert taxi_data.grid_cell(-74.05, 41.0) == 0
    assert taxi_data.grid_cell(-74.05 + 0.00141, 41.0 - 0.00126) == 251


# -- exercises --------------------------------------------------------------------------------------------------------


def test_ride_cleansing_only_rides_with_both_ends_in_the_city_pass(env_factory):
    candidates = [
        a_ride(1, start=PENN_STATION, end=PENN_STATION),
        a_ride(2, start=PENN_STATION, end=NORTH_POLE),
        a_ride(3, start=NORTH_POLE, end=PENN_STATION),
        a_ride(4, start=NORTH_POLE, end=NORTH_POLE),
        a_ride(5, start=(-74.05, 40.5), end=(-73.7, 41.0)),  # the borders are in the city
    ]
    stream = env_factory().from_collection(candidates)
    assert sorted(one.ride_id for one in collected(ride_cleansing.cleansed(stream))) == [1, 5]


def test_rides_and_fares_meet_in_any_order_of_arrival(env_factory):
    env = env_factory()
    rides = env.from_collection([a_ride(number) for number in (1, 4, 3, 2)])
    fares = env.from_collection([a_fare(number) for number in (2, 4, 1, 3)])
    pairs = collected(rides_and_fares.paired(rides, fares))
    assert sorted((one.ride_id, other.ride_id) for one, other in pairs) == [(n, n) for n in (1, 2, 3, 4)]


def pairing():
    operator = KeyedCoProcessOperator(rides_and_fares.Pair(), lambda one: one.ride_id, lambda one: one.ride_id)
    return KeyedTwoInputOperatorHarness(operator)


@pytest.mark.parametrize("ride_first", [True, False])
def test_rides_and_fares_nothing_is_kept_of_a_pair(ride_first):
    harness = pairing()
    feeds = [(harness.process_element1, a_ride()), (harness.process_element2, a_fare())]
    for feed, event in feeds if ride_first else reversed(feeds):
        feed(event, BEGIN)
    assert harness.extract_values() == [(a_ride(), a_fare())]
    assert harness.num_event_time_timers() == 0
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 0


def test_rides_and_fares_what_is_alone_leaves_by_the_side_once_time_has_passed_it():
    harness = pairing()
    harness.process_element1(a_ride(1), BEGIN)
    harness.process_element2(a_fare(2), BEGIN)
    harness.process_watermark1(BEGIN)
    assert harness.extract_side_output(rides_and_fares.RIDES_ALONE) == []
    harness.process_watermark2(BEGIN)
    assert harness.extract_values() == []
    assert [value for value, _ in harness.extract_side_output(rides_and_fares.RIDES_ALONE)] == [a_ride(1)]
    assert [value for value, _ in harness.extract_side_output(rides_and_fares.FARES_ALONE)] == [a_fare(2)]
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 0


T = BEGIN


@streaming
@pytest.mark.parametrize(
    ("fares", "expected"),
    [
        ([a_fare(1, 1, T, 1.0)], [(T + HOUR, 1, 1.0)]),
        (
            [a_fare(1, 1, T, 1.0), a_fare(2, 1, T + 15 * MINUTE, 5.0), a_fare(3, 1, T + 90 * MINUTE, 10.0)],
            [(T + HOUR, 1, 6.0), (T + 2 * HOUR, 1, 10.0)],
        ),
        (
            [
                a_fare(1, 1, T, 1.0),
                a_fare(2, 1, T + 15 * MINUTE, 5.0),
                a_fare(3, 1, T + 90 * MINUTE, 10.0),
                a_fare(4, 2, T + 90 * MINUTE, 20.0),
            ],
            [(T + HOUR, 1, 6.0), (T + 2 * HOUR, 2, 20.0)],
        ),
    ],
    ids=["one driver, one tip", "two hours", "two drivers"],
)
def test_hourly_tips_of_the_best_driver(env_factory, fares, expected):
    assert collected(hourly_tips.best_of_each_hour(env_factory().from_collection(fares))) == expected


PUBLISHED = [
    (1577883600000, 2013000089, 76),
    (1577887200000, 2013000197, 71),
    (1577890800000, 2013000118, 83),
    (1577894400000, 2013000119, 81),
    (1577898000000, 2013000195, 73),
    (1577901600000, 2013000072, 123),
    (1577905200000, 2013000058, 84),
]


@pytest.mark.variants(modes=("STREAMING",), executors=("warm",))
def test_hourly_tips_are_the_published_ones(env_factory):
    fares = taxi_data.fares(env_factory(), 7 * 180 - 1)
    assert collected(hourly_tips.best_of_each_hour(fares)) == PUBLISHED


@streaming
def test_long_rides_are_told_about_with_and_without_an_end(env_factory):
    events = [
        a_ride(1),
        a_ride(2),
        a_ride(3),
        a_ride(4),
        a_ride(2, is_start=False, at=BEGIN),
        a_ride(4, is_start=False, at=BEGIN + HOUR),
        a_ride(3, is_start=False, at=BEGIN + 3 * HOUR - MINUTE),
    ]
    assert sorted(collected(long_ride_alerts.alerts(env_factory().from_collection(events)))) == [1, 3]


@pytest.mark.variants(modes=("STREAMING",), executors=("warm",))
def test_long_rides_of_the_generator_are_those_of_more_than_two_hours(env_factory):
    found = collected(long_ride_alerts.alerts(taxi_data.rides(env_factory(), 3_000)))
    assert sorted(found) == [ride_id for ride_id in range(1, 3_001) if minutes(ride_id) > 120]


def watching():
    operator = KeyedProcessOperator(long_ride_alerts.LongRideAlerts(), lambda one: one.ride_id)
    return KeyedOneInputOperatorHarness(operator)


def feed(harness, event):
    harness.process_element(event, event.event_time)


def test_an_alert_comes_when_two_hours_are_over_with_that_time_and_before_the_watermark():
    harness = watching()
    feed(harness, a_ride())
    harness.process_watermark(BEGIN + 2 * HOUR - 1)
    assert harness.extract_output() == [BEGIN + 2 * HOUR - 1]
    harness.process_watermark(BEGIN + 2 * HOUR)
    assert harness.extract_output() == [(1, BEGIN + 2 * HOUR), BEGIN + 2 * HOUR]


@pytest.mark.parametrize("end_first", [True, False])
@pytest.mark.parametrize(("duration", "alerts"), [(2 * HOUR, []), (2 * HOUR + 1, [1])])
def test_two_hours_are_not_too_long_but_more_is(end_first, duration, alerts):
    harness = watching()
    events = [a_ride(), a_ride(is_start=False, at=BEGIN + duration)]
    for event in reversed(events) if end_first else events:
        feed(harness, event)
    assert harness.extract_values() == alerts
    assert harness.num_event_time_timers() == 0


@pytest.mark.parametrize("began", [True, False])
def test_an_end_after_the_alert_or_without_a_begin_is_forgotten(began):
    harness = watching()
    if began:
        feed(harness, a_ride())
    harness.process_watermark(BEGIN + 2 * HOUR)
    feed(harness, a_ride(is_start=False, at=BEGIN + 3 * HOUR))
    harness.extract_output()
    harness.process_watermark(BEGIN + 5 * HOUR)
    assert harness.extract_values() == []
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 0


# -- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [ride_cleansing, rides_and_fares, hourly_tips, long_ride_alerts])
def test_help_says_what_a_program_shows(program, capsys):
    with pytest.raises(SystemExit, match="0"):
        program.main(["--help"])
    assert program.__doc__.splitlines()[0] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "rides", "lines"),
    [
        (
            ride_cleansing,
            1_600,
            [
                "1,593 rides begin and end in New York. The first of them:",
                "     1   01 Jan 12:00:20      22701     42147",
                "7 do not:",
                "  1497   01 Jan 20:19:00  -73.755 40.903 to -73.698 40.975",
                "   ... and 2 more",
            ],
        ),
        (
            rides_and_fares,
            500,
            [
                "498 rides with their fares. The first of them:",
                "     3   01 Jan 12:01:00             3   CASH    41.00    12.00",
                "2 rides whose fare was lost: 250, 500",
            ],
        ),
        (hourly_tips, 400, ["01 Jan 14:00:00   2013000197     71.00   ******************"]),
        (
            long_ride_alerts,
            1_540,
            [
                "ride   1539 began 01 Jan 20:33:00, and is still under way at 01 Jan 22:33:00",
                "1 rides took longer than two hours.",
            ],
        ),
    ],
)
def test_what_a_program_prints(program, rides, lines, monkeypatch, capsys):
    monkeypatch.setattr(
        StreamExecutionEnvironment,
        "get_execution_environment",
        staticmethod(lambda: StreamExecutionEnvironment(executor=MiniCluster())),
    )
    assert program.main(["--rides", str(rides)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in printed] == [], "\n".join(printed)
