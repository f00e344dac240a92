"""State larger than memory, and state that must not grow: budgets, and time-to-live over a moving key domain."""

import random

import pytest

from penstock.common import Configuration, Time
from penstock.common.errors import InvalidProgramError
from penstock.core.state_ttl import StateTtlConfig
from penstock.datastream import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.pages import MemoryPageStore
from penstock.testing import ManualClock, MiniCluster

pytestmark = pytest.mark.exhaustive

BUDGET = 64 * 1024
PAGE = 8 * 1024


def value_of(key, text="x"):
    return key, f"{text}{key:09d}" * 100  # equal strings would be stored once for a page


def resident(backend):
    return sum(page.size for page in backend.pages.values())


@pytest.mark.parametrize("batch", [125, 2_000], ids=["batches within the budget", "batches beyond the budget"])
def test_a_hundred_times_the_budget_in_state(batch):
    store = MemoryPageStore()
    backend = KeyedStateBackend("op", "test", store, 128, page_bytes=PAGE, memory_budget=BUDGET)
    state = KeyedStateFactory(backend, lambda: 0).create(ValueStateDescriptor("state"))
    keys = 6_500
    most = 0
    for low in range(0, keys, batch):
        for key in range(low, min(low + batch, keys)):
            backend.set_current_key(key)
            state.update(value_of(key))
        backend.snapshot(0)
        assert resident(backend) <= BUDGET
    assert backend.directory.total_bytes > 100 * BUDGET
    visits = random.Random(1).choices(range(keys), k=1_500)
    for number, key in enumerate(visits):
        backend.set_current_key(key)
        assert state.value()[0] == key
        state.update(value_of(key, "y"))
        most = max(most, resident(backend)) if number % 50 == 0 else most
        if number % batch == batch - 1:
            backend.snapshot(0)
    backend.snapshot(0)
    assert most <= 2 * BUDGET + PAGE
    changed = set(visits)
    for key in (*visits[:300], *range(0, keys, 97)):
        backend.set_current_key(key)
        assert state.value() == value_of(key, "y" if key in changed else "x")


def test_the_backends_differ_in_what_stays_decoded():
    env = StreamExecutionEnvironment(executor=MiniCluster())
    assert env.job_settings(None).state_memory_budget is None
    assert env.set_state_backend(HashMapStateBackend()).job_settings(None).state_memory_budget is None
    rocksdb = env.set_state_backend(EmbeddedRocksDBStateBackend())
    assert rocksdb.job_settings(None).state_memory_budget == 64 * 1024 * 1024
    options = {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "3 mb"}
    env = StreamExecutionEnvironment(Configuration.from_dict(options), executor=MiniCluster())
    assert env.job_settings(None).state_memory_budget == 3 * 1024 * 1024
    options["state.backend.rocksdb.memory.fixed-per-slot"] = "much"
    with pytest.raises(
        InvalidProgramError, match="a memory size must be a number with a unit such as 64mb, not 'much'"
    ):
        StreamExecutionEnvironment(Configuration.from_dict(options))


class Passing(KeyedProcessFunction):
    """Keys come, are seen for a while, and never come again."""

    def open(self, runtime_context):
        def expiring(descriptor):
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(10)).build())
            return descriptor

        self.last = runtime_context.get_state(expiring(ValueStateDescriptor("last")))
        self.all = runtime_context.get_list_state(expiring(ListStateDescriptor("all")))
        self.map = runtime_context.get_map_state(expiring(MapStateDescriptor("map")))

    def process_element(self, value, ctx):
        self.last.update(value)
        self.all.add(value)
        self.map.put(value, "x" * 50)


def test_state_of_keys_that_never_come_again_goes_away():
    clock = ManualClock(0)
    cluster = MiniCluster(clock=clock, max_records=40)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    env.from_sequence(1, 24_000).key_by(lambda n: n // 5).process(Passing()).print()
    job = cluster.start(list(env.sinks), env.job_settings("job"))
    sizes, entries = [], []
    while job.run_batch() and not job.finished:
        clock.advance(200)  # 50 batches of 8 keys live
        (stage,) = [stage for stage in job.engine.stages.values() if stage._tasks]
        (backend,) = [
            operator.context.keyed_backend
            for task in stage._tasks.values()
            for operator in task.chain.operators
            if operator.context.keyed_backend is not None
        ]
        sizes.append(sum(len(blob) for blob in job.engine.channels[1, 0].store.blobs.values()))
        entries.append(len(backend.entries))
    half = len(sizes) // 2
    assert len(sizes) > 500
    assert max(sizes[half:]) <= 1.5 * max(sizes[100:half])
    assert max(entries[half:]) <= 1.5 * max(entries[100:half])
    assert max(entries) < 3_200  # of 4,800 keys, 400 live


@pytest.mark.parametrize("budget", [None, 8 * 1024], ids=["hashmap", "rocksdb"])
def test_expired_state_goes_though_nothing_touches_its_page_any_more(budget):
    store, clock = MemoryPageStore(), ManualClock(0)
    backend = KeyedStateBackend("op", "test", store, 128, page_bytes=1024, memory_budget=budget)

    def expiring(descriptor):
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(10)).build())
        return KeyedStateFactory(backend, clock).create(descriptor)

    value, elements = expiring(ValueStateDescriptor("value")), expiring(ListStateDescriptor("list"))
    for key in range(2_000):
        backend.set_current_key(key)
        value.update(key)
        elements.add(key)
    backend.snapshot(clock())
    full, pages = backend.directory.total_bytes, backend.directory.page_count
    clock.advance(5_000)
    backend.set_current_key(7)
    elements.add(8)
    for _ in range(pages):
        backend.snapshot(clock())
    assert backend.directory.total_bytes >= full  # nothing has expired
    clock.advance(5_000)
    for _ in range(pages):
        backend.snapshot(clock())
    assert backend.directory.total_bytes < full / 100
    assert sum(name.startswith("op/p") for name in store) == 1
    backend.set_current_key(7)
    assert (value.value(), list(elements.get())) == (None, [8])
    assert len(backend.entries) <= 2
