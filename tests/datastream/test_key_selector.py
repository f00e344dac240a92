import pickle
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import pytest

from penstock.common import Row, Types
from penstock.common.errors import InvalidProgramError
from penstock.datastream.functions import KeySelector
from penstock.datastream.key_selector import key_function


@dataclass
class Address:
    street: str
    zip: int


@dataclass
class Person:
    name: str
    address: Address
    count: int = 0


class Pair(NamedTuple):
    id: str
    birthday: tuple


PERSON = Person("Alice", Address("Main St", 1234), 7)


class ByName(KeySelector):
    def get_key(self, value):
        return value.name


@pytest.mark.parametrize(
    ("key", "record", "expected"),
    [
        (max, (3, 9), 9),
        (ByName(), PERSON, "Alice"),
        (1, ("a", "b"), "b"),
        (1, ["a", "b"], "b"),
        (1, Row("a", "b"), "b"),
        ("name", PERSON, "Alice"),
        ("count", PERSON, 7),
        ("address.zip", PERSON, 1234),
        ("address._2", {"address": ("Main St", 1234)}, 1234),
        ("id", Row(id=5, x=1), 5),
        ("id", {"id": 5}, 5),
        ("items", {"items": 5}, 5),
        ("count", {"count": 5}, 5),
        ("count", Row(count=5), 5),
        ("id", Pair("a", (1, 2)), "a"),
        ("2", ("a", "b", "c"), "c"),
        ("_1", ("a", "b", "c"), "a"),
        ("f2", ("a", "b", "c"), "c"),
        ("f0", Row("a", "b"), "a"),
        ("birthday._1", Pair("a", (1, 2)), 1),
        ("birthday._", Pair("a", (1, 2)), (1, 2)),
        ("*", ("a", [1]), ("a", (1,))),
        ("_", Person("A", Address("S", 1)), ("A", ("S", 1), 0)),
        ([0, 1], ("a", "b", "c"), ("a", "b")),
        ((0, "f2"), ("a", "b", "c"), ("a", "c")),
        (["name", lambda person: person.address.zip], PERSON, ("Alice", 1234)),
    ],
)
def test_keys_of_every_kind(key, record, expected):
    select = key_function(key)
    assert select(record) == expected
    if not callable(key) and not isinstance(key, list):
        assert pickle.loads(pickle.dumps(select))(record) == expected


def test_several_arguments_are_a_composite_key():
    assert key_function(1, 2)(("a", "b", "c")) == ("b", "c")
    assert key_function("id", "zip")({"id": 1, "zip": 2}) == (1, 2)


def test_positions_become_an_itemgetter_and_functions_stay_as_they_are():
    def own(value):
        return value

    assert isinstance(key_function(0), itemgetter)
    assert key_function(own) is own


def test_a_declared_row_type_gives_names_a_position():
    kind = Types.ROW_NAMED(["id", "n"], [Types.STRING(), Types.INT()])
    select = key_function("n", record_type=kind)
    assert select(Row("a", 1)) == 1
    assert select(("a", 1)) == 1
    assert select({"id": "a", "n": 1}) == 1


@pytest.mark.parametrize("key", [None, 1.5, -1, "", "a..b", "_.x", object(), True, []])
def test_what_cannot_be_a_key_is_refused(key):
    with pytest.raises(InvalidProgramError):
        key_function(key)


def test_a_missing_field_is_named():
    with pytest.raises(LookupError, match="'nope'"):
        key_function("nope")({"id": 1})
