"""The keyed state backend: pages that grow, are written, forgotten and read again, against a plain dict."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.errors import InvalidProgramError, StateAccessError
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.runtime.state.backend import NO_KEY, KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.pages import FIRST_SLOT, MemoryPageStore, PageDirectory
from penstock.runtime.timers.internal_timer_service import InternalTimerService

KEYS = st.one_of(st.integers(0, 40), st.text("ab", max_size=3), st.tuples(st.integers(0, 3), st.none()))
TIMES = st.integers(0, 60)
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 2), st.text("xyz", max_size=40)),
    st.tuples(st.just("clear"), KEYS, st.integers(0, 2)),
    st.tuples(st.sampled_from(["event", "processing", "no event", "no processing"]), KEYS, TIMES),
    st.tuples(st.just("watermark"), TIMES),
    st.tuples(st.just("clock"), TIMES),
    st.just(("look",)),
    st.just(("write",)),
    st.just(("restore",)),
)


class NotingStore(MemoryPageStore):
    """Notes what is read and written."""

    def __init__(self, blobs=None):
        super().__init__(blobs)
        self.read, self.written = [], []

    def get(self, page_id):
        self.read.append(page_id)
        return super().get(page_id)

    def put(self, page_id, blob):
        self.written.append(page_id)
        super().put(page_id, blob)


class Pages:
    """The real thing: a backend with timers over a page store."""

    def __init__(self, page_bytes, budget, blobs=None, directory=None):
        self.options = (page_bytes, budget)
        self.now = 0
        self.fired = []
        self.store = NotingStore(blobs)
        self.backend = KeyedStateBackend("op", "test", self.store, 128, directory, page_bytes, budget)
        self.timers = InternalTimerService(self.backend, lambda: self.now, self._on("event"), self._on("processing"))
        self.slots = [self.backend.register(f"state {number}", "value state") for number in range(3)]

    def _on(self, domain):
        return lambda timestamp, key, namespace: self.fired.append((domain, timestamp, key))

    def write(self):
        return self.backend.snapshot(self.now)

    def restored(self):
        directory = pickle.loads(pickle.dumps(self.write()))
        again = Pages(*self.options, blobs=dict(self.store.blobs), directory=directory)
        again.now = self.now
        return again

    def value(self, key, slot):
        self.backend.set_current_key(key)
        return self.backend.entry[self.slots[slot]]

    def put(self, key, slot, value):
        self.backend.set_current_key(key)
        self.backend.entry[self.slots[slot]] = value
        self.backend.entry[0].dirty = True

    def timer(self, action, key, timestamp):
        self.backend.set_current_key(key)
        method = {
            "event": self.timers.register_event_time_timer,
            "processing": self.timers.register_processing_time_timer,
            "no event": self.timers.delete_event_time_timer,
            "no processing": self.timers.delete_processing_time_timer,
        }[action]
        method(timestamp)

    def take_fired(self):
        fired, self.fired = self.fired, []
        return fired


class Model:
    def __init__(self):
        self.values = {}
        self.timers = {"event": set(), "processing": set()}

    def fire(self, domain, limit):
        due = {timer for timer in self.timers[domain] if timer[0] <= limit}
        self.timers[domain] -= due
        return due


def check_fired(pages, model, domain, limit):
    fired = pages.take_fired()
    assert {(timestamp, key) for _, timestamp, key in fired} == model.fire(domain, limit)
    assert len(fired) == len(set(fired))
    assert [timestamp for _, timestamp, _ in fired] == sorted(timestamp for _, timestamp, _ in fired)
    assert {d for d, _, _ in fired} <= {domain}


@settings(max_examples=2 * settings.default.max_examples)
@given(
    steps=st.lists(STEPS, max_size=120),
    page_bytes=st.sampled_from([40, 200, 5000]),
    budget=st.sampled_from([None, 0, 300]),
)
def test_pages_behave_like_a_dict_whatever_is_written_forgotten_and_restored(steps, page_bytes, budget):
    pages, model = Pages(page_bytes, budget), Model()
    for step in steps:
        match step:
            case ("put", key, slot, value):
                pages.put(key, slot, value)
                model.values[key, slot] = value
            case ("clear", key, slot):
                pages.put(key, slot, None)
                model.values.pop((key, slot), None)
            case ("watermark", time):
                pages.timers.advance_watermark(time)
                check_fired(pages, model, "event", time)
            case ("clock", time):
                pages.now = max(pages.now, time)
                pages.timers.advance_processing_time(pages.now)
                check_fired(pages, model, "processing", pages.now)
            case ("look",):
                for (key, slot), value in model.values.items():
                    assert pages.value(key, slot) == value
                assert pages.value("never seen", 0) is None
            case ("write",):
                pages.write()
            case ("restore",):
                pages = pages.restored()
            case (action, key, time):
                pages.timer(action, key, time)
                domain = action.removeprefix("no ")
                (model.timers[domain].discard if action.startswith("no ") else model.timers[domain].add)((time, key))
        earliest = min((time for time, _ in model.timers["processing"]), default=None)
        told = pages.timers.next_processing_time()
        assert told is None if earliest is None else told is not None
        assert earliest is None or told <= earliest
    pages = pages.restored()
    assert {key for key, _ in model.values} == set(pages.backend.keys())
    for slot in range(3):
        expected = {key: value for (key, s), value in model.values.items() if s == slot}
        assert {key: pages.value(key, slot) for key in list(pages.backend.keys(slot))} == expected
    pages.timers.advance_watermark(1000)
    check_fired(pages, model, "event", 1000)
    pages.timers.advance_processing_time(1000)
    check_fired(pages, model, "processing", 1000)


@given(st.lists(st.tuples(st.integers(0, 300), st.text("abc", max_size=10)), max_size=300))
def test_nothing_is_left_in_the_store_when_everything_is_cleared(entries):
    pages = Pages(60, None)
    for key, value in entries:
        pages.put(key, 0, value)
        pages.timer("event", key, len(value))
    pages = pages.restored()
    pages.timers.advance_watermark(100)
    for key, _ in entries:
        pages.put(key, 0, None)
    pages.write()
    assert pages.store.blobs == {}
    assert pages.backend.directory.total_bytes == 0
    assert pages.backend.entries == {}


def test_pages_split_as_state_grows_and_stay_near_their_size():
    pages = Pages(1000, None)
    for number in range(5000):
        pages.put(number, 0, "x" * 20)
        if number % 500 == 0:
            pages.write()
    pages.write()
    sizes = [len(blob) for name, blob in pages.store.blobs.items() if "/p" in name]
    assert len(sizes) > 20
    assert sum(sizes) / len(sizes) < 2000
    assert pages.backend.directory.total_bytes == sum(sizes)


def test_only_pages_that_changed_are_written():
    pages = Pages(500, None)
    for number in range(1000):
        pages.put(number, 0, "x" * 20)
    pages = pages.restored().restored()
    pages.value(3, 0)  # looking is not a change
    pages.put(7, 0, "y")
    pages.write()
    assert len(pages.store.written) == 1


def test_only_pages_that_are_touched_are_read():
    pages = Pages(500, None)
    for number in range(1000):
        pages.put(number, 0, "x" * 20)
    pages = pages.restored()
    pages.store.read.clear()
    assert pages.value(3, 0) == "x" * 20
    assert len(pages.store.read) == 1


def test_keys_that_were_only_looked_at_leave_no_trace():
    pages = Pages(500, None)
    for number in range(100):
        assert pages.value(number, 0) is None
    pages.write()
    assert pages.backend.entries == {}
    assert pages.store.blobs == {}


def test_a_budget_bounds_what_stays_in_memory():
    pages = Pages(500, 2000)
    for number in range(2000):
        pages.put(number, 0, "x" * 20)
    pages.write()
    assert sum(page.size for page in pages.backend.pages.values()) <= 2000
    assert len(pages.backend.entries) < 1000
    assert pages.value(1234, 0) == "x" * 20


def test_state_without_a_key_in_scope_is_refused():
    pages = Pages(500, None)
    state = KeyedStateFactory(pages.backend, lambda: 0).create(ValueStateDescriptor("v"))
    assert pages.backend.key is NO_KEY
    for use in (state.value, lambda: state.update(1), state.clear):
        with pytest.raises(StateAccessError, match="'test' was accessed without a current key"):
            use()
    pages.backend.set_current_key("a")
    state.update(1)
    pages.write()
    with pytest.raises(StateAccessError):
        state.value()


def test_a_state_registered_later_is_empty_for_old_keys():
    pages = Pages(500, None)
    pages.put("old", 0, "value")
    pages = pages.restored()
    factory = KeyedStateFactory(pages.backend, lambda: 0)
    pages.backend.set_current_key("old")
    added = factory.create(ListStateDescriptor("added later"))
    assert list(added.get()) == []
    added.add(1)
    pages = pages.restored()
    added = KeyedStateFactory(pages.backend, lambda: 0).create(ListStateDescriptor("added later"))
    pages.backend.set_current_key("old")
    assert list(added.get()) == [1]
    assert pages.value("old", 0) == "value"


def test_a_name_is_one_kind_of_state():
    pages = Pages(500, None)
    factory = KeyedStateFactory(pages.backend, lambda: 0)
    factory.create(ListStateDescriptor("s"))
    factory.create(ListStateDescriptor("s"))
    with pytest.raises(
        InvalidProgramError, match="state 's' of operator 'test' is a list state and cannot be used as a map state"
    ):
        factory.create(MapStateDescriptor("s"))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50), st.integers(0, 40))
def test_linear_hashing_moves_keys_of_the_split_page_only(hashes, splits):
    directory = PageDirectory()
    for _ in range(splits):
        before = {code: directory.index_of(code) for code in hashes}
        old, new = directory.add_page()
        assert new == directory.page_count - 1
        for code in hashes:
            assert directory.index_of(code) in ({old, new} if before[code] == old else {before[code]})


def test_timers_registered_in_a_callback_fire_in_the_same_advance():
    pages = Pages(500, None)
    log = []

    def on_event(timestamp, key, namespace):
        log.append(timestamp)
        if timestamp < 30:
            timers.register_event_time_timer(timestamp + 10)
            timers.register_event_time_timer(timestamp + 100)

    timers = InternalTimerService(pages.backend, lambda: 0, on_event, on_event)
    assert timers.current_watermark == MIN_WATERMARK
    pages.backend.set_current_key("k")
    timers.register_event_time_timer(5)
    timers.advance_watermark(50)
    assert log == [5, 15, 25, 35]
    timers.advance_watermark(200)
    assert log == [5, 15, 25, 35, 105, 115, 125]


def test_timers_of_namespaces_are_separate():
    pages = Pages(500, None)
    fired = []
    timers = InternalTimerService(
        pages.backend, lambda: 0, lambda time, key, namespace: fired.append((time, namespace)), lambda *_: None
    )
    pages.backend.set_current_key("k")
    for namespace in ((0, 10), (5, 15), None):
        timers.register_event_time_timer(9, namespace)
    timers.delete_event_time_timer(9, (5, 15))
    timers.advance_watermark(9)
    assert sorted(fired, key=str) == [(9, (0, 10)), (9, None)]


def test_dead_timers_do_not_fill_the_queue():
    pages = Pages(10_000, None)
    for round_number in range(200):
        pages.backend.set_current_key("k")
        for number in range(100):
            pages.timers.register_event_time_timer(10_000 + round_number * 100 + number)
            pages.timers.delete_event_time_timer(10_000 + round_number * 100 + number)
        pages.write()
        pages.timers.compact()
    assert len(pages.timers._event_queue) < 5000


def test_pages_that_were_only_read_are_not_written_unless_an_object_in_them_changed():
    written = []

    class NotingStore(MemoryPageStore):
        def put(self, page_id, blob):
            written.append(page_id)
            super().put(page_id, blob)

    backend = KeyedStateBackend("op", "op", NotingStore(), 128)
    states = {name: KeyedStateFactory(backend, lambda: 0).create(ValueStateDescriptor(name)) for name in ("a", "b")}
    backend.set_current_key("k")
    states["a"].update((1, "x"))
    states["b"].update([1])
    backend.snapshot(0)
    written.clear()
    for change in (False, False, True, False):
        backend.set_current_key("k")
        held = states["b"].value()
        if change:
            held.append(2)
        backend.snapshot(0)
    assert len(written) == 1


def test_an_object_that_was_changed_in_place_is_kept_though_its_page_leaves_memory_within_the_batch():
    backend = KeyedStateBackend("op", "op", MemoryPageStore(), 128, page_bytes=500, memory_budget=2000)
    state = KeyedStateFactory(backend, lambda: 0).create(ValueStateDescriptor("v"))
    for number in range(300):
        backend.set_current_key(number)
        state.update([f"{number:020d}"])
    backend.snapshot(0)
    for batch in range(1, 4):
        for number in range(300):
            backend.set_current_key(number)
            held = state.value()
            assert len(held) == batch
            held.append(batch)
        backend.snapshot(0)


@pytest.mark.parametrize("expires", [False, True], ids=["", "with TTL"])
def test_appending_to_a_list_does_not_copy_what_is_in_it(expires):
    backend = KeyedStateBackend("op", "op", MemoryPageStore(), 128)
    descriptor = ListStateDescriptor("list")
    if expires:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    state = KeyedStateFactory(backend, lambda: 0).create(descriptor)
    backend.set_current_key("k")
    state.add(1)
    held = backend.entry[FIRST_SLOT]
    state.add(2)
    state.add_all([3, 4])
    assert backend.entry[FIRST_SLOT] is held
    backend.snapshot(0)
    backend.set_current_key("k")
    assert list(state.get()) == [1, 2, 3, 4]


def test_visiting_all_keys_stays_within_the_budget_and_keeps_what_is_changed():
    backend = KeyedStateBackend("op", "op", MemoryPageStore(), 128, page_bytes=500, memory_budget=2_000)
    state = KeyedStateFactory(backend, lambda: 0).create(ValueStateDescriptor("v"))
    for number in range(1_000):
        backend.set_current_key(number)
        state.update(f"{number:050d}")
    backend.snapshot(0)
    largest = 0
    for key in backend.keys(0):
        backend.set_current_key(key)
        state.update(f"{state.value()} seen")
        largest = max(largest, sum(page.size for page in backend.pages.values()))
    backend.snapshot(0)
    assert largest < 3 * 2_000
    for number in range(1_000):
        backend.set_current_key(number)
        assert state.value() == f"{number:050d} seen"


class Counted:
    """An element that notes how often elements are written and read."""

    written = read = 0

    def __init__(self, number):
        self.number = number

    def __getstate__(self):
        Counted.written += 1
        return self.number

    def __setstate__(self, number):
        Counted.read += 1
        self.number = number

    @classmethod
    def take(cls):
        counts, cls.written, cls.read = (cls.written, cls.read), 0, 0
        return counts


def collection_state(kind, *, ttl, page_bytes=4096):
    """(backend, state, the same after everything was forgotten)."""
    descriptor = ListStateDescriptor("held") if kind == "list" else MapStateDescriptor("held")
    if ttl:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_days(1)).build())
    store = MemoryPageStore()

    def over(directory=None):
        backend = KeyedStateBackend("op", "op", store, 128, directory, page_bytes)
        return backend, KeyedStateFactory(backend, lambda: 0).create(descriptor)

    backend, state = over()
    return backend, state, lambda: over(pickle.loads(pickle.dumps(backend.snapshot(0))))


@pytest.mark.parametrize("ttl", [False, True])
def test_an_append_neither_reads_nor_writes_what_is_in_the_list(ttl):  # rule G07
    backend, state, again = collection_state("list", ttl=ttl)
    backend.set_current_key("k")
    held = None
    for number in range(100):
        state.add(Counted(number))
        state.add_all([Counted(number), Counted(number)])
        held = backend.entry[-1] if held is None else held
        assert backend.entry[-1] is held  # not a longer copy of it
    assert Counted.take() == (0, 0)
    backend, state = again()
    assert Counted.take() == (300, 0)  # once a batch, however often it was appended to
    backend.set_current_key("k")
    assert [element.number for element in state.get()] == [number for number in range(100) for _ in range(3)]
    assert Counted.take() == (0, 300)


@pytest.mark.parametrize("ttl", [False, True])
def test_access_to_an_entry_of_a_map_neither_reads_nor_writes_the_others(ttl):  # rule G08
    backend, state, again = collection_state("map", ttl=ttl)
    for key in range(1000):  # on many pages
        backend.set_current_key(key)
        state.put_all({name: Counted(key) for name in "abc"})
    assert Counted.take() == (0, 0)
    backend, state = again()
    Counted.take()
    backend.set_current_key(7)
    assert state.get("b").number == 7
    written, read = Counted.take()
    assert (written, 3 <= read < 300) == (0, True)  # the page of the key, and no other
    for _ in range(10):
        state.put("b", Counted(8))
        assert (state.get("b").number, state.contains("c"), len(list(state.keys()))) == (8, True, 3)
    iterator = state.items()
    state.remove("a")  # does not disturb who iterates
    assert sorted(name for name, _ in iterator) == ["a", "b", "c"]
    assert Counted.take() == (0, 0)
    backend.snapshot(0)
    assert Counted.take() == (read - 1, 0)  # that page again, once a batch
