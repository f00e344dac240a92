"""Hashes of columns are those of single keys: the exchange and the state agree on where a key is."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.records.key_groups import key_group_for, key_hash, subtask_for_key_group
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.key_hash import channels_of, key_hashes
from penstock.runtime.table.keys import group_rows, key_columns_of

COLUMNS = {
    "BIGINT": pa.array([0, 1, -1, 2**63 - 1, -(2**63), 2**61 - 1, None]),
    "INT": pa.array([0, -1, 2**31 - 1, None, 5, 6, 7], pa.int32()),
    "STRING": pa.array(["", "a", "ä", "😀", None, "sensor_1", "x" * 100]),
    "DOUBLE": pa.array([0.0, 1.5, -1.0, float("inf"), float("nan"), None, 1e300]),
    "BOOLEAN": pa.array([True, False, None, True, False, True, False]),
    "DECIMAL": pa.array([Decimal("1.50"), None, *map(Decimal, range(5))], pa.decimal128(10, 2)),
    "DATE": pa.array([dt.date(2024, 1, day) for day in range(1, 7)] + [None]),
    "TIMESTAMP": pa.array([dt.datetime(1969, 12, 31, 23, second) for second in range(6)] + [None], pa.timestamp("us")),
    "BYTES": pa.array([b"", b"a", None, b"\xff", b"b", b"c", b"d"]),
    "ROW": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, *[{"a": i, "b": "z"} for i in range(5)]]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_hashes_as_its_keys_do(name):
    column = COLUMNS[name]
    grouped = group_rows(ColumnBatch(pa.record_batch([column], ["k"])), [0])
    expected = [key_hash(grouped.keys[code]) for code in grouped.codes.to_pylist()]
    assert key_hashes([column], len(column)).to_pylist() == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_keys_become_the_column_they_were(name):
    column = COLUMNS[name]
    grouped = group_rows(ColumnBatch(pa.record_batch([column], ["k"])), [0])
    (back,) = key_columns_of(grouped.keys, [column.type])
    assert repr(back.take(grouped.codes).to_pylist()) == repr(column.to_pylist())


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), st.one_of(st.none(), st.text()))))
def test_keys_of_several_columns_go_where_their_state_is(pairs):
    columns = [pa.array([n for n, _ in pairs], pa.int64()), pa.array([text for _, text in pairs], pa.string())]
    hashes = key_hashes(columns, len(pairs))
    assert hashes.to_pylist() == [key_hash(pair) for pair in pairs]
    expected = [subtask_for_key_group(key_group_for(pair, 128), 3, 128) for pair in pairs]
    assert channels_of(hashes, 3, 128).to_pylist() == expected
