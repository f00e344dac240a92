"""with_event_time() assigns timestamps from a field and bounded watermarks."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.common import Instant
from penstock.common.errors import InvalidProgramError
from penstock.core.window.shorthand import tumbling
from penstock.datastream import ProcessFunction


class Stamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp()


@pytest.mark.parametrize(
    "time", [1_500, datetime(1970, 1, 1, 0, 0, 1, 500_000), datetime.fromtimestamp(1.5, UTC), Instant(1, 500_000_000)]
)
def test_a_time_is_in_milliseconds_a_datetime_or_an_instant(running_env, collected, time):
    stream = running_env.from_collection([("a", time)])
    for field in (1, "f1", lambda record: record[1]):
        assert collected(stream.with_event_time(field).process(Stamps())) == [1_500]


def test_another_value_is_no_time(running_env):
    stream = running_env.from_collection([("a", "noon")]).with_event_time(1)
    with pytest.raises(InvalidProgramError, match=r"the event time of the record \('a', 'noon'\) is 'noon'"):
        list(stream.execute_and_collect())


def test_watermarks_trail_the_latest_record_by_the_delay(running_env, nodes):
    stream = running_env.from_collection([("a", 5)])
    stream.with_event_time(1, max_delay=timedelta(seconds=2), idle_after="1 min").print()
    strategy = nodes(running_env)["Timestamps/Watermarks"].operator.strategy
    assert strategy.idle_timeout == 60_000
    generator = strategy.create_generator()
    assert type(generator).__name__ == "BoundedOutOfOrdernessWatermarks"


def test_late_records_within_the_delay_count(running_env, collected):
    records = [("a", 0), ("a", 1_100), ("a", 900)]
    windows = running_env.set_parallelism(1).from_collection(records).with_event_time(1, max_delay="1 s").key_by(0)
    assert collected(windows.window(tumbling(seconds=1)).count()) == [("a", 2), ("a", 1)]
