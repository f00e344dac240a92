"""Young pages: a batch with many new keys writes those keys, not all pages that they are scattered over."""

import random

import pytest

from penstock.common import Time, Types
from penstock.core.state import ListStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.pages import EVENT_TIMERS, MemoryPageStore
from penstock.runtime.state.snapshots import OperatorSnapshot, StageSnapshot, TaskSnapshot
from penstock.runtime.timers.internal_timer_service import InternalTimerService

pytestmark = pytest.mark.exhaustive

PAGE_BYTES = 1_000


class Task:
    """A backend with a value and a list for each key; `restart` continues from the store."""

    def __init__(self, budget=None, ttl=None):
        self.store, self.budget, self.ttl, self.now = MemoryPageStore(), budget, ttl, 0
        self.start(None)

    def start(self, directory):
        self.backend = KeyedStateBackend("op", "op", self.store, 128, directory, PAGE_BYTES, self.budget)
        states = KeyedStateFactory(self.backend, lambda: self.now)
        value = ValueStateDescriptor("value", Types.STRING())
        if self.ttl is not None:
            value.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(self.ttl)).build())
        self.value = states.create(value)
        self.elements = states.create(ListStateDescriptor("list", Types.INT()))
        self.fired = []
        self.timers = InternalTimerService(
            self.backend, lambda: self.now, lambda time, key, _: self.fired.append((time, key)), print
        )

    def restart(self):
        stage = StageSnapshot(tasks={0: TaskSnapshot(operators={"op": OperatorSnapshot(self.backend.directory)})})
        self.start(StageSnapshot.decode(stage.encode()).tasks[0].operators["op"].directory)

    def put(self, key, value):
        self.backend.set_current_key(key)
        self.value.update(value)

    def get(self, key):
        self.backend.set_current_key(key)
        return self.value.value()

    def commit(self):
        """Returns how many bytes were written."""
        self.backend.snapshot(self.now)
        written, self.backend.written_bytes = self.backend.written_bytes, 0
        return written

    def add(self, keys):
        for key in keys:
            self.put(f"key-{key:06}", f"value {key}")
        return self.commit()

    def contents(self):
        return {key: values[0] for key, _, _, *values in self.backend.scan(self.now) if values[0] is not None}

    @property
    def young(self):
        return self.backend.directory.young


def filled(**options):
    task = Task(**options)
    task.add(range(5_000))
    task.add(range(5_000, 5_200))
    return task


def test_many_new_keys_are_written_without_the_state_that_is_there():
    task = filled()
    assert task.young
    assert task.add(range(6_000, 6_200)) < task.backend.directory.total_bytes / 10


def test_over_time_each_key_is_written_a_few_times_however_many_there_are():
    task = Task()
    written = sum(task.add(range(start, start + 200)) for start in range(0, 20_000, 200))
    assert written < 8 * task.backend.directory.total_bytes
    assert len(task.contents()) == 20_000


def test_few_new_keys_and_those_of_a_small_state_go_to_their_pages_at_once():
    task = Task()
    task.add(range(100))
    task.add(range(100, 200))
    task.add(range(200, 5_000))
    task.add(range(5_000, 5_010))
    assert not task.young


def test_young_keys_are_found_after_a_restart():
    task = filled()
    task.restart()
    assert task.get("key-005100") == "value 5100"
    assert task.get("key-000001") == "value 1"
    assert task.backend.peek("key-005101", 3, 0) == "value 5101"
    assert len(task.contents()) == len(list(task.backend.keys())) == 5_200


def test_a_change_of_a_young_key_writes_its_page_and_no_other():
    task = filled()
    task.put("key-005100", "changed")
    assert 0 < task.commit() < 2 * PAGE_BYTES
    task.restart()
    assert task.contents()["key-005100"] == "changed"


def test_a_young_page_whose_keys_are_all_gone_ends():
    task = filled()
    for key in range(5_000, 5_200):
        task.put(f"key-{key:06}", None)
    task.commit()
    assert not task.young
    assert not [name for name in task.store if "/y" in name]
    assert len(task.contents()) == 5_000


def test_what_expires_in_young_pages_that_are_never_used_again_is_removed():
    task = filled(ttl=10)
    task.now = 100
    for _ in range(4 * task.backend.directory.page_count):
        task.commit()
    assert task.backend.directory.total_bytes == 0
    assert not task.young


def test_keys_with_timers_are_where_the_index_of_timers_finds_them():
    task = filled()
    task.backend.set_current_key("key-005100")
    task.timers.register_event_time_timer(50)
    for key in range(7_000, 7_200):
        task.put(f"key-{key:06}", "new")
        task.timers.register_event_time_timer(60)
    task.commit()
    assert all(entry[EVENT_TIMERS] is None for page in young_pages(task) for entry in page.entries.values())
    task.restart()
    task.timers.advance_watermark(100)
    assert task.fired[0] == (50, "key-005100")
    assert len(task.fired) == 201


def young_pages(task):
    return [page for page in task.backend.pages.values() if page.index > 1 << 30]


def test_large_collections_of_young_keys_move_with_them():
    task = filled()
    task.backend.set_current_key("key-005100")
    task.elements.add_all(list(range(5_000)))
    task.commit()
    task.restart()
    task.add(range(10_000, 14_000))
    task.commit()
    task.restart()
    task.backend.set_current_key("key-005100")
    assert list(task.elements.get()) == list(range(5_000))
    task.elements.clear()
    task.commit()
    assert not [name for name in task.store if "/c" in name]


@pytest.mark.parametrize("budget", [None, 60_000])
@pytest.mark.parametrize("seed", range(4))
def test_pages_old_and_young_behave_like_a_dict(seed, budget):
    chance, task, model, ever_young = random.Random(seed), Task(budget), {}, False
    for _ in range(60):
        kind = chance.random()
        if kind < 0.6:
            changes = {f"key-{chance.randrange(1 << 30)}": "x" * chance.randrange(40) for _ in range(200)}
        else:
            changes = {key: chance.choice([None, "changed"]) for key in chance.sample(sorted(model), len(model) // 9)}
        for key, value in changes.items():
            task.put(key, value)
            task.get(f"absent-{chance.randrange(1 << 30)}")
        task.commit()
        model = {key: value for key, value in (model | changes).items() if value is not None}
        ever_young = ever_young or bool(task.young)
        if chance.random() < 0.2:
            task.restart()
            assert task.contents() == model
    assert ever_young
    assert task.contents() == model
    assert task.backend.directory.total_bytes == sum(
        len(task.store.get(name)) for name in task.store if "/t" not in name
    )
