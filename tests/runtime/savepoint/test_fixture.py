"""Savepoints of earlier versions of the format can be read, forever."""

from pathlib import Path

import pytest
from support import At, Wm
from tests.runtime.savepoint.fixture_job import AFTER, BEFORE, KEYS, FixtureJob

from penstock.common import Row
from penstock.core.window import GlobalWindow, TimeWindow
from penstock.state_processor import SavepointReader

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
VERSIONS = sorted(path.name for path in FIXTURES.glob("savepoint-v*"))


@pytest.fixture(params=VERSIONS)
def savepoint(request):
    return str(FIXTURES / request.param)


def test_there_is_one_of_every_version():
    assert "savepoint-v1" in VERSIONS


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_job_goes_on_from_it(savepoint, parallelism):
    undisturbed = FixtureJob(parallelism, [*BEFORE, Wm(12), *AFTER, Wm(100)])
    restored = FixtureJob(parallelism, [*BEFORE, Wm(12), *AFTER, Wm(100)], savepoint)
    expected = undisturbed.records()
    assert len(expected) > 5 * len(KEYS)
    assert restored.records() == expected


def test_its_state_can_be_read(savepoint):
    reader = SavepointReader.read(savepoint).verify()
    assert set(reader.operators()) == {"kinds", "listed", "tumbling", "sliding", "sessions", "counted"}
    assert dict(reader.read_keyed_state("kinds", "row")) == {key: Row(number=3, key=str(key)) for key in KEYS}
    stamped = {key: set(values) for key, values in reader.read_keyed_state("kinds", "dataclasses")}
    assert stamped == {key: {At((key, n), 10 * n) for n in (1, 2, 3)} for key in KEYS}
    assert dict(reader.read_keyed_state("kinds", "sum")) == dict.fromkeys(KEYS, 6)
    assert [value for _, value in reader.read_keyed_state("kinds", "product")] == [[6]] * 3
    assert dict(reader.read_keyed_state("kinds", "expiring"))["a"] == {1: [1], 2: [2], 3: [3]}
    assert {timer[1:] for timer in reader.read_timers("kinds")} == {
        ("EVENT_TIME", 60, None),
        ("PROCESSING_TIME", 9_000, None),
    }
    assert sorted(reader.read_list_state("listed", "split")) == sorted(n for _ in KEYS for n in (1, 2, 3))
    windows = {uid: {w for _, w, _ in reader.read_window_state(uid)} for uid in ("tumbling", "sessions", "counted")}
    assert windows == {"tumbling": {TimeWindow(0, 50)}, "sessions": {TimeWindow(10, 45)}, "counted": {GlobalWindow()}}
    assert reader.source_positions("script") == {"0": len(BEFORE) + 1}
