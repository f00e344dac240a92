"""Operator state: list, union list, broadcast and raw state of a subtask (rule 3.7)."""

import pytest

from penstock.common.errors import InvalidProgramError
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.state.pages import MemoryPageStore

NUMBERS, RULES = ListStateDescriptor("numbers"), MapStateDescriptor("rules")


@pytest.fixture
def store():
    return MemoryPageStore()


def restored(backend, store):
    layout = backend.snapshot()
    return OperatorStateBackend("op", MemoryPageStore(dict(store.blobs)), layout)


def test_every_kind_is_there_after_a_restore(store):
    backend = OperatorStateBackend("op", store)
    assert not backend.restored
    backend.get_list_state(NUMBERS).add_all([1, 2])
    backend.get_union_list_state(ListStateDescriptor("union")).add(3)
    backend.get_broadcast_state(RULES).put("a", 1)
    backend.put_raw("generator", {"max": 5})
    again = restored(backend, store)
    assert again.restored
    assert list(again.get_list_state(NUMBERS)) == [1, 2]
    assert list(again.get_union_list_state(ListStateDescriptor("union"))) == [3]
    assert dict(again.get_broadcast_state(RULES).items()) == {"a": 1}
    assert again.get_raw("generator") == {"max": 5}


def test_only_what_changed_is_written(store):
    backend = OperatorStateBackend("op", store)
    numbers = backend.get_list_state(NUMBERS)
    numbers.add(1)
    backend.get_broadcast_state(RULES)
    backend.snapshot()
    assert list(store.blobs) == ["op/o/numbers"]
    store.blobs.clear()
    list(numbers.get())
    backend.snapshot()
    assert store.blobs == {}


@pytest.mark.parametrize("kind", ["get_list_state", "get_union_list_state"])
def test_what_was_read_and_can_be_changed_but_was_not_is_not_written_again(store, kind):
    backend = OperatorStateBackend("op", store)
    getattr(backend, kind)(NUMBERS).add({"a": [1]})
    again = restored(backend, store)
    (held,) = getattr(again, kind)(NUMBERS)
    again._store.blobs.clear()
    again.snapshot()
    assert again._store.blobs == {}
    assert again.changed_unions == {}
    held["a"].append(2)
    again.snapshot()
    assert list(again._store.blobs) == ["op/o/numbers"]


def test_list_state_methods(store):
    numbers = OperatorStateBackend("op", store).get_list_state(NUMBERS)
    numbers.update([3, 4])
    for number in numbers:
        numbers.add(number * 10)
    assert list(numbers.get()) == [3, 4, 30, 40]
    numbers.clear()
    assert list(numbers.get()) == []


def test_operator_list_state_cannot_hold_none(store):
    state = OperatorStateBackend("op", store).get_list_state(NUMBERS)
    for add in (lambda: state.add(None), lambda: state.add_all([1, None]), lambda: state.update([None])):
        with pytest.raises(TypeError, match="list state cannot hold None"):
            add()
    assert list(state.get()) == []


def test_broadcast_state_methods(store):
    rules = OperatorStateBackend("op", store).get_broadcast_state(RULES)
    assert rules.is_empty()
    rules.put_all({"a": 1, "b": 2})
    rules.remove("a")
    rules.remove("never there")
    assert (rules.get("a"), rules["b"], rules.contains("b")) == (None, 2, True)
    assert (list(rules.keys()), list(rules.values())) == (["b"], [2])
    rules.clear()
    assert rules.is_empty()


def test_an_entry_of_none_can_be_removed(store):
    backend = OperatorStateBackend("op", store)
    rules = backend.get_broadcast_state(RULES)
    rules.put("a", None)
    backend.snapshot()
    rules.remove("a")
    assert not restored(backend, store).get_broadcast_state(RULES).contains("a")


def test_the_same_name_is_the_same_state(store):
    backend = OperatorStateBackend("op", store)
    backend.get_list_state(NUMBERS).add(1)
    assert list(backend.get_list_state(ListStateDescriptor("numbers"))) == [1]
    with pytest.raises(InvalidProgramError, match="'numbers' is list state and cannot be used as union list state"):
        backend.get_union_list_state(NUMBERS)
    again = restored(backend, store)
    with pytest.raises(InvalidProgramError, match="'numbers' is list state and cannot be used as broadcast state"):
        again.get_broadcast_state(MapStateDescriptor("numbers"))


@pytest.mark.parametrize(
    ("kind", "descriptor", "message"),
    [
        ("get_list_state", ValueStateDescriptor("v"), r"list state of operator 'x' was requested .* not a ListState"),
        ("get_union_list_state", RULES, r"union list state of operator 'x' .* which is not a ListStateDescriptor"),
        ("get_broadcast_state", NUMBERS, r"broadcast state of operator 'x' .* which is not a MapStateDescriptor"),
    ],
)
def test_a_descriptor_of_another_kind_is_refused(store, kind, descriptor, message):
    with pytest.raises(InvalidProgramError, match=message):
        getattr(OperatorStateBackend("op", store, operator_name="x"), kind)(descriptor)
