import copy
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind


def test_named_fields_are_read_by_attribute_name_and_position():
    row = Row(name="Alice", age=11)
    assert (row.name, row["name"], row[0], row[-1], row[0:2]) == ("Alice", "Alice", "Alice", 11, ["Alice", 11])
    assert row.get_field_names() == ["name", "age"]


def test_named_fields_keep_the_order_in_which_they_were_given():
    assert list(Row(z=1, a=2)) == [1, 2]


def test_positional_and_named_fields_do_not_mix():
    with pytest.raises(ValueError, match="either"):
        Row(1, age=2)


def test_a_row_of_names_makes_rows_with_these_names():
    person = Row("name", "age")
    assert person("Alice", 11) == Row(name="Alice", age=11)
    with pytest.raises(ValueError, match="takes 2 values"):
        person("Alice", 11, "too much")


def test_fields_are_set_by_item_not_by_attribute():
    row = Row(name="Alice", age=11)
    row["age"] = 12
    row[0] = "Bob"
    assert row == Row(name="Bob", age=12)
    with pytest.raises(AttributeError):
        row.age = 13


def test_unknown_fields_are_named_in_the_error():
    row = Row(name="Alice")
    with pytest.raises(ValueError, match="'nam'"):
        row["nam"]
    with pytest.raises(ValueError, match="'nam'"):
        row["nam"] = 1
    with pytest.raises(AttributeError, match="'nam'"):
        _ = row.nam
    with pytest.raises(KeyError):
        Row(1)["name"]


def test_in_looks_at_values_and_names():
    row = Row(name="Alice")
    assert "Alice" in row
    assert "name" in row
    assert "age" not in row
    assert 1 in Row(1, 2)


def test_rows_are_equal_if_names_values_and_kind_are():
    assert Row(1, 2) == Row(1, 2)
    assert Row(1, 2) != Row(2, 1)
    assert Row(a=1) != Row(b=1)
    assert Row(a=1) != Row(1)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert Row(1) != (1,)


def test_equal_rows_have_equal_hashes():
    assert Counter([Row("a", 1), Row("a", 1), Row("b", 1)]) == {Row("a", 1): 2, Row("b", 1): 1}


def test_kind_is_insert_unless_set():
    row = Row(1)
    assert row.get_row_kind() is RowKind.INSERT
    row.set_row_kind(RowKind.UPDATE_AFTER)
    assert row.get_row_kind() is RowKind.UPDATE_AFTER
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_field_names_can_be_set_later():
    row = Row("Alice", 11)
    row.set_field_names(["name", "age"])
    assert row == Row(name="Alice", age=11)
    assert row.get_fields_by_names(["age", "name"]) == [11, "Alice"]


def test_as_dict_turns_nested_rows_if_asked():
    row = Row(a=Row(b=1), c=[Row(d=2)], e={"f": Row(g=3)})
    assert row.as_dict()["a"] == Row(b=1)
    assert row.as_dict(True) == {"a": {"b": 1}, "c": [{"d": 2}], "e": {"f": {"g": 3}}}
    with pytest.raises(TypeError, match="set_field_names"):
        Row(1).as_dict()


def test_repr_shows_names_where_there_are_any():
    assert repr(Row(name="Alice", age=11)) == "Row(name='Alice', age=11)"
    assert repr(Row("a", 1)) == "<Row('a', 1)>"


VALUES = st.lists(st.none() | st.integers() | st.text(), max_size=5)


@given(VALUES, st.booleans(), st.sampled_from(RowKind))
def test_rows_survive_pickling(values, named, kind):
    row = Row.of_kind(kind, *values)
    if named:
        row.set_field_names([f"f{i}" for i in range(len(values))])
    assert pickle.loads(pickle.dumps(row, protocol=5)) == row


def test_pickled_rows_of_one_schema_share_their_names():
    rows = pickle.loads(pickle.dumps([Row(name="a", age=1), Row(name="b", age=2)]))
    assert rows[0]._fields is rows[1]._fields
    one, many = (len(pickle.dumps([Row(a_rather_long_name=i) for i in range(n)])) for n in (1, 101))
    assert (many - one) / 100 < 20


def test_copies_do_not_share_their_values():
    for duplicate in (copy.copy, copy.deepcopy):
        for row in (Row(1, [2]), Row(a=1, b=[2]), Row.of_kind(RowKind.DELETE, 1, [2])):
            twin = duplicate(row)
            twin[0] = 99
            assert row[0] == 1
