import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Instant, Time
from penstock.common.errors import InvalidProgramError
from penstock.common.time import parse_duration, to_millis


@pytest.mark.parametrize(
    ("time", "millis"),
    [
        (Time.milliseconds(7), 7),
        (Time.seconds(2), 2_000),
        (Time.minutes(2), 120_000),
        (Time.hours(2), 7_200_000),
        (Time.days(2), 172_800_000),
        (Time.hours(-1), -3_600_000),
        (Time.seconds(0.5), 500),
    ],
)
def test_time_in_milliseconds(time, millis):
    assert time.to_milliseconds() == millis
    assert Time(millis) == time


@pytest.mark.parametrize(
    ("duration", "nanos"),
    [
        (Duration.of_nanos(7), 7),
        (Duration.of_millis(2), 2 * 10**6),
        (Duration.of_seconds(2), 2 * 10**9),
        (Duration.of_minutes(2), 120 * 10**9),
        (Duration.of_hours(2), 7_200 * 10**9),
        (Duration.of_days(2), 172_800 * 10**9),
    ],
)
def test_duration_in_nanoseconds(duration, nanos):
    assert duration.to_nanos() == nanos
    assert duration.to_milliseconds() == nanos // 10**6


@pytest.mark.parametrize("wrong", ["5", None, True, 0.3])
def test_lengths_that_are_no_whole_number_of_milliseconds_are_refused(wrong):
    with pytest.raises(InvalidProgramError):
        Time.milliseconds(wrong)


def test_lengths_add_subtract_multiply_and_compare():
    assert Time.seconds(1) + Time.milliseconds(5) == Time.milliseconds(1_005)
    assert Time.seconds(1) - Time.seconds(3) == -Time.seconds(2)
    assert 3 * Time.seconds(1) == Time.seconds(3)
    assert Duration.of_seconds(1) + Duration.of_seconds(2) == Duration.of_seconds(3)
    assert Duration.of_seconds(1) - Duration.of_seconds(2) == -Duration.of_seconds(1)
    assert Duration.of_seconds(1) * 2 == Duration.of_seconds(2)
    assert Time.seconds(1) < Time.seconds(2) <= Time.seconds(2)
    assert max(Duration.of_seconds(1), Duration.of_millis(1)) == Duration.of_seconds(1)
    assert len({Time.seconds(1), Time.milliseconds(1_000)}) == 1


def test_lengths_of_different_kinds_do_not_mix():
    assert Time.seconds(1) != Duration.of_seconds(1)
    with pytest.raises(TypeError):
        Time.seconds(1) + Duration.of_seconds(1)
    with pytest.raises(TypeError):
        Time.seconds(1) < Duration.of_seconds(2)  # noqa: B015


@pytest.mark.parametrize("value", [Time.seconds(1), Duration.of_nanos(1), Instant(1, 2)])
def test_times_survive_pickling(value):
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    "length", [Time.seconds(1), Duration.of_seconds(1), timedelta(seconds=1), 1_000, Duration.of_nanos(1_000_999_999)]
)
def test_to_millis_takes_every_kind_of_length(length):
    assert to_millis(length) == 1_000


@pytest.mark.parametrize("wrong", [True, 1.5, None])
def test_to_millis_refuses_what_is_no_length(wrong):
    with pytest.raises(InvalidProgramError, match="Duration"):
        to_millis(wrong)


@given(st.integers(-(10**14), 10**14))
def test_instant_of_epoch_milli_round_trips(millis):
    instant = Instant.of_epoch_milli(millis)
    assert instant.to_epoch_milli() == millis
    assert 0 <= instant.nanos < 10**9


def test_instants_are_ordered():
    assert Instant(1, 5) < Instant(1, 6) < Instant(2, 0)
    assert Instant(0, 10**9 + 1) == Instant(1, 1)


def test_instant_and_datetime():
    moment = datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert Instant.from_datetime(moment).to_datetime() == moment
    assert Instant.from_datetime(moment.replace(tzinfo=None)).to_datetime() == moment
    assert Instant.from_datetime(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == Instant(0)


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (Instant(0), "1970-01-01T00:00:00Z"),
        (Instant(0, 120_000_000), "1970-01-01T00:00:00.120Z"),
        (Instant(0, 1_000), "1970-01-01T00:00:00.000001Z"),
        (Instant(0, 1), "1970-01-01T00:00:00.000000001Z"),
        (Instant.of_epoch_milli(-1), "1969-12-31T23:59:59.999Z"),
    ],
)
def test_instant_prints_as_java_does(instant, text):
    assert str(instant) == text


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("10 s", 10_000),
        ("200ms", 200),
        ("1 h", 3_600_000),
        ("5", 5),
        ("2 min", 120_000),
        ("1 d", 86_400_000),
        ("1.5 s", 1_500),
    ],
)
def test_durations_are_read_from_text(text, millis):
    assert parse_duration(text).to_milliseconds() == millis


@pytest.mark.parametrize("text", ["", "s", "10 parsecs", "-1 s", "1 s 2"])
def test_text_that_is_no_duration_is_refused(text):
    with pytest.raises(InvalidProgramError, match="not a duration"):
        parse_duration(text)


def test_a_length_may_be_a_text():
    assert (to_millis("1 s"), to_millis("5 min"), to_millis("250ms")) == (1_000, 300_000, 250)
    with pytest.raises(InvalidProgramError, match="'soon' is not a duration"):
        to_millis("soon")
