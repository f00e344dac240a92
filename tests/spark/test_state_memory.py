"""State larger than its memory budget, and state of keys that never come again, on Spark."""

import os
import time

import pytest
from benchmarks.jobs.keyed_values import SPLITS, Gate, GatedSource

from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.connectors import DiscardingSink
from penstock.core.state_ttl import StateTtlConfig
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
VALUE_BYTES = 2_000
PATIENCE = 200


class Feed:
    """A job that gets exactly the records it is given."""

    def __init__(self, spark, function, key, **settings):
        self.gate = f"{function.__class__.__name__} {os.urandom(4).hex()}"
        configuration = Configuration.from_dict({name.replace("_", "."): value for name, value in settings.items()})
        env = StreamExecutionEnvironment(configuration, spark=spark).set_parallelism(2)
        numbers = env.from_source(GatedSource(self.gate), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        numbers.key_by(key).process(function).uid("state").sink_to(DiscardingSink())
        self.client = env.execute_async(self.gate)
        self.result = self.client.get_job_execution_result()

    @property
    def progress(self):
        return self.client.progress

    def give(self, records):
        wanted = self.progress.source_records + records
        Gate.opened[self.gate] = Gate.opened.get(self.gate, 0) + records // SPLITS
        self.wait_for(lambda: self.progress.source_records >= wanted)

    def wait_for(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.result.done():
                self.result.result()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self):
        self.client.cancel().result(PATIENCE)


class LargeState(KeyedProcessFunction):
    """Keeps some kilobytes for every key, looks whether they are what they were, and how much is in memory."""

    def __init__(self, keys, budget):
        self.keys, self.budget = keys, budget

    def open(self, runtime_context):
        self.state = runtime_context.get_state(
            ValueStateDescriptor("large", Types.TUPLE([Types.LONG(), Types.STRING()]))
        )
        self.backend = self.state._backend
        self.most = 0
        runtime_context.get_metrics_group().gauge("resident.max", lambda: self.most)

    def process_element(self, value, ctx):
        key, round_number = value % self.keys, value // self.keys
        expected = None if round_number == 0 else (round_number - 1, text_of(key, round_number - 1))
        if self.state.value() != expected:
            raise ValueError(f"key {key} has {str(self.state.value())[:50]} in round {round_number}")
        self.state.update((round_number, text_of(key, round_number)))
        resident = sum(page.size for page in self.backend.pages.values())
        self.most = max(self.most, resident)


def text_of(key, round_number):
    return f"{key:09d}{round_number}" * (VALUE_BYTES // 10)


@pytest.mark.parametrize("budget_kb", [64, pytest.param(2_048, marks=pytest.mark.slow)], ids=["64 KB", "2 MB"])
def test_a_hundred_times_the_budget_in_state(spark, budget_kb):
    keys = 2 * 100 * budget_kb * 1024 // VALUE_BYTES  # two subtasks with a budget each
    keys += keys % SPLITS
    settings = {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": f"{budget_kb}kb"}
    feed = Feed(spark, LargeState(keys, budget_kb * 1024), lambda value: value % keys, **settings)
    for _ in range(2):  # all keys are new, and then all are there
        feed.give(keys)
    assert feed.progress.state_bytes > 2 * 100 * budget_kb * 1024
    resident = next(value for name, value in feed.progress.metrics.items() if name.endswith("resident.max"))
    feed.end()
    assert 0 < resident <= 2 * budget_kb * 1024 + 512 * 1024  # twice the budget, a page, and keys that are new


class Passing(KeyedProcessFunction):
    """Keys come once and never again."""

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("last", Types.STRING())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(200)).build())
        self.state = runtime_context.get_state(descriptor)
        self.entries = self.state._backend.entries  # how many keys are in memory: a test of memory
        runtime_context.get_metrics_group().gauge("entries", lambda: len(self.entries))

    def process_element(self, value, ctx):
        self.state.update("x" * 100)


def test_state_of_a_moving_key_domain_stays_small(spark):
    feed = Feed(spark, Passing(), lambda value: value)
    keys = 0
    for _ in range(10):
        feed.give(1_000)
        keys += 1_000
    # However fast this machine is: when all keys are older than that, batches that touch others sweep them.

    def entries():
        return next(value for name, value in feed.progress.metrics.items() if name.endswith("entries"))

    feed.wait_for(lambda: feed.give(2) or (feed.progress.state_bytes < keys * 100 / 20 and entries() < keys / 20))
    feed.end()
