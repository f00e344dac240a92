"""Values in savepoints: what comes back, and what may change in between."""

import sys
import types
from collections import namedtuple
from dataclasses import dataclass, field, make_dataclass
from enum import Enum
from typing import NamedTuple

import pytest

from penstock.common import Row, RowKind
from penstock.common.errors import SavepointError, SerializationError
from penstock.core.window import CountWindow, GlobalWindow, TaggedUnion, TimeWindow
from penstock.runtime.savepoint.codec import decode, encode
from penstock.runtime.state.key_slices import KeySlices


class Colour(Enum):
    RED = 1


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@dataclass
class Tree:
    name: str
    children: list = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: int


def through(value):
    return decode(encode(value, "state"), "state")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, b"x"], ("k", 1): {3}},
        Row(1, "a"),
        Row(name="a", inner=Row(x=1)),
        Row.of_kind(RowKind.DELETE, a=1),
        TimeWindow(5, 9),
        GlobalWindow(),
        CountWindow(3),
        TaggedUnion.two("v"),
        Point(1, 2),
        Tree("root", [Tree("leaf")]),
        Pair(1, 2),
        Colour.RED,
        len,
        Point,
    ],
    ids=repr,
)
def test_values_come_back_equal_and_of_the_same_type(value):
    assert through(value) == value
    assert type(through(value)) is type(value)


def test_slices_of_windows_keep_their_count_of_arrivals():
    slices = through(KeySlices({10: [(1, "a")]}, 7))
    assert type(slices) is KeySlices
    assert (dict(slices), slices.arrivals) == ({10: [(1, "a")]}, 7)


def test_attributes_that_are_no_fields_come_along():
    tree = Tree("a")
    tree.note = "set later"
    assert through(tree).note == "set later"


def test_a_class_that_exists_only_inside_a_function_goes_by_value():
    @dataclass
    class Local:
        x: int

    assert through(Local(3)).x == 3


@pytest.fixture
def module(monkeypatch):
    """A module of the user's whose classes change between two versions of a program."""
    made = types.ModuleType("users_module")
    monkeypatch.setitem(sys.modules, "users_module", made)

    def define(name, cls):
        cls.__module__, cls.__qualname__ = "users_module", name
        setattr(made, name, cls)
        return cls

    return define


def test_a_dataclass_may_get_fields_with_defaults_and_lose_others(module):
    old = module("Order", make_dataclass("Order", ["number", "price"]))
    data = encode([old(1, 9.5)], "state")
    new = module(
        "Order", make_dataclass("Order", ["number", ("tags", list, field(default_factory=list)), ("note", str, "-")])
    )
    (order,) = decode(data, "state")
    assert order == new(1, [], "-")


def test_a_new_field_without_a_default_is_refused_by_name(module):
    old = module("Order", make_dataclass("Order", ["number"]))
    data = encode(old(1), "state")
    module("Order", make_dataclass("Order", ["number", "price"]))
    with pytest.raises(SavepointError, match=r"dataclass Order has a new field 'price'.*give it a default"):
        decode(data, "state")


def test_a_named_tuple_may_get_fields_with_defaults_and_lose_others(module):
    old = module("Fix", namedtuple("Fix", ["lon", "lat", "height"]))  # noqa: PYI024 - made at run time
    data = encode(old(1, 2, 3), "state")
    new = module("Fix", namedtuple("Fix", ["lat", "lon", "speed"], defaults=[0]))  # noqa: PYI024
    assert decode(data, "state") == new(lat=2, lon=1, speed=0)
    module("Fix", namedtuple("Fix", ["lat", "lon", "speed"]))  # noqa: PYI024
    with pytest.raises(SavepointError, match="named tuple Fix has a new field 'speed'"):
        decode(data, "state")


def test_a_class_that_is_gone_is_named(module):
    cls = module("Order", make_dataclass("Order", ["number"]))
    data = encode(cls(1), "state")
    del sys.modules["users_module"].Order
    with pytest.raises(SavepointError, match="class Order of module users_module, which cannot be found"):
        decode(data, "state")


def test_a_value_that_cannot_be_written_is_named():
    with pytest.raises(SerializationError, match="state of 'x' cannot be written"):
        encode([(n for n in range(3))], "state of 'x'")
