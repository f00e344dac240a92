"""State of keys that have grown large: what a batch writes follows what it touches, not what the key has."""

import copy
import pickle

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.counting_store import CountingStore

from penstock.common import Duration
from penstock.core.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.chunked_map import ChunkedMap
from penstock.runtime.state.chunks import ChunkedList
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.pages import FIRST_SLOT
from penstock.runtime.state.snapshots import OperatorSnapshot, StageSnapshot

pytestmark = pytest.mark.exhaustive

TTL = 1_000


class Task:
    """The state of one operator that can be forgotten and read again."""

    def __init__(self, descriptors, *, namespaced=False, page_bytes=64, memory_budget=None, store=None):
        self.descriptors = descriptors
        self.namespaced = namespaced
        self.page_bytes = page_bytes
        self.memory_budget = memory_budget
        self.store = CountingStore() if store is None else store
        self.now = 0
        self.directory = None
        self.open()

    def open(self):
        self.backend = KeyedStateBackend(
            "op", "op", self.store, 128, self.directory, self.page_bytes, self.memory_budget
        )
        factory = KeyedStateFactory(self.backend, lambda: self.now)
        self.states = [factory.create(each, namespaced=self.namespaced) for each in self.descriptors]

    def snapshot(self):
        self.directory = pickle.loads(pickle.dumps(self.backend.snapshot(self.now)))

    def restart(self):
        self.snapshot()
        self.open()

    def stored(self, key, slot=0):
        """What a key has in a slot, as it is in memory."""
        self.backend.set_current_key(key)
        return self.backend.entry[FIRST_SLOT + slot]

    def chunk_names(self):
        return {name for name in self.store if name.startswith("op/c")}

    def live_chunks(self):
        """The chunks that pages know of."""
        numbers = set()
        for index in range(self.backend.directory.page_count):
            numbers.update(self.backend._peek(index).chunks or ())
        return {f"op/c{number}" for number in numbers}


def with_ttl(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_millis(TTL)).build())
    return descriptor


elements = st.one_of(st.integers(), st.text(max_size=60), st.lists(st.integers(), max_size=3))
keys = st.sampled_from(["a", "b", "c", 1, None])


class AnyUseOfLargeState(RuleBasedStateMachine):
    """List, map and value state of some keys, beside a model in dicts."""

    @initialize(budget=st.sampled_from([None, 300, 5_000]))
    def begin(self, budget):
        descriptors = [ListStateDescriptor("list"), MapStateDescriptor("map"), ValueStateDescriptor("value")]
        self.task = Task(descriptors, memory_budget=budget)
        self.model = {}

    def at(self, key):
        self.task.backend.set_current_key(key)
        return (*self.task.states, self.model.setdefault(key, [[], {}, None]))

    @rule(key=keys, values=st.lists(elements, min_size=1, max_size=40))
    def add_to_list(self, key, values):
        values_state, _, _, model = self.at(key)
        for value in values:
            values_state.add(copy.deepcopy(value))
        model[0].extend(copy.deepcopy(values))

    @rule(key=keys, values=st.lists(elements, max_size=40))
    def replace_list(self, key, values):
        values_state, _, _, model = self.at(key)
        values_state.update(copy.deepcopy(values))
        model[0] = copy.deepcopy(values)

    @rule(key=keys)
    def change_elements_in_place(self, key):
        values_state, entries, _, model = self.at(key)
        for found in (values_state.get(), iter(model[0]), entries.values(), iter(model[1].values())):
            for value in found:
                if isinstance(value, list):
                    value.append(9)

    @rule(key=keys, values=st.dictionaries(st.integers(0, 200), elements, max_size=40))
    def put_into_map(self, key, values):
        _, entries, _, model = self.at(key)
        entries.put_all(copy.deepcopy(values))
        model[1].update(copy.deepcopy(values))

    @rule(key=keys, gone=st.lists(st.integers(0, 200), max_size=40))
    def remove_from_map(self, key, gone):
        _, entries, _, model = self.at(key)
        for name in gone:
            entries.remove(name)
            model[1].pop(name, None)

    @rule(key=keys, value=elements)
    def set_value(self, key, value):
        _, _, state, model = self.at(key)
        state.update(copy.deepcopy(value))
        model[2] = copy.deepcopy(value)

    @rule(key=keys)
    def clear(self, key):
        *states, model = self.at(key)
        for state in states:
            state.clear()
        model[:] = [[], {}, None]

    @rule()
    def commit(self):
        self.task.snapshot()
        assert self.task.chunk_names() == self.task.live_chunks()  # nothing is left behind

    @rule()
    def crash(self):
        self.task.restart()
        assert self.task.chunk_names() == self.task.live_chunks()

    @rule()
    def look_at_all(self):
        found = {
            key: (list(held or ()), dict(entries or {}), value) for key, _, _, held, entries, value in self._scan()
        }
        wanted = {key: tuple(state) for key, state in self.model.items() if state != [[], {}, None]}
        assert found == wanted

    def _scan(self):
        self.task.snapshot()
        return self.task.backend.scan(0)

    @rule()
    def states_are_those_of_the_model(self):  # not after every step: what was read is stored otherwise
        for key in self.model:
            values, entries, value, model = self.at(key)
            found = (list(values.get()), list(entries.items()), value.value())
            assert found == (model[0], list(model[1].items()), model[2])
        self.task.backend.clear_current_key()

    def teardown(self):
        if hasattr(self, "task"):
            self.task.restart()
            self.states_are_those_of_the_model()


TestAnyUseOfLargeState = AnyUseOfLargeState.TestCase
TestAnyUseOfLargeState.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def filled(descriptor, *, namespaced=False, count=5_000):
    """A task whose only key has a large collection, just written."""
    task = Task([descriptor], namespaced=namespaced, page_bytes=300)
    task.backend.set_current_key("k")
    (state,) = task.states
    if namespaced:
        state.cell.namespace = "w"
    if isinstance(descriptor, ListStateDescriptor):
        state.add_all([[number] for number in range(count)])
    else:
        state.put_all({number: [number] for number in range(count)})
    task.snapshot()
    return task, task.store.take_written()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize("namespaced", [False, True])
def test_adding_to_a_large_list_writes_what_is_added(restarted, ttl, namespaced):  # rule G07
    descriptor = ListStateDescriptor("held")
    task, everything = filled(with_ttl(descriptor) if ttl else descriptor, namespaced=namespaced)
    for number in range(20):
        if restarted:
            task.restart()
        task.backend.set_current_key("k")
        (state,) = task.states
        if namespaced:
            state.cell.namespace = "w"
        state.add(["new", number])
        task.snapshot()
    assert task.store.take_written() / 20 < everything / 20
    task.backend.set_current_key("k")
    assert list(state.get())[-2:] == [["new", 18], ["new", 19]]


@pytest.mark.parametrize("ttl", [False, True])
def test_putting_into_a_large_map_writes_what_is_near_it(ttl):  # rule G08
    descriptor = MapStateDescriptor("held")
    task, everything = filled(with_ttl(descriptor) if ttl else descriptor)
    (state,) = task.states
    for number in range(20):
        task.backend.set_current_key("k")
        state.put(number * 250, ["changed"])
        task.snapshot()
    assert task.store.take_written() / 20 < everything / 20
    task.restart()
    task.backend.set_current_key("k")
    (state,) = task.states
    assert [state.get(number * 250) for number in range(20)] == [["changed"]] * 20
    assert (state.get(1), len(list(state.keys()))) == ([1], 5_000)


def test_a_key_beside_a_large_one_does_not_write_it():
    task, everything = filled(ListStateDescriptor("held"))
    (state,) = task.states
    for number in range(50):
        task.backend.set_current_key(number)
        state.add([number])
    task.snapshot()
    assert task.store.take_written() < everything / 5


@pytest.mark.parametrize("namespaced", [False, True])
def test_elements_that_expire_leave_the_store_chunk_by_chunk(namespaced):
    task, _ = filled(with_ttl(ListStateDescriptor("held")), namespaced=namespaced, count=0)
    (state,) = task.states
    most = 0
    for number in range(100):
        task.now = number * 100  # what is older than ten rounds has expired
        task.backend.set_current_key("k")
        state.add_all([[number, other] for other in range(500)])
        task.snapshot()
        most = max(most, sum(map(len, task.store.blobs.values())))
    assert most < 40 * 500 * 20
    assert task.store.take_written() / 100 < most / 3
    task.backend.set_current_key("k")
    assert [first for first, _ in state.get()][::500] == list(range(90, 100))


def test_entries_that_expire_leave_the_store_chunk_by_chunk():
    task, _ = filled(with_ttl(MapStateDescriptor("held")), count=0)
    (state,) = task.states
    most = 0
    for number in range(100):
        task.now = number * 100
        task.backend.set_current_key("k")
        state.put_all({(number, other): [other] for other in range(100)})
        task.snapshot()
        most = max(most, sum(map(len, task.store.blobs.values())))
    assert most < 40 * 300 * 30
    assert task.store.take_written() / 100 < most / 3
    task.backend.set_current_key("k")
    assert {key[0] for key, _ in state.items()} == set(range(90, 100))
    assert task.chunk_names() == task.live_chunks()


@pytest.mark.parametrize("namespaced", [False, True])
def test_elements_that_expire_leave_the_store_though_nobody_touches_their_key(namespaced):
    task, everything = filled(with_ttl(ListStateDescriptor("held")), namespaced=namespaced)
    task.now = TTL - 1
    task.backend.set_current_key("k")
    task.states[0].add(["last"])
    task.snapshot()
    task.now = TTL
    for _ in range(task.backend.directory.page_count):
        task.snapshot()
    assert sum(map(len, task.store.blobs.values())) < everything / 20
    assert task.chunk_names() == task.live_chunks()
    task.backend.set_current_key("k")
    assert list(task.states[0].get()) == [["last"]]


def test_a_large_list_that_is_cleared_leaves_nothing():
    task, _ = filled(ListStateDescriptor("held"))
    assert task.chunk_names()
    task.backend.set_current_key("k")
    task.states[0].clear()
    task.snapshot()
    assert list(task.store) == []


def test_what_users_keep_in_value_state_stays_what_it_is():
    task = Task([ValueStateDescriptor("v")])
    task.backend.set_current_key("k")
    task.states[0].update([[number] for number in range(5_000)])
    task.snapshot()
    task.backend.set_current_key("k")
    task.states[0].value()[7].append("changed")
    task.restart()
    task.backend.set_current_key("k")
    assert type(task.states[0].value()) is list
    assert task.states[0].value()[7] == [7, "changed"]


@pytest.mark.parametrize(
    ("descriptor", "chunked"), [(ListStateDescriptor("held"), ChunkedList), (MapStateDescriptor("held"), ChunkedMap)]
)
def test_pages_with_chunks_move_when_the_table_grows(descriptor, chunked):
    task, _ = filled(descriptor)
    assert isinstance(task.stored("k"), chunked)
    value_of = (lambda state: list(state.get())) if chunked is ChunkedList else (lambda state: list(state.items()))
    before = value_of(task.states[0])
    for start in range(0, 2_000, 500):
        for number in range(start, start + 500):
            task.backend.set_current_key(number)
            task.states[0].put_all({"x": "y" * 100}) if chunked is ChunkedMap else task.states[0].add("y" * 100)
        task.snapshot()
        assert task.chunk_names() == task.live_chunks()
    task.restart()
    assert task.backend.directory.page_count > 200
    assert isinstance(task.stored("k"), chunked)
    assert value_of(task.states[0]) == before


def test_a_checkpoint_from_before_there_were_chunks_is_continued():
    task = Task([ListStateDescriptor("held")])
    task.backend.set_current_key("k")
    task.states[0].add_all(list(range(3)))
    task.snapshot()
    del task.directory.next_chunk  # as it was written then
    written = pickle.dumps({0: (None, {"op": OperatorSnapshot(task.directory)})})
    task.directory = StageSnapshot.decode(written).tasks[0].operators["op"].directory
    task.open()
    task.backend.set_current_key("k")
    task.states[0].add_all(["x" * 100] * 500)
    task.restart()
    task.backend.set_current_key("k")
    assert list(task.states[0].get()) == [0, 1, 2, *["x" * 100] * 500]
    assert task.chunk_names()
