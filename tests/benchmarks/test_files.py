"""Job (n): what is in the Parquet files is the count of what is in the text files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.harness.files import digest_of, scratch
from benchmarks.harness.kafka import _records_of
from benchmarks.harness.options import Options
from benchmarks.harness.program import load_builder
from benchmarks.harness.report import digest
from benchmarks.jobs.catalogue import JOBS

from penstock.connectors.file_system import FileSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.formats.parquet import ParquetBulkWriters
from penstock.testing import MiniCluster


def options(parallelism):
    return Options("penstock", "n", "default", 100, parallelism, 0, 1.0, 1.0, "collect", 0, ".")


def expected_rows(load):
    lines = [line for path in load.inputs for line in Path(path).read_text().splitlines()]
    readings = [tuple(map(int, line.split(","))) for line in lines]
    counts = Counter((key, time // 1_000 * 1_000 + 1_000) for key, time in readings)
    return [(key, end, count) for (key, end), count in counts.items()]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_rows_are_the_counts_of_the_lines(parallelism):
    with scratch(options(parallelism)) as files:
        load = files.load(25_000)
        env = StreamExecutionEnvironment(executor=MiniCluster(max_records=4_000))
        env.set_parallelism(parallelism)
        rows = load_builder(JOBS["n"], "penstock")(env, load)
        rows.sink_to(FileSink.for_bulk_format(load.target, ParquetBulkWriters.for_row_type(rows.get_type())).build())
        env.execute("files")
        expected = expected_rows(load)
        assert sum(count for _, _, count in expected) == 25_000
        assert digest_of(load) == digest(expected)


def test_a_header_is_the_first_line_of_every_file():
    with scratch(options(2), header="key,time\n") as files:
        load = files.load(10)
        assert [Path(path).read_text().splitlines()[0] for path in load.inputs] == ["key,time"] * 2


@pytest.mark.parametrize("job", ["a", "d", "k"])
def test_partitions_of_a_filled_topic_are_of_the_same_length(job):
    shards = Counter(shard % 2 for _, _, _, shard in _records_of(job, 20_000, 1_000))
    assert shards[0] == shards[1]


def test_windows_of_a_filled_topic_are_closed_by_a_later_record_of_every_partition():
    records = list(_records_of("d", 20_000, 1_000))
    last = records[-8:]
    assert {shard for _, _, _, shard in last} == set(range(8))
    assert min(time for _, _, time, _ in last) > max(time for _, _, time, _ in records[:-8]) + 60_000
