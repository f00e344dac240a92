"""Jobs (r), (s), (t): their results are those of a plain computation over the same records."""

from __future__ import annotations

import pytest
from benchmarks.harness.files import FilesLoad, digest_of
from benchmarks.harness.options import Workload
from benchmarks.harness.program import load_builder
from benchmarks.harness.report import digest
from benchmarks.jobs import changing_dimension, deduplicate, rolling_features
from benchmarks.jobs.catalogue import JOBS

from penstock.connectors.file_system import FileSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.formats.parquet import ParquetBulkWriters
from penstock.testing import MiniCluster

RECORDS = 6_000
KEYS = 20


def build(job, load, parallelism):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=1_000)).set_parallelism(parallelism)
    return env, load_builder(JOBS[job], "penstock")(env, load)


def collected(job, parallelism):
    _, stream = build(job, Workload(RECORDS, KEYS, parallelism), parallelism)
    return sorted(stream.execute_and_collect(), key=tuple)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_event_is_in_the_files_once(tmp_path, parallelism):
    load = FilesLoad((), str(tmp_path), parallelism, RECORDS)
    env, rows = build("r", load, parallelism)
    rows.sink_to(FileSink.for_bulk_format(load.target, ParquetBulkWriters.for_row_type(rows.get_type())).build())
    env.execute("deduplicate")
    events = {tuple(deduplicate.event(n)) for n in range(1, RECORDS + 1)}
    assert len(events) < RECORDS * 0.8
    assert digest_of(load) == digest(events)


def split_records(parallelism, records, value):
    """(key, time, value) of each record: every split begins at time 0."""
    part = -(-records // parallelism)
    for n in range(part * parallelism):
        yield n * rolling_features.SCATTER % KEYS, n % part, value(n)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_features_are_those_of_the_readings_in_the_window(parallelism):
    numpy = pytest.importorskip("numpy")
    per_split = rolling_features.EVENTS_PER_MS // parallelism
    windows = {}
    for key, position, value in split_records(parallelism, RECORDS, lambda n: float(n % 997)):
        first = position // per_split // 1_000 * 1_000 + 1_000
        for end in range(first, first + 10_000, 1_000):
            windows.setdefault((key, end), []).append(value)
    found = collected("s", parallelism)
    assert [(row.sensor, row.window_end) for row in found] == sorted(windows)
    for row in found:
        values = numpy.array(windows[row.sensor, row.window_end])
        expected = [values.mean(), values.std(), values.min(), values.max()]
        assert [row.mean, row.deviation, row.low, row.high] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_order_has_the_last_price_that_is_not_newer(parallelism):
    per_split = changing_dimension.EVENTS_PER_MS // parallelism
    prices: dict[int, list[tuple[int, float]]] = {}
    for key, position, price in split_records(parallelism, RECORDS // 10, lambda n: float(n % 1_009)):
        prices.setdefault(key, []).append((position * 9 // per_split, price))
    expected = []
    for key, position, quantity in split_records(parallelism, RECORDS * 9 // 10, lambda n: float(n % 1_009)):
        time = position // per_split
        known = [(since, price) for since, price in prices.get(key, []) if since <= time]
        latest = max(since for since, _ in known) if known else None
        expected.append((key, time, quantity, {price for since, price in known if since == latest} or {0.0}))
    found = collected("t", parallelism)
    assert [row[:3] for row in found] == sorted(row[:3] for row in expected)
    possible: dict[tuple[int, int, float], set[float]] = {}
    for *order, its_prices in expected:
        possible.setdefault(tuple(order), set()).update(its_prices)
    assert all(row[3] in possible[row[:3]] for row in found)
