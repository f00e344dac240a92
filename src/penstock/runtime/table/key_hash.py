"""Hash whole columns of keys, with the same results as `records/key_groups.py` for single keys.

The exchange decides by columns where a row goes. Pages, savepoints and rescaling decide by single keys where its state
is. Both must always agree, so this module computes the same function. Integers are hashed by columns, CRC-32 step by
step; other types are hashed key by key, but each distinct value only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.runtime.records.key_groups import stable_code
from penstock.runtime.table.keys import encode_column, key_values

_U32, _U64, _I64 = pa.uint32(), pa.uint64(), pa.int64()
_BYTE, _EIGHT = pa.scalar(0xFF, _U32), pa.scalar(8, _U32)
_ONES = pa.scalar(0xFFFFFFFF, _U32)
_MODULUS = (1 << 61) - 1  # of Python's hash of a number


def _crc_table() -> pa.UInt32Array:
    """Return the CRC-32 of each byte, without the inversions before and after."""
    table = []
    for byte in range(256):
        code = byte
        for _ in range(8):
            code = (code >> 1) ^ (0xEDB88320 if code & 1 else 0)
        table.append(code)
    return pa.array(table, _U32)


_TABLE = _crc_table()


def key_hashes(columns: Sequence[pa.Array], rows: int) -> pa.UInt64Array:
    """Return the 32-bit hash of every row's key, as unsigned 64-bit numbers.

    >>> from penstock.runtime.records.key_groups import key_hash
    >>> numbers = pa.array([7, -1, None])
    >>> key_hashes([numbers], 3).to_pylist() == [key_hash(7), key_hash(-1), key_hash(None)]
    True
    """
    if len(columns) == 1:
        return _spread(_codes(columns[0]))
    total = pa.repeat(pa.scalar(1, _U32), rows)
    factor = pa.scalar(31, _U32)
    for column in columns:  # unsigned arithmetic wraps; the hash of single keys uses a mask
        total = pc.add(pc.multiply(total, factor), _codes(column))
    return _spread(total)


def channels_of(hashes: pa.UInt64Array, channels: int, max_parallelism: int) -> pa.UInt64Array:
    """Return the channel of every row: its key group, then the subtask that owns the group."""
    groups_count = pa.scalar(max_parallelism, _U64)
    groups = pc.subtract(hashes, pc.multiply(pc.divide(hashes, groups_count), groups_count))
    return pc.divide(pc.multiply(groups, pa.scalar(channels, _U64)), groups_count)


def _spread(codes: pa.UInt32Array) -> pa.UInt64Array:
    product = pc.multiply(codes.cast(_U64), pa.scalar(0x9E3779B97F4A7C15, _U64))
    return pc.bit_wise_and(pc.shift_right(product, pa.scalar(20, _U64)), pa.scalar(0xFFFFFFFF, _U64))


def _codes(column: pa.Array) -> pa.UInt32Array:
    kind = column.type
    if pt.is_signed_integer(kind) or pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_time(kind):
        wide = column.cast(pa.int32()).cast(_I64) if pt.is_date32(kind) or pt.is_time32(kind) else column.cast(_I64)
        return _codes_of_integers(wide)
    encoded = encode_column(column)
    return pa.array(_codes_one_by_one(encoded.dictionary), _U32).take(encoded.indices)


def _codes_one_by_one(values: pa.Array) -> list[int]:
    if pt.is_string(values.type):
        return [0 if value is None else crc32(value) for value in values.cast(pa.binary()).to_pylist()]
    return [stable_code(value) for value in key_values(values)]


def _codes_of_integers(column: pa.Int64Array) -> pa.UInt32Array:
    hashed = _python_hash(column)
    bits = hashed.view(_U64)
    low = pc.bit_wise_and(bits, pa.scalar(0xFFFFFFFF, _U64)).cast(_U32)
    high = pc.shift_right(bits, pa.scalar(32, _U64)).cast(_U32)
    code: Any = pa.repeat(_ONES, len(column))
    for word in (low, high):
        for _ in range(4):
            index = pc.bit_wise_and(pc.bit_wise_xor(code, word), _BYTE)
            code = pc.bit_wise_xor(_TABLE.take(index), pc.shift_right(code, _EIGHT))
            word = pc.shift_right(word, _EIGHT)  # noqa: PLW2901 - the next byte
    code = pc.bit_wise_xor(code, _ONES)
    return pc.fill_null(code, pa.scalar(0, _U32)) if column.null_count else code


def _python_hash(column: pa.Int64Array) -> pa.Int64Array:
    """Return ``hash(n)`` of every number: n modulo 2**61 - 1 with the sign of n, and -2 for -1."""
    if not len(column):
        return column
    bounds = pc.min_max(column).as_py()
    if bounds["min"] is None:
        return column
    if bounds["min"] <= -_MODULUS or bounds["max"] >= _MODULUS:
        modulus = pa.scalar(_MODULUS, _I64)
        column = pc.subtract(column, pc.multiply(pc.divide(column, modulus), modulus))
    elif bounds["min"] >= 0:
        return column
    minus_one = pa.scalar(-1, _I64)
    return pc.if_else(pc.equal(column, minus_one), pa.scalar(-2, _I64), column)
