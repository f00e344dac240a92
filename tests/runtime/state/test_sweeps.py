"""Expired elements leave a page whenever it is written, though it is looked at only when something can have expired."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Time
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.pages import FIRST_SLOT, MemoryPageStore
from penstock.runtime.state.sweeps import ListSweep, MapSweep, NamespaceSweep, ValueSweep

TTL = 10
DESCRIPTORS = {
    "value": lambda: ValueStateDescriptor("s"),
    "list": lambda: ListStateDescriptor("s"),
    "map": lambda: MapStateDescriptor("s"),
}


class Job:
    """One state, whose clock is set by hand; pages of a few keys each, so that they are split on the way."""

    def __init__(self, kind, *, namespaced=False):
        self.now = 0
        self.kind, self.namespaced = kind, namespaced
        self.backend = KeyedStateBackend("op", "test", MemoryPageStore(), 128, page_bytes=200)
        descriptor = DESCRIPTORS[kind]()
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(TTL)).build())
        self.state = KeyedStateFactory(self.backend, lambda: self.now).create(descriptor, namespaced=namespaced)

    def write(self, key, value):
        self.backend.set_current_key(key)
        if self.namespaced:
            self.state.cell.namespace = value % 2
        if self.kind == "value":
            self.state.update(value)
        elif self.kind == "list":
            self.state.add(value)
        else:
            self.state.put(value, value)

    def held(self):
        """Touch all pages, write them, and see what is in them."""
        for page in self.backend.pages.values():
            page.dirty = True
        self.backend.snapshot(self.now)
        return {
            (key, repr(part))
            for page in self.backend.pages.values()
            for key, entry in page.entries.items()
            if entry[FIRST_SLOT] is not None
            for part in self.parts(entry[FIRST_SLOT])
        }

    def parts(self, stored):
        slots = stored.values() if self.namespaced else [stored]
        for slot in slots:
            if self.kind == "value":
                yield slot
            else:
                yield from slot.values() if self.kind == "map" else slot


@pytest.mark.parametrize("kind", DESCRIPTORS)
@pytest.mark.parametrize("namespaced", [False, True])
@given(data=st.data())
def test_what_is_left_in_written_pages_is_what_has_not_expired(kind, namespaced, data):
    job = Job(kind, namespaced=namespaced)
    expected = {}
    steps = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.integers(0, TTL)), min_size=1, max_size=30)
    for key, value, passed in data.draw(steps):
        job.now += passed
        job.write(key, value)
        namespace = value % 2 if namespaced else None
        place = (key, namespace) if kind == "value" else (key, value)
        if kind == "list":
            expected.setdefault(place, []).append((value, job.now))
        else:
            expected[place] = [(value, job.now)]
        alive = {place: [one for one in some if job.now < one[1] + TTL] for place, some in expected.items()}
        expected = {place: some for place, some in alive.items() if some}
        assert job.held() == {(key, repr(one)) for (key, _), some in expected.items() for one in some}


def test_a_page_is_not_looked_at_before_something_can_have_expired(monkeypatch):
    looked = []
    real = ValueSweep.clear_slot
    monkeypatch.setattr(ValueSweep, "clear_slot", lambda self, *args: looked.append(args[2]) or real(self, *args))
    job = Job("value")
    job.now = 5
    job.write("a", 1)
    job.held()
    for now in (6, 10, 14):
        job.now = now
        job.write("b", now)
        job.held()
    assert looked == [5]
    job.now = 15
    assert job.held() == {("b", "(14, 14)")}
    assert looked == [5, 15]


@pytest.mark.parametrize(
    ("sweep", "stored", "kept"),
    [
        (ValueSweep(TTL), ("a", 3), None),
        (ValueSweep(TTL), ("a", 4), ("a", 4)),
        (ListSweep(TTL), [("a", 3), ("b", 4), ("c", 9)], [("b", 4), ("c", 9)]),
        (MapSweep(TTL), {1: ("a", 3), 2: ("b", 4)}, {2: ("b", 4)}),
        (NamespaceSweep(ListSweep(TTL)), {"w": [("a", 3)], "x": [("b", 4)]}, {"x": [("b", 4)]}),
    ],
)
def test_an_element_lives_while_now_is_before_its_last_touch_and_the_ttl(sweep, stored, kept):
    assert sweep(stored, 13) == kept
    if kept is not None:
        assert sweep.oldest(kept) == 4
