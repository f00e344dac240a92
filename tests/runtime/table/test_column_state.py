"""Keyed state in columns: pages that are written, read, split, evicted."""

import copy
import random

import pyarrow as pa
import pytest

from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.table import column_fields, column_state
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import group_rows


def grouped(keys):
    return group_rows(ColumnBatch(pa.record_batch([pa.array(keys)], ["k"])), [0])


def backend(store, directory=None, **options):
    made = ColumnStateBackend("op", "test", store, 128, directory, page_bytes=1_000, **options)
    made.define("sums", [(pa.int64(), 0), (None, None)])
    return made


def add(state, keys, amount=1):
    rows = state.rows_of(grouped(keys))
    numbers, texts = state.gather(rows)
    new = [number + amount for number in numbers.to_pylist()]
    state.scatter(rows, [pa.array(new, pa.int64()), [f"{text or ''}{amount}" for text in texts]])


def stored_bytes(store):
    return sum(len(blob) for name, blob in store.blobs.items() if name.startswith(("op/p", "op/y")))


def contents(state):
    rows = state.all_rows()
    numbers, texts = state.gather(rows)
    return {
        state.keys_by_row[row]: (number, text)
        for row, number, text in zip(rows.list, numbers.to_pylist(), texts, strict=True)
    }


@pytest.fixture(params=["numpy", "no numpy"])
def _numpy(request, monkeypatch):
    if request.param == "no numpy":
        monkeypatch.setattr(column_fields, "np", None)
    else:
        pytest.importorskip("numpy")


@pytest.mark.usefixtures("_numpy")
@pytest.mark.parametrize("warm", [True, False])
def test_state_grows_over_many_pages_and_comes_back(warm):
    store, state = MemoryPageStore(), None
    directory, expected = None, {}
    for batch in range(6):
        if state is None or not warm:
            state = backend(store, directory)
        keys = list(range(batch * 100, batch * 100 + 400))
        add(state, keys, batch)
        for key in keys:
            number, text = expected.get(key, (0, ""))
            expected[key] = (number + batch, f"{text}{batch}")
        directory = state.snapshot(0)
    assert directory.page_count > 10
    assert contents(backend(store, directory)) == expected
    assert directory.total_bytes == stored_bytes(store)


def test_removed_keys_are_gone_and_their_rows_are_used_again():
    store = MemoryPageStore()
    state = backend(store)
    add(state, [1, 2, 3])
    state.remove([state.index[2]])
    add(state, [4])
    directory = state.snapshot(0)
    assert contents(backend(store, directory)) == {1: (1, "1"), 3: (1, "1"), 4: (1, "1")}
    assert state.index[4] == 1


def test_the_last_key_of_a_page_removes_it():
    store = MemoryPageStore()
    state = backend(store)
    add(state, [1])
    state.snapshot(0)
    state.remove([state.index[1]])
    state.snapshot(0)
    assert not [name for name in store.blobs if "/p" in name]
    assert state.directory.total_bytes == 0


def test_pages_leave_memory_when_the_budget_is_exceeded():
    store = MemoryPageStore()
    state = backend(store, memory_budget=3_000)
    for start in range(0, 2_000, 200):
        add(state, list(range(start, start + 200)))
        state.snapshot(0)
    assert len(state.index) < 1_000
    assert contents(state) == dict.fromkeys(range(2000), (1, "1"))


def test_other_keyed_state_reads_the_same_pages():
    store = MemoryPageStore()
    state = backend(store)
    add(state, list(range(500)))
    directory = state.snapshot(0)
    assert sorted(state.scan(0)) == [(key, None, None, (1, "1")) for key in range(500)]
    plain = KeyedStateBackend("op", "test", store, 128, directory, page_bytes=1_000)
    slot = plain.register("sums", "table state")
    plain.set_current_key(7)
    assert plain.entry[slot] == (1, "1")
    assert state.peek(7, slot, 0) == (1, "1")


def test_a_field_that_the_data_lacks_has_its_value_for_a_new_key():
    store = MemoryPageStore()
    state = backend(store)
    add(state, list(range(500)))
    directory = state.snapshot(0)
    add(state, [1, 2])
    state.snapshot(0)

    def with_new_field():
        made = ColumnStateBackend("op", "test", store, 128, copy.deepcopy(directory), page_bytes=1_000)
        made.define("sums", [(pa.int64(), 0), (None, None), (pa.int64(), 7)])
        return made

    state = with_new_field()
    assert state.peek(5, state.slot, 0) == (1, "1", 7)
    assert sorted(state.scan(0))[3] == (3, None, None, (1, "1", 7))
    numbers, texts, added = state.gather(state.rows_of(grouped([2, 3, 1_000])))
    assert (numbers.to_pylist(), texts, added.to_pylist()) == ([2, 1, 0], ["11", "1", None], [7, 7, 7])
    directory = state.snapshot(0)
    assert with_new_field().peek(2, state.slot, 0) == (2, "11", 7)


def test_only_pages_with_changed_rows_are_written():
    store = MemoryPageStore()
    state = backend(store)
    add(state, list(range(1_000)))
    state.snapshot(0)
    before = dict(store.blobs)
    add(state, [5])
    state.snapshot(0)
    changed = [name for name, blob in store.blobs.items() if before.get(name) != blob and "/p" in name]
    assert len(changed) == 1


# -- young pages ------------------------------------------------------------------------------------------------------


class Writes(MemoryPageStore):
    """Counts the bytes that are written."""

    written = 0

    def put(self, page_id, blob):
        self.written += len(blob)
        super().put(page_id, blob)


def old_state(keys=2_000):
    """A state in pages by hash."""
    store = Writes()
    state = backend(store)
    add(state, list(range(keys)))
    state.snapshot(0)
    assert not state.directory.young
    store.written = 0
    return store, state


def restarted(store, state):
    return backend(store, copy.deepcopy(state.directory))


@pytest.mark.parametrize("keys", [range(5_000, 5_200), range(0, 2_000, 10)], ids=["new keys", "known keys"])
def test_a_batch_of_scattered_keys_writes_those_keys(keys):
    store, state = old_state()
    add(state, list(keys), 5)
    state.snapshot(0)
    assert store.written < stored_bytes(store) / 4
    expected = dict.fromkeys(range(2_000), (1, "1"))
    for key in keys:
        number, text = expected.get(key, (0, ""))
        expected[key] = (number + 5, f"{text}5")
    assert contents(state) == contents(restarted(store, state)) == expected
    again = restarted(store, state)
    assert {key: entry for key, _, _, entry in again.scan(0)} == expected
    assert again.peek(keys[0], state.slot, 0) == expected[keys[0]]


@pytest.mark.parametrize("restart", [False, True])
def test_a_key_that_is_removed_from_a_young_page_does_not_come_back(restart):
    store, state = old_state()
    add(state, list(range(0, 2_000, 10)))
    state.snapshot(0)
    assert state.directory.young
    if restart:
        state = restarted(store, state)
    state.remove(state.rows_of(grouped([100, 200])).list)
    state.snapshot(0)
    assert set(contents(restarted(store, state))) == set(range(2_000)) - {100, 200}


def test_a_young_page_ends_with_its_last_key():
    store, state = old_state()
    new = list(range(5_000, 5_200))
    add(state, new)
    state.snapshot(0)
    state.remove(state.rows_of(grouped(new)).list)
    state.snapshot(0)
    assert not state.directory.young
    assert not [name for name in store.blobs if name.startswith("op/y")]
    assert state.directory.total_bytes == stored_bytes(store)


def test_many_young_keys_move_to_the_pages_of_their_hashes(monkeypatch):
    monkeypatch.setattr(column_state, "_MOST_YOUNG", 10)
    store, state = old_state()
    for start in range(5_000, 7_000, 200):
        add(state, list(range(start, start + 200)))
        state.snapshot(0)
    assert sum(state.directory.young.values()) <= 10_000
    assert state.directory.page_count > 40
    assert contents(restarted(store, state)) == dict.fromkeys([*range(2_000), *range(5_000, 7_000)], (1, "1"))
    assert state.directory.total_bytes == stored_bytes(store)


@pytest.mark.parametrize("budget", [None, 20_000])
@pytest.mark.parametrize("most", [10, 1_000])
def test_state_with_young_pages_is_what_a_dictionary_would_be(monkeypatch, budget, most):
    monkeypatch.setattr(column_state, "_MOST_YOUNG", most)
    random_numbers = random.Random(7)
    store, expected = MemoryPageStore(), {}
    state = backend(store, memory_budget=budget)
    had_young = False
    for batch in range(60):
        keys = random_numbers.sample(range(batch * 40, batch * 40 + 3_000), random_numbers.choice([3, 150, 600]))
        add(state, keys)
        for key in keys:
            number, text = expected.get(key, (0, ""))
            expected[key] = (number + 1, f"{text}1")
        gone = random_numbers.sample(sorted(expected), random_numbers.choice([0, 2, 100]) % len(expected))
        state.remove(state.rows_of(grouped(gone)).list if gone else [])
        for key in gone:
            del expected[key]
        state.snapshot(0)
        had_young |= bool(state.directory.young)
        if batch % 7 == 0:
            state = backend(store, copy.deepcopy(state.directory), memory_budget=budget)
    assert had_young
    assert contents(restarted(store, state)) == expected
    assert {key: values for key, _, _, values in state.scan(0)} == expected
