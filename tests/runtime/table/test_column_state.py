"""Keyed state in columns: pages that are written, read, split, evicted."""

import pyarrow as pa
import pytest

from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.table import column_state
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
        monkeypatch.setattr(column_state, "np", None)
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
    assert directory.total_bytes == sum(len(blob) for name, blob in store.blobs.items() if "/p" in name)


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
