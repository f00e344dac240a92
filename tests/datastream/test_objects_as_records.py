"""Objects with attributes where a ROW or a MAP was declared, as PyFlink takes them."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from penstock.common import Row, Types
from penstock.common.errors import TypeMismatchError

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


@dataclass(slots=True)
class Slotted:
    name: str
    age: int


class Plain:
    def __init__(self, name, age):
        self.age, self.name, self.more = age, name, "is left out"


class WithProperty:
    name = "Ada"

    @property
    def age(self):
        return 36


OBJECTS = [Slotted("Ada", 36), Plain("Ada", 36), WithProperty(), SimpleNamespace(name="Ada", age=36)]


@pytest.mark.parametrize("given", OBJECTS, ids=lambda given: type(given).__name__)
def test_an_object_with_attributes_of_the_names_is_a_row(running_env, given):
    read = running_env.from_collection([given], type_info=PERSON)
    made = running_env.from_collection([given]).map(lambda value: value, output_type=PERSON)
    assert list(read.execute_and_collect()) == list(made.execute_and_collect()) == [Row(name="Ada", age=36)]


def test_a_name_that_a_dict_does_not_have_is_a_field_without_a_value(running_env):
    assert list(running_env.from_collection([{"age": 36}], type_info=PERSON).execute_and_collect()) == [
        Row(name=None, age=36)
    ]


@pytest.mark.parametrize(
    "given",
    [SimpleNamespace(name="Ada"), {"nmae": "Ada", "age": 36}, object(), "Ada", len, 36],
    ids=["attribute missing", "other name", "no attributes", "text", "function", "number"],
)
def test_what_lacks_a_name_of_the_type_or_has_others_is_refused(running_env, given):
    with pytest.raises(TypeMismatchError, match=r"expected a row of 2 fields \(name, age\)"):
        running_env.from_collection([given], type_info=PERSON)


def test_an_object_is_the_map_of_its_attributes(running_env):
    kind = Types.ROW_NAMED(["id", "rest"], [Types.INT(), Types.MAP(Types.STRING(), Types.STRING())])
    read = running_env.from_collection([(1, SimpleNamespace(a="x", b="y"))], type_info=kind)
    assert list(read.execute_and_collect()) == [Row(id=1, rest={"a": "x", "b": "y"})]


def test_objects_in_a_map_are_rows(running_env):
    kind = Types.MAP(Types.STRING(), PERSON)
    read = running_env.from_collection([{"first": Plain("Ada", 36)}], type_info=kind)
    assert list(read.execute_and_collect()) == [{"first": Row(name="Ada", age=36)}]
