"""Rows by columns: what arrives is what was sent."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind
from penstock.common.errors import SerializationError
from penstock.runtime.records.row_batches import pack_rows
from penstock.runtime.records.serialization import dumps

FIELDS = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))


@st.composite
def rows(draw):
    fields = draw(st.lists(FIELDS, max_size=3))
    row = Row(*fields)
    if fields and draw(st.booleans()):
        row.set_field_names([f"f{number}" for number in range(len(fields))])
    row.set_row_kind(draw(st.sampled_from([RowKind.INSERT, RowKind.INSERT, RowKind.DELETE])))
    return row


@given(st.lists(st.one_of(rows(), st.integers()), max_size=5))
def test_whatever_is_packed_is_read_as_it_was(values):
    found = pickle.loads(pickle.dumps(pack_rows(values)))
    assert found == values
    assert [getattr(value, "_fields", None) for value in found] == [getattr(value, "_fields", None) for value in values]


def test_rows_of_one_schema_share_their_names_when_they_are_read():
    sent = [Row(word="a", n=1), Row(word="b", n=2)]
    first, second = pickle.loads(pickle.dumps(pack_rows(sent)))
    assert first._fields is second._fields is sent[0]._fields


def test_rows_do_not_share_their_fields():
    first, second = pickle.loads(pickle.dumps(pack_rows([Row(a=1), Row(a=1)])))
    first[0] = 3
    assert (first[0], second[0]) == (3, 1)


@pytest.mark.parametrize("kind", [RowKind.DELETE, RowKind.UPDATE_BEFORE])
def test_rows_of_a_changelog_keep_their_kind(kind):
    sent = [Row(a=1), Row.of_kind(kind, a=2)]
    assert [row.get_row_kind() for row in pickle.loads(pickle.dumps(pack_rows(sent)))] == [RowKind.INSERT, kind]


def test_rows_that_cannot_be_pickled_are_shown():
    with pytest.raises(SerializationError, match=r"cannot be pickled .*Row\(a=<generator"):
        dumps([(pack_rows([Row(a=(n for n in ()))]), None)], "a record")
