"""Json(Order), Csv(Order) and Text(): classes as schemas."""

import pickle
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import cloudpickle
import pytest
from pydantic import BaseModel, PositiveFloat

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.formats.records import Csv, Json, Text


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    name: str
    price: Decimal


@dataclass
class Order:
    user: str
    amount: float
    at: datetime | None = None
    items: list[Item] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)


class Pair(NamedTuple):
    user: str
    amount: float = 1.5


class Mapped(TypedDict):
    user: str
    amount: float


class Model(BaseModel):
    user: str
    amount: PositiveFloat
    at: datetime | None = None


@dataclass(frozen=True)
class Everything:
    id: UUID
    day: date
    color: Color
    size: Literal["s", "m"]
    data: bytes
    pair: tuple[int, str]
    row: tuple[int, ...]
    scores: dict[str, float]
    either: int | str | None
    note: Annotated[str, "free text"]
    anything: Any


EVERYTHING = Everything(
    UUID(int=7), date(2026, 5, 1), Color.RED, "m", b"\x00\xff", (1, "a"), (1, 2), {"a": 1.5}, "x", "n", {"b": [None]}
)
FULL = Order("ann", 3.0, datetime(2026, 5, 1, 12, tzinfo=UTC), [Item("tea", Decimal("1.50"))], {"new"})


@pytest.mark.parametrize(
    "record", [FULL, EVERYTHING, Pair("ann", 2.0), Model(user="ann", amount=2)], ids=lambda r: type(r).__name__
)
def test_json_gives_back_what_it_was_given(record):
    schema = pickle.loads(pickle.dumps(Json(type(record))))
    assert schema.deserialize(schema.serialize(record)) == record


def test_json_of_a_typed_dict_is_a_dict():
    assert Json(Mapped).deserialize(b'{"user": "ann", "amount": 1}') == {"user": "ann", "amount": 1.0}


def test_json_without_a_class_is_what_json_makes_of_it():
    assert Json().deserialize(b'[1, {"a": null}]') == [1, {"a": None}]
    assert Json().serialize(Row(user="ann", at=date(2026, 5, 1))) == b'{"user":"ann","at":"2026-05-01"}'
    assert (
        Json().serialize(FULL).startswith(b'{"user":"ann","amount":3.0,"at":"2026-05-01T12:00:00+00:00","items":[{"na')
    )


def test_missing_fields_take_their_defaults_and_unknown_ones_are_ignored():
    assert Json(Order).deserialize(b'{"user": "ann", "amount": 3, "more": 1}') == Order("ann", 3.0)
    assert Json(Pair).deserialize(b'{"user": "ann"}') == Pair("ann", 1.5)


def test_a_missing_field_without_a_default_is_an_error_for_a_class_pickled_by_value_too():
    @dataclass
    class Local:
        user: str
        amount: float = 0.0
        tags: list[str] = field(default_factory=list)

    copied = pickle.loads(cloudpickle.dumps(Json(Local)))
    assert copied.deserialize(b'{"user": "ann"}').amount == 0.0
    with pytest.raises(RecordFormatError, match="the field 'user' of Local is missing"):
        copied.deserialize(b'{"amount": 3}')


def test_a_number_as_time_is_milliseconds():
    order = Json(Order).deserialize(b'{"user": "a", "amount": 1, "at": 1500}')
    assert order.at == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schema", "message", "reason"),
    [
        (Json(Order), b"{", r"not a record of Json\(Order\): "),
        (Json(Order), b"[]", r"\[\] is not an object with the fields of Order"),
        (Json(Order), b'{"user": "ann"}', "the field 'amount' of Order is missing"),
        (Json(Order), b'{"user": 5, "amount": 1}', "field 'user' of Order: 5 is not of type str"),
        (Json(Order), b'{"user": "a", "amount": true}', "field 'amount' of Order: True is not of type float"),
        (
            Json(Order),
            b'{"user": "a", "amount": 1, "at": "noon"}',
            "field 'at' of Order: 'noon' is not of type datetime",
        ),
        (
            Json(Order),
            b'{"user": "a", "amount": 1, "items": [{"name": "t", "price": "x"}]}',
            "field 'items' of Order: field 'price' of Item: 'x' is not of type Decimal",
        ),
        (Json(Model), b'{"user": "a", "amount": -1}', "greater than 0"),
        (Csv(Pair), b"ann", "1 values for the 2 fields user, amount"),
        (Csv(Pair), b"ann,many", "field 'amount' of Pair: 'many' is not of type float"),
        (Csv(Pair), b'"ann,1', r"not a record of Csv\(Pair\): unexpected end of data"),
        (Text(), b"\xff", r"not a record of Text\(\): 'utf-8' codec"),
    ],
)
def test_an_error_names_the_field_and_the_message(schema, message, reason):
    with pytest.raises(RecordFormatError, match=reason):
        schema.deserialize(message)


@dataclass
class Line:
    name: str
    count: int
    ok: bool
    rate: float | None
    at: datetime | None


LINES = [
    (Line('a, "b"', 3, True, 1.5, datetime(2026, 5, 1)), b'"a, ""b""",3,true,1.5,2026-05-01T00:00:00'),
    (Line("c", -1, False, None, None), b"c,-1,false,,"),
]


@pytest.mark.parametrize(("record", "line"), LINES)
def test_csv_has_the_fields_in_their_order(record, line):
    schema = pickle.loads(pickle.dumps(Csv(Line)))
    assert schema.serialize(record) == line
    assert schema.deserialize(line) == record


def test_csv_may_have_another_separator():
    assert Csv(Pair, separator=";").deserialize(b"ann;2") == Pair("ann", 2.0)
    assert Csv(Model, separator="\t").deserialize(b"ann\t2\t") == Model(user="ann", amount=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Json(int),
            "a schema must be a dataclass, a NamedTuple, a TypedDict or a pydantic model, but int is not",
        ),
        (lambda: Csv("a"), "a schema must be a dataclass, a NamedTuple, a TypedDict or a pydantic model, got 'a'"),
        (lambda: Csv(Pair, separator="::"), "separator and quote must be one character each"),
    ],
)
def test_other_classes_are_no_schemas(make, message):
    with pytest.raises(InvalidProgramError, match=message):
        make()
