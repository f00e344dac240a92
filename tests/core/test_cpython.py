"""What the engine takes for granted about CPython. On a new version of Python, look here first."""

import collections
import dataclasses
import pickle
import sys

from penstock.core import cpython
from penstock.core.cpython import (
    ALONE,
    MISSING,
    PICKLE_CLASS,
    PICKLE_SHORT_STRING,
    UNSHARED,
    UNSHARED_IN_TUPLE,
    code_parts,
    getrefcount,
    local_variable,
    returned_values,
)


@dataclasses.dataclass
class Point:
    x: int


Pair = collections.namedtuple("Pair", "a b")  # noqa: PYI024


def references(value):
    return getrefcount(value)


def test_an_object_with_one_more_holder_has_one_more_reference():
    held = object()
    alone = references(held)
    holder = [held]
    assert references(held) == alone + 1
    holder.clear()
    assert references(held) == alone


def test_an_object_made_for_the_call_is_unshared_and_a_held_one_is_not():
    def emit():
        for _ in range(1_000):
            yield object()

    assert all(references(item) <= UNSHARED for item in emit())
    state = [object() for _ in range(1_000)]
    assert all(references(item) > UNSHARED for item in state)


def test_parts_of_a_tuple_are_unshared_until_something_else_holds_them():
    assert all(getrefcount(part) <= UNSHARED_IN_TUPLE for part in tuple(object() for _ in range(1_000)))
    held = [object() for _ in range(1_000)]
    assert all(getrefcount(part) > UNSHARED_IN_TUPLE for part in tuple(held))


def test_a_local_variable_alone_has_the_measured_count():
    probe = object()
    assert getrefcount(probe) == ALONE
    second = probe
    assert getrefcount(second) == ALONE + 1


def returns_nothing():
    pass


def returns_none_by_name(flag):
    if flag:
        return
    return


def returns_sometimes(flag):
    if flag:
        return flag
    return None


def yields():
    yield 1


async def waits():
    pass


def test_return_statements_with_and_without_a_value_are_told_apart():
    assert not any(returned_values(returns_nothing.__code__))
    assert not any(returned_values(returns_none_by_name.__code__))
    assert any(returned_values(returns_sometimes.__code__))
    assert any(returned_values((lambda value: value > 3).__code__))
    assert any(returned_values((lambda: 0).__code__))  # a constant
    assert not any(returned_values((lambda value: None).__code__))
    assert returned_values(yields.__code__) == returned_values(waits.__code__) == [True]


def parts_of(source):
    return list(code_parts(compile(source, "somewhere.py", "exec")))


def test_the_same_source_has_the_same_code_wherever_it_stands():
    source = "def f(x):\n    return x in {'a', 'b', 'c'} and (lambda y: y + x)(1)\n"
    assert parts_of(source) == parts_of(source)
    assert parts_of(source) != parts_of(source.replace("1", "2"))
    assert parts_of(source) != parts_of(source.replace("y + x", "y - x"))


def test_the_locals_of_a_frame_can_be_read_after_an_error():
    def fail(value):
        raise ValueError(value)

    try:
        fail("a record")
    except ValueError as error:
        frame = error.__traceback__.tb_next.tb_frame
    assert local_variable(frame, "value") == "a record"
    assert local_variable(frame, "other") is MISSING


def test_classes_stand_in_pickles_as_expected():
    for value in (Point(1), Pair(1, 2)):
        blob = pickle.dumps(value, 5)
        name = type(value).__name__.encode()
        assert PICKLE_SHORT_STRING + bytes([len(name)]) + name + PICKLE_CLASS in blob
    assert PICKLE_CLASS not in pickle.dumps([1, "two", (3.0, None)], 5)


def test_this_is_cpython():
    assert sys.implementation.name == "cpython", cpython.__doc__
