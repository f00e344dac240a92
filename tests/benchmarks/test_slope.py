"""How many runs a measurement takes, and of how many records."""

from __future__ import annotations

import pytest
from benchmarks.expected import expected_rate, remember_rate
from benchmarks.harness import slope
from benchmarks.harness.slope import Run, measure_slope


@pytest.fixture
def system(monkeypatch):
    """Runs of a system that starts in some seconds and then does so many records a second."""

    def install(*, start, rate):
        runs = []

        def timed(_execute, records):
            run = Run(records, start + records / rate, records / rate, records / rate)
            runs.append(run)
            return run

        monkeypatch.setattr(slope, "_timed", timed)
        return runs

    return install


def prepare(_records):
    return lambda: None


def test_a_good_guess_takes_a_warm_up_and_two_runs(system):
    runs = system(start=5.0, rate=1_000.0)
    measured = measure_slope(prepare, expected=1_000, seconds=8)
    assert [run.records for run in runs] == [4_000, 4_000, 12_000]
    assert measured.records_per_second == pytest.approx(1_000)
    assert measured.long.seconds - measured.short.seconds == pytest.approx(8)


@pytest.mark.parametrize("guess", [1, 50, 700, 5_000, 100_000])
@pytest.mark.parametrize("start", [0.01, 5.0])
def test_a_bad_guess_gives_the_same_rate(system, guess, start):
    runs = system(start=start, rate=1_000.0)
    measured = measure_slope(prepare, expected=guess, seconds=8)
    assert measured.records_per_second == pytest.approx(1_000)
    assert measured.is_clear(0.6 * 8)
    assert len(runs) > 2  # the first one warms up


def test_a_guess_that_was_too_high_is_mended_by_the_warm_up(system):
    runs = system(start=1.0, rate=100.0)
    measure_slope(prepare, expected=1_000, seconds=8)
    assert [run.records for run in runs][1] < 500


def test_runs_have_whole_units_of_records(system):
    runs = system(start=1.0, rate=30_000.0)
    measure_slope(prepare, expected=20_000, seconds=8, unit=100_000)
    assert all(run.records % 100_000 == 0 for run in runs)


def test_the_last_rate_seen_is_the_next_guess(tmp_path):
    file = tmp_path / "home" / "rates.json"
    assert expected_rate("spark", "b", file) == 25_000
    remember_rate("spark", "b", 31_234.5, file)
    remember_rate("bytewax", "b", 10.0, file)
    assert expected_rate("spark", "b", file) == 31_234
    assert expected_rate("spark", "c", file) == 5_000
