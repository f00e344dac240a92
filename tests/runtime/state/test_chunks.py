"""Lists and maps stored in chunks: whatever is done to them, what is read back is what was there."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.runtime.state.chunked_map import ChunkedMap, MapChunk
from penstock.runtime.state.chunks import Chunk, ChunkedList, ChunkStore
from penstock.runtime.state.pages import MemoryPageStore, PageDirectory


class Storage:
    """A store that counts what is written to it."""

    def __init__(self, chunk_bytes=200):
        self.blobs = MemoryPageStore()
        self.written = 0
        self.chunks = ChunkStore("op", "op", self, PageDirectory(), chunk_bytes)

    def get(self, name):
        return self.blobs.get(name)

    def put(self, name, blob):
        self.written += len(blob)
        self.blobs.put(name, blob)

    def remove(self, name):
        self.blobs.remove(name)

    def take_written(self):
        written, self.written = self.written, 0
        return written

    def read(self, collection):
        """The collection as it is in the store."""
        stored = [Chunk(*chunk.as_tuple()) for chunk in collection.chunks]
        contents = [pickle.loads(self.chunks.get(chunk.number)) for chunk in stored]
        if isinstance(collection, ChunkedMap):
            return ChunkedMap([MapChunk(dict(items), chunk) for items, chunk in zip(contents, stored, strict=True)])
        return ChunkedList([element for some in contents for element in some], stored)


elements = st.one_of(st.integers(), st.text(max_size=80), st.lists(st.integers(), max_size=3))
LIST_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), elements),
        st.tuples(st.just("extend"), st.lists(elements, max_size=30)),
        st.tuples(st.just("trim"), st.integers(0, 40)),
        st.tuples(st.just("last"), st.integers(0, 40)),
        st.tuples(st.just("insert"), st.integers(-5, 60), elements),
        st.tuples(st.just("set"), st.integers(-5, 60), elements),
        st.tuples(st.just("delete"), st.integers(-5, 60), st.integers(-5, 60)),
        st.tuples(st.just("change in place"), st.integers(0, 60)),
        st.tuples(st.just("replace all"), st.lists(elements, max_size=30)),
        st.tuples(st.just("pop"), st.integers(-60, 60)),
        st.tuples(st.just("keep"), st.integers(0, 9)),
        st.tuples(
            st.just("turn"),
        ),
        st.tuples(
            st.just("save"),
        ),
        st.tuples(
            st.just("forget"),
        ),
    ),
    max_size=40,
)


def change_in_place(values, at):
    if at < len(values) and isinstance(values[at], list):
        values[at].append(7)


def set_at(values, at, value):
    if -len(values) <= at < len(values):
        values[at] = value


def pop_at(values, at):
    if -len(values) <= at < len(values):
        values.pop(at)


LIST_ACTIONS = {
    "append": lambda values, value: values.append(value),
    "extend": lambda values, more: values.extend(more),
    "trim": lambda values, count: values.__delitem__(slice(count)),
    "last": lambda values, count: values.__delitem__(slice(-count)),
    "insert": lambda values, at, value: values.insert(at, value),
    "set": set_at,
    "delete": lambda values, start, end: values.__delitem__(slice(start, end)),
    "change in place": change_in_place,
    "replace all": lambda values, others: values.__setitem__(slice(None), others),
    "pop": pop_at,
    "turn": lambda values: values.reverse(),
}


def do(step, values):
    """One step on a list of any kind."""
    what, *arguments = step
    LIST_ACTIONS[what](values, *copy.deepcopy(arguments))


@settings(max_examples=200)
@given(LIST_STEPS)
def test_a_chunked_list_is_a_list_whatever_is_done_to_it_and_whenever_it_is_stored(steps):
    storage, model, held = Storage(), [], ChunkedList()
    for step in steps:
        if step[0] == "keep":
            kept = [value for number, value in enumerate(list.__iter__(held)) if number % 10 >= step[1] or number > 20]
            held.keep(kept)
            model[:] = [value for number, value in enumerate(model) if number % 10 >= step[1] or number > 20]
        elif step[0] in {"save", "forget"}:
            held.save(storage.chunks)
            assert list.__eq__(storage.read(held), model)
            if step[0] == "forget":
                held = storage.read(held)
        else:
            do(step, held)
            do(step, model)
        assert list.__eq__(held, model)
    held.save(storage.chunks)
    assert storage.read(held) == model
    assert sum(chunk.count for chunk in held.chunks) == len(model)


@pytest.mark.parametrize("element", [12345, "x" * 20, ("a", 1.5), [1, 2]])
def test_what_is_appended_to_a_long_list_is_all_that_is_written(element):
    storage, held = Storage(chunk_bytes=1000), ChunkedList()
    held.extend(copy.deepcopy(element) for _ in range(10_000))
    held.save(storage.chunks)
    everything = storage.take_written()
    for _ in range(50):
        held.append(copy.deepcopy(element))
        held.save(storage.chunks)
    assert storage.take_written() / 50 < 2_000 < everything / 10
    held = storage.read(held)
    held.append(element)
    held.save(storage.chunks)
    assert storage.take_written() < 2_000  # also by who has just read it


def test_appending_one_by_one_leaves_no_trail_of_tiny_chunks():
    storage, held = Storage(chunk_bytes=1000), ChunkedList()
    for number in range(2_000):
        held.append(number)
        held.save(storage.chunks)
    assert len(held.chunks) < 20
    assert all(chunk.size >= 500 for chunk in held.chunks[:-1])


def test_what_goes_from_the_beginning_of_a_list_costs_no_more_than_a_chunk():
    storage, held = Storage(chunk_bytes=1000), ChunkedList(range(10_000))
    held.save(storage.chunks)
    storage.take_written()
    for _ in range(100):
        del held[:30]
        held.extend(range(30))
        held.save(storage.chunks)
    assert storage.take_written() / 100 < 4_000
    assert storage.read(held) == [*range(3_000, 10_000), *list(range(30)) * 100]


def test_elements_that_cannot_change_are_not_even_compared_because_somebody_read_them(monkeypatch):
    storage, held = Storage(), ChunkedList((number, "x") for number in range(1_000))
    held.save(storage.chunks)
    storage.take_written()
    assert sum(number for number, _ in held) == 499_500
    encoded = []
    monkeypatch.setattr(ChunkStore, "encode", lambda store, content: encoded.append(content))
    held.save(storage.chunks)
    assert encoded == []


def test_an_element_that_was_changed_in_place_is_written_and_its_neighbours_chunks_are_not():
    storage, held = Storage(), ChunkedList([number] for number in range(1_000))
    held.save(storage.chunks)
    everything = storage.take_written()
    for element in held:
        if element == [500]:
            element.append("changed")
    held.save(storage.chunks)
    assert 0 < storage.take_written() < everything / 10
    assert storage.read(held)[500] == [500, "changed"]


def test_elements_of_very_different_sizes_are_stored_in_chunks_of_bounded_size():
    storage, held = Storage(chunk_bytes=1000), ChunkedList()
    held.extend("x" * (1 if number % 97 else 900) for number in range(5_000))
    held.extend(["y" * 50_000, 1, 2, 3])
    held.save(storage.chunks)
    assert storage.read(held) == list(held)
    assert sorted(chunk.size for chunk in held.chunks)[-2] <= 2_000  # one element is larger than a chunk


def test_a_chunked_list_looks_like_a_list_to_everybody_else():
    held = ChunkedList([1, 2, 3])
    assert type(pickle.loads(pickle.dumps(held))) is list
    assert type(copy.deepcopy(held)) is list
    before, after = [0], [4]
    for plain in (held[:], held.copy(), held + after, before + held, held * 2, 2 * held, sorted(held), [*held]):
        assert type(plain) is list
    assert (held + after, before + held, 2 * held) == ([1, 2, 3, 4], [0, 1, 2, 3], [1, 2, 3, 1, 2, 3])


keys = st.integers(0, 60)
MAP_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, elements),
        st.tuples(st.just("put all"), st.dictionaries(keys, elements, max_size=30)),
        st.tuples(st.just("remove"), keys),
        st.tuples(st.just("change in place"), keys),
        st.tuples(
            st.just("change all in place"),
        ),
        st.tuples(st.just("remove some"), st.integers(1, 5)),
        st.tuples(
            st.just("clear"),
        ),
        st.tuples(
            st.just("save"),
        ),
        st.tuples(
            st.just("forget"),
        ),
    ),
    max_size=40,
)


def do_to_map(step, values):
    what, *arguments = step
    if what == "put":
        values[arguments[0]] = copy.deepcopy(arguments[1])
    elif what == "put all":
        values.update(copy.deepcopy(arguments[0]))
    elif what == "remove":
        values.pop(arguments[0], None)
    elif what == "change in place" and isinstance(values.get(arguments[0]), list):
        values.get(arguments[0]).append(7)
    elif what == "change all in place":
        for value in values.values():
            if isinstance(value, list):
                value.append(8)
    elif what == "remove some":
        for key in [key for key in values if key % arguments[0] == 0]:
            del values[key]
    elif what == "clear":
        values.clear()


@settings(max_examples=200)
@given(MAP_STEPS)
def test_a_chunked_map_is_a_dict_in_its_order_too_whatever_is_done_to_it(steps):
    storage, model, held = Storage(), {}, ChunkedMap()
    for step in steps:
        if step[0] in {"save", "forget"}:
            held.save(storage.chunks)
            assert list(storage.read(held).items()) == list(model.items())
            if step[0] == "forget":
                held = storage.read(held)
        else:
            do_to_map(step, held)
            do_to_map(step, model)
        assert (list(held), len(held), list(held.unnoted())) == (list(model), len(model), list(model.items()))
    held.save(storage.chunks)
    assert list(storage.read(held).items()) == list(model.items())


def test_of_a_large_map_only_what_was_touched_is_written():
    storage = Storage(chunk_bytes=1000)
    held = ChunkedMap([MapChunk({number: [number] for number in range(10_000)})])
    held.save(storage.chunks)
    everything = storage.take_written()
    held[5_000] = "updated"
    held.save(storage.chunks)
    assert 0 < storage.take_written() < 3_000 < everything / 10
    held.get(7_000).append("changed in place")
    held.save(storage.chunks)
    assert 0 < storage.take_written() < 3_000
    assert held.get(9_000) == [9_000]
    held.save(storage.chunks)
    assert storage.take_written() == 0
    del held[1]
    held["new"] = 1
    held.save(storage.chunks)
    assert 0 < storage.take_written() < 5_000
    again = storage.read(held)
    assert (again[5_000], again[7_000], 1 in again, again["new"]) == ("updated", [7_000, "changed in place"], False, 1)


def test_keys_that_come_and_go_leave_no_trail_of_chunks():
    storage, held = Storage(chunk_bytes=1000), ChunkedMap()
    most = 0
    for number in range(3_000):
        held[number] = "x" * 20
        held.pop(number - 300, None)
        if number % 7 == 0:
            held.save(storage.chunks)
            most = max(most, len(held.chunks))
    assert most < 40
    assert list(held) == list(range(2_700, 3_000))


def test_a_chunked_map_looks_like_a_dict_to_everybody_else():
    held = ChunkedMap([MapChunk({"a": 1, "b": 2})])
    assert type(pickle.loads(pickle.dumps(held))) is dict
    assert type(copy.deepcopy(held)) is dict
    assert held == {"a": 1, "b": 2}
    assert repr(held) == "{'a': 1, 'b': 2}"
