"""The mapping from keys to key groups to subtasks, which never changes.

Python's `hash` is salted per process for strings, so it cannot decide where state lives. Numbers keep their own hash,
because it is defined by value (``hash(1) == hash(1.0) == hash(True)``): equal keys must have the same place.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pickle
from collections.abc import Collection, Iterable
from contextlib import suppress
from numbers import Number
from types import FunctionType
from typing import Any
from zlib import crc32

from penstock.common.errors import InvalidProgramError, KeySelectorError, shorten
from penstock.common.types import Row
from penstock.core.return_values import forgotten_call

UPPER_BOUND_MAX_PARALLELISM = 1 << 15
DEFAULT_LOWER_BOUND_MAX_PARALLELISM = 128
_MASK32 = 0xFFFFFFFF


def default_max_parallelism(parallelism: int) -> int:
    """Return the number of key groups if the user has not set it (rule 3.8).

    >>> default_max_parallelism(1), default_max_parallelism(85), default_max_parallelism(86)
    (128, 128, 256)
    """
    wanted = parallelism + parallelism // 2
    power = 1 << max(0, wanted - 1).bit_length()
    return min(max(power, DEFAULT_LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)


def check_parallelism(parallelism: int, max_parallelism: int) -> None:
    """Reject a parallelism without a key group for each subtask."""
    if not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise InvalidProgramError(
            f"max parallelism must be between 1 and {UPPER_BOUND_MAX_PARALLELISM}, got {max_parallelism}"
        )
    if parallelism > max_parallelism:
        raise InvalidProgramError(
            f"parallelism {parallelism} is larger than max parallelism {max_parallelism}: raise set_max_parallelism()"
        )


def stable_code(key: Any) -> int:
    """Return a 32-bit code of a key that is the same in every process and equal for equal keys."""
    kind = type(key)
    if kind is str:
        return crc32(key.encode("utf-8", "surrogatepass"))
    if kind is int or kind is bool or kind is float:
        return _code_of_number(key)
    if isinstance(key, (tuple, Row)):
        return _combine(stable_code(part) for part in key)
    return _code_of_object(key)


def _code_of_number(key: Any) -> int:
    if key != key:  # noqa: PLR0124 - NaN
        raise KeySelectorError(
            f"the key {key!r} is not equal to itself, so its state would never be found again: "
            "return another value for it from the key selector, for instance None"
        )
    return crc32(hash(key).to_bytes(8, "little", signed=True))


def _combine(codes: Iterable[int]) -> int:
    total = 1
    for code in codes:
        total = (31 * total + code) & _MASK32
    return total


def _combine_in_any_order(codes: Iterable[int]) -> int:
    total = 0
    for code in codes:
        total = (total + spread(code)) & _MASK32
    return total


def _code_of_object(key: Any) -> int:
    if key is None:
        return 0
    if isinstance(key, (bytes, bytearray)):
        return crc32(key)
    # Before enums: members of an enum of strings or numbers are equal to these.
    if isinstance(key, str):
        return crc32(str.encode(key, "utf-8", "surrogatepass"))
    if isinstance(key, Number):
        return _code_of_number(key)
    if isinstance(key, enum.Enum):
        return crc32(key.name.encode())
    if isinstance(key, (frozenset, set)):
        return _combine_in_any_order(map(stable_code, key))
    if isinstance(key, list):
        return _combine(map(stable_code, key))
    if isinstance(key, dict):
        return _combine_in_any_order(map(stable_code, key.items()))
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        return _combine(stable_code(getattr(key, field.name)) for field in dataclasses.fields(key) if field.compare)
    if isinstance(key, dt.datetime) and key.utcoffset() is not None:
        key = key.astimezone(dt.UTC)  # equal in all time zones
    attributes = None if isinstance(key, (type, FunctionType)) else getattr(key, "__dict__", None)
    if attributes:  # one by one: a pickle of all attributes would distinguish equal from identical ones
        _check_equality(key)
        return _combine(stable_code(attributes[name]) for name in sorted(attributes))
    return _code_of_pickle(key)


def _code_of_pickle(key: Any) -> int:
    if forgotten_call(key):
        raise KeySelectorError(f"the key selector returned the method {shorten(key)}: call it")
    try:
        return crc32(pickle.dumps(key, 4))
    except Exception as error:
        raise KeySelectorError(
            f"the key {shorten(key)} of type {type(key).__name__} cannot be hashed the same way in every process: "
            "return a string, number, tuple, Row, enum or frozen dataclass from the key selector"
        ) from error


def _check_equality(key: Any) -> None:
    kind: Any = type(key)
    if kind.__eq__ is object.__eq__:
        raise KeySelectorError(
            f"the key {shorten(key)} is equal only to itself: its class {kind.__name__} needs __eq__ and __hash__ "
            "(a frozen dataclass has both)"
        )


_BUILT_IN = frozenset({int, str, bool, float, bytes, type(None)})


def never_changes(key: Any) -> bool:
    """Whether the hash of a key can never change, because it contains no user-defined class.

    >>> never_changes(("a", 1)), never_changes(dt.date(2024, 1, 1))
    (True, False)
    """
    kind = type(key)
    return kind in _BUILT_IN or (kind is tuple and all(map(never_changes, key)))


def spread(code: int) -> int:
    """Scramble a code, so that the codes of similar keys are spread over all key groups.

    It is a single multiplication, because it runs for every key that a task has not seen recently, and Python
    arithmetic is slow.
    """
    return (code * 0x9E3779B97F4A7C15 >> 20) & _MASK32


def key_hash(key: Any) -> int:
    """Return the 32-bit hash that determines the key group and page of a key."""
    if type(key) is str and key.isascii():  # the most common keys, without three calls
        return (crc32(key.encode()) * 0x9E3779B97F4A7C15 >> 20) & _MASK32
    return spread(stable_code(key))


def key_hashes(keys: Collection[Any]) -> list[int]:
    """Return the hashes of many keys. Strings need no Python call per key.

    >>> key_hashes(["a", "b"]) == [key_hash("a"), key_hash("b")]
    True
    """
    if set(map(type, keys)) == {str}:
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            return [(code * 0x9E3779B97F4A7C15 >> 20) & _MASK32 for code in map(crc32, map(str.encode, keys))]
    return [key_hash(key) for key in keys]


def key_group_for(key: Any, max_parallelism: int) -> int:
    """Return the key group of a key.

    >>> key_group_for("sensor_1", 128) == key_group_for("sensor_1", 128)
    True
    """
    return key_hash(key) % max_parallelism


def subtask_for_key_group(key_group: int, parallelism: int, max_parallelism: int) -> int:
    """Return the subtask that owns a key group.

    >>> [subtask_for_key_group(g, 3, 128) for g in (0, 42, 43, 85, 86, 127)]
    [0, 0, 1, 1, 2, 2]
    """
    return key_group * parallelism // max_parallelism


def key_group_range(subtask: int, parallelism: int, max_parallelism: int) -> range:
    """Return the key groups of a subtask.

    >>> [key_group_range(i, 3, 128) for i in range(3)]
    [range(0, 43), range(43, 86), range(86, 128)]
    """
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    end = ((subtask + 1) * max_parallelism + parallelism - 1) // parallelism
    return range(start, end)
