"""Patterns over keys that come and go: nothing is kept for a key whose runs have ended."""

import gc
import sys
import time

import pytest

from penstock.cep import CEP, AfterMatchSkipStrategy, Pattern
from penstock.common import WatermarkStrategy
from penstock.connectors import DataGeneratorSource, DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.job import batch_history, checkpoint_statistics
from penstock.testing import ManualClock, MiniCluster

BATCH = 50
"""Records of a batch; one for each millisecond."""

TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: record[1])


def moving(number):
    """A key is seen five times, and never again."""
    return f"key {number // 5:06}", 1_000_000 + number


def nth(*numbers):
    return lambda record: record[1] % 5 in numbers


def past_the_last_event():
    first = Pattern.begin("first", AfterMatchSkipStrategy.skip_past_last_event()).where(nth(0))
    return first.followed_by_any("second").where(nth(1, 2, 3)).within(20)


def loop():
    start = Pattern.begin("loop").where(nth(0, 1, 2)).one_or_more().allow_combinations()
    return start.followed_by("never").where(nth(7)).within(20)


def trailing():
    return Pattern.begin("first").where(nth(0)).not_followed_by("never").where(nth(7)).within(20)


PATTERNS = {
    "strict, without a limit": lambda: Pattern.begin("first").where(nth(0)).next("second").next("third"),
    "any, past the last event": past_the_last_event,
    "loop with combinations": loop,
    "trailing not_followed_by": trailing,
}


def alive(job):
    """Python's memory blocks, and what the job keeps between batches: pages, their bytes, bytes of small states."""
    gc.collect()
    states = job.engine.channels.values()
    pages = [blob for state in states for blob in state.store.blobs.values()]
    return sys.getallocatedblocks(), len(pages), sum(map(len, pages)), sum(len(state.snapshot) for state in states)


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_over_a_moving_key_domain_nothing_grows(pattern, monkeypatch):
    monkeypatch.setattr(batch_history, "_KEPT", 10)  # histories have a bound, and reach it before the first look
    monkeypatch.setattr(batch_history, "_SECONDS", 10)
    monkeypatch.setattr(checkpoint_statistics, "_FINDABLE", 10)
    monkeypatch.setattr(checkpoint_statistics, "_SECONDS", 10)
    clock = ManualClock()
    cluster = MiniCluster(clock=clock, max_records=BATCH)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    keyed = env.from_source(DataGeneratorSource(moving), TIMED, "numbers").key_by(lambda record: record[0])
    CEP.pattern(keyed, pattern()).select(len).sink_to(DiscardingSink())
    job = cluster.start(list(env.sinks), env.job_settings(None))
    job.progress.recent.extend((time.time(), 0, 0.0) for _ in range(job.progress.recent.maxlen))  # has a bound
    _run_batches(job, clock, 60)
    before = alive(job)
    _run_batches(job, clock, 80)
    after = alive(job)
    job.close()
    blocks, pages, *size = (late - early for early, late in zip(before, after, strict=True))
    keys = 80 * BATCH // 5
    assert blocks < keys / 2  # what is kept for a key that is gone would be one block at least
    assert pages <= 0
    assert max(size) < 100


def _run_batches(job, clock, count):
    for _ in range(count):
        clock.advance(BATCH)
        assert job.run_batch()
