"""What can be a key: positions, names, paths, wildcards, functions (ch. 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from showcase import Showcase

from penstock.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, KeySelector

book = Showcase(__doc__)


class Address(NamedTuple):
    """A postal address."""

    zip: str
    street: str


class Person(NamedTuple):
    """A person with an address and a birthday (day, month)."""

    name: str
    address: Address
    birthday: tuple[int, int]


TRIPLES = [("Ann", 1, 7), ("Bob", 2, 7), ("Cid", 1, 7), ("Dan", 1, 8)]
PAIRS = [(1, 5), (5, 2), (3, 3)]
PEOPLE = [
    Person("Ann", Address("1010", "Ring"), (1, 5)),
    Person("Bob", Address("1020", "Markt"), (1, 6)),
    Person("Cid", Address("1010", "Graben"), (1, 5)),
]


class KeyAndRecord(KeyedProcessFunction):
    """Shows under which key a record came, and who else has it."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield ctx.get_current_key(), getattr(value, "name", value)


class MaxField(KeySelector):
    """A key that is computed."""

    def get_key(self, value: tuple[int, int]) -> int:
        return max(value)


@book.example("E22", "Forms of keys")
def forms_of_keys(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Keys are functions of the record; positions and names are short forms of them. First column: the key."""
    triples, pairs, people = env.from_collection(TRIPLES), env.from_collection(PAIRS), env.from_collection(PEOPLE)
    keyed: dict[str, KeyedStream] = {
        "position, key_by(1)": triples.key_by(1),
        "several positions, key_by(1, 2)": triples.key_by(1, 2),
        "name, key_by('name')": people.key_by("name"),
        "path, key_by('address.zip')": people.key_by("address.zip"),
        "position in a path, key_by('birthday._2')": people.key_by("birthday._2"),
        "all fields below, key_by('birthday._')": people.key_by("birthday._"),
        "KeySelector, the larger of two": pairs.key_by(MaxField()),
        "function, the larger of two": pairs.key_by(lambda pair: max(pair[0], pair[1])),
    }
    return {form: stream.process(KeyAndRecord()) for form, stream in keyed.items()}


if __name__ == "__main__":
    raise SystemExit(book.main())
