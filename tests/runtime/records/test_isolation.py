"""When an emitted object is copied, and when it need not be."""

import enum
from dataclasses import dataclass
from decimal import Decimal

import pytest

from penstock.common import Row
from penstock.runtime.records.isolation import copy_batch, copy_of, deeply_immutable, protect


class Plain:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None

    def __repr__(self):
        return f"Plain({self.value})"


@dataclass(frozen=True)
class Frozen:
    value: object


class Color(enum.Enum):
    RED = [1]  # noqa: RUF012 - the value of an enum


MUTABLE = [[1], {"a": 1}, {1}, Row("a", 1), Plain(1), (1, [2]), Frozen([1]), [[1], [2]], bytearray(b"x")]
IMMUTABLE = [
    1,
    1.5,
    "a",
    b"a",
    None,
    True,
    (1, "a"),
    (1, (2, (3,))),
    Decimal(1),
    Frozen(1),
    Color.RED,
    Frozen((1, Color.RED)),
]


@pytest.mark.parametrize("value", MUTABLE, ids=range(len(MUTABLE)))
def test_what_somebody_still_holds_is_copied(value):
    holder = [value]
    protected = protect(value)
    assert protected is not value
    assert protected == holder[0]


@pytest.mark.parametrize("value", IMMUTABLE, ids=range(len(IMMUTABLE)))
def test_what_cannot_change_is_passed_on_as_it_is(value):
    holder = [value]
    assert protect(value) is holder[0]
    assert deeply_immutable(value)


def test_what_nobody_else_holds_is_not_copied():
    def emitted():
        yield [1]
        yield {"a": 1}
        yield Row("a")
        yield (1, [2])

    for item in emitted():
        before = id(item)
        assert id(protect(item)) == before


def test_a_fresh_tuple_around_something_held_is_copied():
    held = [1]
    protected = protect((1, held))
    held.append(2)
    assert protected == (1, [1])


def test_a_tuple_that_is_held_itself_is_copied_with_its_members():
    state = {"key": ("key", [1])}
    value = state["key"]
    protected = protect(value)
    value[1].append(2)
    assert protected == ("key", [1])


@pytest.mark.parametrize("value", [*MUTABLE, *IMMUTABLE], ids=range(len(MUTABLE) + len(IMMUTABLE)))
def test_copies_are_equal_and_of_the_same_type(value):
    copied = copy_of(value)
    assert type(copied) is type(value)
    assert copied == value


def test_copies_are_deep():
    value = {"list": [1, {"inner": [2]}]}
    copied = copy_of(value)
    value["list"][1]["inner"].append(3)
    assert copied == {"list": [1, {"inner": [2]}]}


def test_rows_keep_their_names_when_copied():
    row = Row(name="a", count=1)
    assert copy_of(row).as_dict() == {"name": "a", "count": 1}


def test_a_batch_for_another_consumer_shares_no_mutable_record():
    batch = [[1], 2, (3, [4])]
    copied = copy_batch(batch)
    assert copied == batch
    assert copied is not batch
    assert copied[0] is not batch[0]
    assert copied[2][1] is not batch[2][1]
