"""Conversion between Python values and Arrow columns, and computations on columns of ids."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.errors import InvalidProgramError, TypeMismatchError, shorten

_SIMPLE = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    type(None): pa.null(),
}


class PickledType(pa.ExtensionType):  # type: ignore[misc]
    """Values without an Arrow type: tuples, objects, values of mixed types."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "penstock.pickled")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> PickledType:
        return cls()

    def __hash__(self) -> int:
        return hash(self.extension_name)


pa.register_extension_type(PickledType())


def encode(values: Sequence[Any]) -> Any:
    """Encode Python values as an Arrow array: a plain column if all have one simple type, otherwise pickles.

    >>> encode([1, 2]).type
    DataType(int64)
    >>> decode(encode([(1, "a"), None]))
    [(1, 'a'), None]
    """
    kinds = set(map(type, values))
    if any(issubclass(kind, np.generic) for kind in kinds):
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        kinds = set(map(type, values))
    named = kinds - {type(None)}
    if len(named) <= 1 and kinds <= _SIMPLE.keys():
        kind = _SIMPLE[named.pop()] if named else pa.null()
        try:
            return pa.array(values, kind)
        except (OverflowError, pa.ArrowInvalid):
            pass  # an integer beyond 64 bits, or text with half a surrogate pair
    return pa.ExtensionArray.from_storage(
        PickledType(), pa.array([pickle.dumps(value, pickle.HIGHEST_PROTOCOL) for value in values], pa.binary())
    )


def decode(column: Any) -> list[Any]:
    """Return the Python values of a column."""
    if isinstance(column.type, PickledType):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [pickle.loads(data) for chunk in chunks for data in chunk.storage.to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def column_of(result: Any, length: int, function_name: str) -> Any:
    """Check the result of a function on batches, and return it as an Arrow array of the batch's length."""
    if isinstance(result, pa.Scalar):
        result = pa.repeat(result, length)
    elif isinstance(result, np.ndarray) and result.ndim == 1 and result.dtype != object:
        result = pa.array(result)
    elif not isinstance(result, (pa.Array, pa.ChunkedArray)):
        if isinstance(result, (str, bytes)) or not isinstance(result, Iterable):
            raise TypeMismatchError(
                f"{function_name} works on batches and must return one value per row, as an Arrow or numpy array, but "
                f"it returned {shorten(result)}"
            )
        result = encode(list(result))
    if len(result) != length:
        raise TypeMismatchError(f"{function_name} returned {len(result)} values for a batch of {length} rows")
    return flat(result)


def flat(column: Any) -> Any:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def numbers(column: Any) -> Any:
    """Return a column as a numpy array: numbers as such, other values as objects."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    found: Any = np.empty(len(column), dtype=object)
    found[:] = decode(column)
    return found


def from_numbers(array: Any) -> Any:
    """Convert the result of :func:`numbers` back."""
    return encode(array.tolist()) if array.dtype == object else pa.array(array)


def concat(tables: Sequence[Any]) -> Any:
    """Concatenate tables with the same columns. If types of a column differ, the result has a type for both."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0].schema
    if all(table.schema.equals(first) for table in tables):
        return pa.concat_tables(tables)
    filled = [table for table in tables if table.num_rows]
    if len(filled) < len(tables):
        return concat(filled) if filled else tables[0]
    columns = {}
    for name in first.names:
        parts = [table.column(name) for table in tables]
        kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
        if len(kinds) <= 1:
            kind = kinds.pop() if kinds else pa.null()
            chunks = [
                chunk if chunk.type == kind else nulls(len(chunk), kind) for part in parts for chunk in part.chunks
            ]
            columns[name] = pa.chunked_array(chunks, kind)
        else:
            columns[name] = pa.chunked_array([encode([value for part in parts for value in decode(part)])])
    return pa.table(columns)


def nulls(length: int, kind: Any) -> Any:
    """Return missing values of a type."""
    if isinstance(kind, PickledType):
        return encode_pickled([None] * length)
    return pa.nulls(length, kind)


def encode_pickled(values: Sequence[Any]) -> Any:
    """Encode any values as pickles."""
    return pa.ExtensionArray.from_storage(
        PickledType(), pa.array([pickle.dumps(value, pickle.HIGHEST_PROTOCOL) for value in values], pa.binary())
    )


def public(column: Any) -> Any:
    """Return a column that other systems can read: pickled tuples become structs with the fields f0, f1, ..."""
    if not isinstance(column.type, PickledType):
        return column
    values = [_plain(value) for value in decode(column)]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise TypeMismatchError(
            f"values such as {shorten(values[0])} cannot be stored in a column ({error}): first map them to numbers, "
            "strings, tuples or dictionaries"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or [f"f{position}" for position in range(len(value))]
        return {name: _plain(field) for name, field in zip(names, value, strict=True)}
    if isinstance(value, (list, set, frozenset)):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {str(name): _plain(field) for name, field in value.items()}
    if value is None or isinstance(value, (bool, int, float, str, bytes, date, datetime, Decimal)):
        return value
    raise TypeMismatchError(
        f"a value of type {type(value).__name__} cannot be stored in a column ({shorten(value)}): first map it to "
        "numbers, strings, tuples or dictionaries"
    )


# -- ids ---------------------------------------------------------------------------------------------------------------


def as_ids(column: Any, where: str) -> Any:
    """Convert a column of ids to the form in graphs: 64-bit integers or strings."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_ids(column.cast(kind.value_type), where)
    if column.null_count:
        raise InvalidProgramError(
            f"{where} has {column.null_count} missing ids: every id must be an integer or a string"
        )
    if len(column) == 0 or kind in (pa.int64(), pa.string()):
        return column
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    wrong = next((value for value in decode(column) if type(value) not in (int, str)), decode(column)[0])
    raise InvalidProgramError(
        f"{where}: ids are 64-bit integers or strings, all of the same type; one of them is {shorten(wrong)}"
    )


def channels_of(ids: Any, count: int) -> Any:
    """Return the partition of each id, by a hash that is the same in every process."""
    if len(ids) == 0:
        return np.zeros(0, dtype=np.int64)
    if pa.types.is_integer(ids.type):
        mixed = ids.to_numpy().astype(np.uint64)
    else:
        entries = flat(ids).dictionary_encode()
        sums = [zlib.crc32(text.encode()) for text in entries.dictionary.to_pylist()]
        mixed = np.array(sums, dtype=np.uint64)[entries.indices.to_numpy()]
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        mixed ^= mixed >> np.uint64(33)
    return (mixed % np.uint64(count)).astype(np.int64)


def split(table: Any, channels: Any, count: int) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a table by channel. Channels without rows are left out."""
    if count == 1:
        if table.num_rows:
            yield 0, table
        return
    order = np.argsort(channels, kind="stable")
    ends = np.cumsum(np.bincount(channels, minlength=count))
    table = table.take(pa.array(order))
    start = 0
    for channel, end in enumerate(ends.tolist()):
        if end > start:
            yield channel, table.slice(start, end - start)
        start = end


def positions(ids: Any, among: Any) -> Any:
    """Return the position of each id in the other column, or -1."""
    if len(ids) == 0 or len(among) == 0:
        return np.full(len(ids), -1, dtype=np.int64)
    if ids.type != among.type:
        raise InvalidProgramError(
            f"ids are integers in one place and strings in another: {shorten(ids[0].as_py())} and "
            f"{shorten(among[0].as_py())}"
        )
    found = pc.index_in(ids, value_set=flat(among))
    return flat(pc.fill_null(found, -1)).to_numpy().astype(np.int64)


def ordered(table: Any, *names: str) -> Any:
    """Sort the rows by these columns."""
    if table.num_rows < 2:
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))


def groups_of(ids: Any) -> tuple[Any, Any, Any]:
    """Group rows by id: return the distinct ids, the order that groups equal ids, and the start of each group.

    The starts have one more element: the number of rows.
    """
    if len(ids) == 0:
        return flat(ids), np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    entries = flat(ids).dictionary_encode()
    codes = entries.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(entries.dictionary)))])
    return entries.dictionary, order, starts
