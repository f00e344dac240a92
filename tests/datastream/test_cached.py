"""Cached streams: a batch job keeps their records, later jobs read them."""

import gc
import pickle
from pathlib import Path

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.common.errors import PenstockError
from penstock.datastream import MapFunction, ProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.testing import MiniCluster

CALLS = []


@pytest.fixture(autouse=True)
def _clean():
    CALLS.clear()


def environment(mode="BATCH", parallelism=2):
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(parallelism)
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    return env


def square(value):
    CALLS.append(value)
    return value * value


@pytest.mark.parametrize("mode", ["BATCH", "AUTOMATIC"])
def test_a_second_job_reads_what_the_first_one_has_kept(mode):
    env = environment(mode)
    cached = env.from_collection([1, 2, 3]).map(square, Types.INT()).cache()
    assert sorted(cached.execute_and_collect()) == [1, 4, 9]
    assert sorted(cached.map(lambda n: -n).execute_and_collect()) == [-9, -4, -1]
    assert sorted(cached.execute_and_collect()) == [1, 4, 9]
    assert sorted(CALLS) == [1, 2, 3]
    assert cached.get_type() == Types.INT()


def test_a_streaming_job_keeps_nothing_and_computes_again():
    env = environment("STREAMING")
    cached = env.from_collection([1, 2]).map(square).cache()
    for _ in range(2):
        assert sorted(cached.execute_and_collect()) == [1, 4]
    assert sorted(CALLS) == [1, 1, 2, 2]


def test_it_is_kept_by_whichever_job_computes_it_first_as_a_part_of_something_else():
    env = environment()
    cached = env.from_collection([1, 2]).map(square).cache()
    assert list(env.from_collection(["other"]).execute_and_collect()) == ["other"]
    assert CALLS == []
    assert sorted(cached.union(env.from_collection([7])).map(lambda n: n + 1).execute_and_collect()) == [2, 5, 8]
    assert sorted(cached.execute_and_collect()) == [1, 4]
    assert len(CALLS) == 2


def test_after_invalidate_it_is_computed_and_kept_again():
    env = environment()
    cached = env.from_collection([1, 2]).map(square).cache()
    list(cached.execute_and_collect())
    cached.invalidate()
    cached.invalidate()
    for _ in range(2):
        assert sorted(cached.execute_and_collect()) == [1, 4]
    assert len(CALLS) == 4


def test_a_job_that_fails_keeps_nothing():
    env = environment()
    cached = env.from_collection([1, 2]).map(square).cache()
    with pytest.raises(PenstockError):
        list(cached.map(lambda n: 1 / (n - 4)).execute_and_collect())
    CALLS.clear()
    assert sorted(cached.execute_and_collect()) == [1, 4]
    assert sorted(CALLS) == [1, 2]


class Timestamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


class Changes(MapFunction):
    def map(self, value):
        value.append("changed")
        return len(value)


def test_timestamps_are_kept_and_records_cannot_be_changed_by_who_reads_them():
    env = environment(parallelism=1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[0])
    cached = env.from_collection([[5], [7]]).assign_timestamps_and_watermarks(strategy).cache()
    for _ in range(2):
        assert list(cached.process(Timestamp()).execute_and_collect()) == [([5], 5), ([7], 7)]
        assert list(cached.map(Changes()).execute_and_collect()) == [2, 2]


def test_a_stream_without_records_is_kept_too():
    env = environment()
    cached = env.from_collection([1, 2]).map(square).filter(lambda n: n > 100).cache()
    for _ in range(2):
        assert list(cached.execute_and_collect()) == []
    assert len(CALLS) == 2


def test_what_is_kept_goes_with_the_environment():
    env = environment()
    cached = env.from_collection([1]).cache()
    list(cached.execute_and_collect())
    directory = Path(cached.directory)
    assert pickle.loads((directory / "records").read_bytes())
    del env, cached
    gc.collect()
    assert not directory.exists()
