"""Keys, key groups and subtasks (rule 3.8)."""

import dataclasses
import datetime as dt
import enum
import subprocess
import sys
import uuid
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, KeySelectorError
from penstock.runtime.records.key_groups import (
    check_parallelism,
    default_max_parallelism,
    key_group_for,
    key_group_range,
    key_hash,
    stable_code,
    subtask_for_key_group,
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.uuids(), st.dates()
)
KEYS = st.recursive(
    SCALARS, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)), max_leaves=6
)


@pytest.mark.parametrize(
    ("parallelism", "groups"),
    [(1, 128), (85, 128), (86, 256), (128, 256), (200, 512), (30_000, 32_768), (32_768, 32_768)],
)
def test_default_number_of_key_groups(parallelism, groups):
    assert default_max_parallelism(parallelism) == groups


def test_ranges_of_the_book_example():
    assert [key_group_range(i, 3, 128) for i in range(3)] == [range(43), range(43, 86), range(86, 128)]


@given(st.integers(1, 300), st.data())
def test_ranges_cover_every_key_group_once_and_agree_with_the_owner(parallelism, data):
    groups = data.draw(st.integers(parallelism, 1000))
    ranges = [key_group_range(subtask, parallelism, groups) for subtask in range(parallelism)]
    assert [group for owned in ranges for group in owned] == list(range(groups))
    for subtask, owned in enumerate(ranges):
        assert {subtask_for_key_group(group, parallelism, groups) for group in owned} == {subtask}
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@given(KEYS, st.integers(1, 200))
def test_a_key_has_one_group_within_bounds(key, groups):
    group = key_group_for(key, groups)
    assert 0 <= group < groups
    assert group == key_group_for(key, groups)


class Color(str, enum.Enum):  # noqa: UP042 - StrEnum prints otherwise
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Plain(enum.Enum):
    A = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class Place:
    zip: str
    note: str = dataclasses.field(default="", compare=False)


class Custom:
    """A user's own key class."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __eq__(self, other):
        return (self.first, self.second) == (other.first, other.second)

    def __hash__(self):
        return hash((self.first, self.second))

    def __repr__(self):
        return "Custom"


@pytest.mark.parametrize(
    "equal",
    [
        [1, 1.0, True, Decimal(1), Fraction(1), 1 + 0j, Size.SMALL],
        [0, 0.0, -0.0, False],
        ["red", Color.RED],
        [(1, 2), Point(1, 2), (1.0, Decimal(2))],
        [frozenset({1, 2, 3}), frozenset({3, 2, 1.0})],
        [Place("1"), Place("1", note="other")],
        [2**70, float(2**70)],
        [Custom("x" * 20, "x" * 20), Custom(*["x" * 20] * 2)],
        [
            dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC),
            dt.datetime(2020, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        ],
    ],
    ids=lambda equal: repr(equal[0])[:20],
)
def test_equal_keys_have_the_same_place(equal):
    assert len({stable_code(key) for key in equal}) == 1
    assert all(key == equal[0] for key in equal)


def test_the_same_strings_in_other_objects_make_no_difference():
    """As they come from another process: equal, but not identical."""
    one = Custom("some text", "some text")
    other = Custom(*[bytes("some text", "ascii").decode() for _ in range(2)])
    assert one == other
    assert stable_code(one) == stable_code(other)


def test_codes_are_the_same_in_every_process_and_for_ever():
    """State is found by these codes: they may never change."""
    keys = [
        "sensor_1",
        "",
        "ä",
        0,
        1,
        -1,
        2**40,
        1.5,
        None,
        b"x",
        ("a", 1),
        Plain.A,
        dt.date(2020, 1, 1),
        uuid.UUID(int=7),
    ]
    program = (
        "import datetime as dt, uuid\n"
        "from penstock.runtime.records.key_groups import key_hash\n"
        "keys = ['sensor_1', '', 'ä', 0, 1, -1, 2**40, 1.5, None, b'x', ('a', 1)]\n"
        "keys += [dt.date(2020, 1, 1), uuid.UUID(int=7)]\n"
        "print([key_hash(key) for key in keys])"
    )
    command = [sys.executable, "-c", program]
    environment = {"PYTHONHASHSEED": "12345", "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str([key_hash(key) for key in keys if key is not Plain.A])
    assert [key_group_for(key, 128) for key in ("sensor_1", "sensor_2", 1, 2, ("a", 1), None)] == GOLDEN


GOLDEN = [107, 87, 49, 33, 20, 0]


@pytest.mark.parametrize(
    "keys", [range(10_000), [f"user {n}" for n in range(10_000)], [(n % 100, str(n)) for n in range(10_000)]]
)
def test_neighbouring_keys_spread_evenly(keys):
    groups = Counter(key_group_for(key, 128) for key in keys)
    assert len(groups) == 128
    assert max(groups.values()) < 2 * 10_000 / 128


def test_rows_are_keys_by_their_fields():
    assert stable_code(Row("a", 1)) == stable_code(Row("a", 1)) != stable_code(Row("a", 2))


def test_a_key_that_cannot_be_pickled_is_refused():
    with pytest.raises(KeySelectorError, match=r"function.*cannot be hashed the same way in every process"):
        stable_code(lambda: None)


def test_parallelism_is_checked_against_the_key_groups():
    check_parallelism(4, 4)
    with pytest.raises(InvalidProgramError, match="parallelism 5 is larger than max parallelism 4"):
        check_parallelism(5, 4)
    with pytest.raises(InvalidProgramError, match="between 1 and 32768"):
        check_parallelism(1, 40_000)
