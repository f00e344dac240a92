"""Watermark alignment on Spark: what batches were planned to read is in the offsets that Spark logs."""

import json

import pytest

from penstock.common import Configuration, Duration, Time, WatermarkStrategy
from penstock.connectors import NumberSequenceSource
from penstock.datastream import ProcessJoinFunction, StreamExecutionEnvironment

pytestmark = pytest.mark.spark

DRIFT, FAST_STEP, SLOW_STEP, LENGTH = 2_000, 20, 4, 24_000
RECORDS = 300  # of each source in a batch


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def joined(spark, directory, *, aligned):
    """The pairs of a fast and a slow source with the same timestamps; and what was known when batches were planned."""
    configuration = Configuration()
    configuration.set_string("penstock.batch.max-records", str(2 * RECORDS))
    configuration.set_string("execution.checkpointing.dir", directory.as_uri())
    configuration.set_string("execution.checkpointing.num-retained", "100")
    env = StreamExecutionEnvironment(configuration, spark=spark).set_parallelism(2)

    def source(step, name):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n: n * step)
        if aligned:
            strategy = strategy.with_watermark_alignment("join", Duration.of_millis(DRIFT))
        numbers = env.from_source(NumberSequenceSource(0, LENGTH // step - 1), strategy, name).set_parallelism(1)
        return numbers.map(lambda n: n * step).key_by(lambda at: at % 1_000)

    pairs = (
        source(FAST_STEP, "fast")
        .interval_join(source(SLOW_STEP, "slow"))
        .between(Time.milliseconds(0), Time.milliseconds(0))
        .process(Pair())
    )
    found = sorted(pairs.execute_and_collect())
    offsets = []
    for path in sorted((directory / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)):
        offsets += [json.loads(line) for line in path.read_text().splitlines() if '"splits"' in line]
    return found, offsets


def test_two_sources_stay_together_and_the_result_is_the_same(spark, tmp_path):
    pairs, offsets = joined(spark, tmp_path / "aligned", aligned=True)
    assert pairs == [(at, at) for at in range(0, LENGTH, FAST_STEP)]
    clocks = [
        [clock for source in offset.get("alignment", {}).values() for clock in source.values()] for offset in offsets
    ]
    distances = [max(known)[0] - min(known)[0] for known in clocks if len(known) == 2]
    assert len(distances) > 10
    assert 0 < max(distances) <= DRIFT + RECORDS * FAST_STEP
    assert any(paused for known in clocks for _, paused in known)


def test_offsets_of_jobs_without_alignment_have_no_watermarks(spark, tmp_path):
    pairs, offsets = joined(spark, tmp_path / "plain", aligned=False)
    assert pairs == [(at, at) for at in range(0, LENGTH, FAST_STEP)]
    assert offsets
    assert not any("alignment" in offset for offset in offsets)
