"""E38 and E39: an assigner and a trigger of the program's own."""

import custom_windows as program
import pytest

from penstock.common.errors import InvalidProgramError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows
from penstock.testing import MiniCluster

streaming = pytest.mark.variants(modes=("STREAMING",))


@streaming
def test_e38_thirty_seconds_also_before_1970(results):
    assert results(program.thirty_seconds_windows) == [
        ("sensor_1", -30_000, 0, 1),
        ("sensor_1", 0, 30_000, 2),
        ("sensor_1", 30_000, 60_000, 1),
        ("sensor_2", 30_000, 60_000, 1),
    ]


@streaming
def test_e39_early_results_at_full_seconds_and_a_last_one_at_the_end(results):
    found = results(program.one_second_interval_trigger)
    assert [(watermark, count) for _, _, watermark, count in found["event time step by step"]] == [
        (1_000, 2),
        (2_500, 3),
        (3_000, 3),
        (28_500, 4),
        (29_999, 4),
        (29_999, 4),
    ]
    (leap,) = [records for name, records in found.items() if "leap" in name]
    assert leap == [("sensor_1", 30_000, 45_000, 1)] * 2


def test_e39_the_trigger_is_refused_for_sessions():
    env = StreamExecutionEnvironment(executor=MiniCluster())
    sessions = env.from_elements(1).key_by(lambda n: n).window(EventTimeSessionWindows.with_gap(1_000))
    with pytest.raises(InvalidProgramError, match="OneSecondIntervalTrigger"):
        sessions.trigger(program.OneSecondIntervalTrigger()).process(program.CountSoFar())
