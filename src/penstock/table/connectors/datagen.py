"""The connector ``datagen``: random or sequential values, with a count and a rate."""

from __future__ import annotations

import datetime as dt
import random
import string
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from penstock.connectors.ranges import RangeEnumerator, RangeSplit, even_splits
from penstock.connectors.rate_limit import RateLimitedEnumerator, RateLimiterStrategy
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.core.table.arrow import to_column
from penstock.core.table.type_rules import is_approximate, is_character, is_integer
from penstock.core.table.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
    VarBinaryType,
)
from penstock.runtime.table.batch import ColumnBatch
from penstock.table.connectors.base import ConnectorFactory, ResolvedTable, TableSource, connector
from penstock.table.plan.nodes.base import schema_of
from penstock.util.exceptions import ValidationException

_ENDLESS = 2**63 - 1
_CHUNK = 16_384
_LENGTH = 100

Generate = Callable[[random.Random, int], Any]
"""Creates a value from random numbers and the number of the row."""


class DataGenSource(Source):
    """Rows by number: the same number always gives the same row, so that replays are exact."""

    def __init__(self, table: ResolvedTable, count: int | None, rate: int | None) -> None:
        self._table = table
        self._count = count
        self._rate = rate

    def get_boundedness(self) -> Boundedness:
        """Return whether the source is bounded, by a number of rows or by a sequence."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self._count is None else Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with even, contiguous splits of the numbers."""
        enumerator = RangeEnumerator(even_splits(0, _ENDLESS if self._count is None else self._count, parallelism))
        return (
            enumerator
            if self._rate is None
            else RateLimitedEnumerator(enumerator, RateLimiterStrategy.per_second(self._rate))
        )

    def create_reader(self) -> SourceReader:
        """Create a reader that generates rows."""
        return _DataGenReader(self._table)

    def initial_offset(self, split: SourceSplit) -> int:
        """Return the first number of the split."""
        assert isinstance(split, RangeSplit)
        return split.start


class _DataGenReader(SourceReader):
    def __init__(self, table: ResolvedTable) -> None:
        self._schema = schema_of(table.fields)
        self._types = [field.type for field in table.fields]
        self._generators = [generator(field.name, field.type, table.options) for field in table.fields]

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        for low in range(start_offset, end_offset, _CHUNK):
            rows = range(low, min(low + _CHUNK, end_offset))
            source = random.Random(low)  # noqa: S311 - not for security
            columns = [
                to_column([generate(source, row) for row in rows], type_)
                for generate, type_ in zip(self._generators, self._types, strict=True)
            ]
            yield ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self._schema)), None


def generator(name: str, type_: DataType, options: dict[str, str]) -> Generate:
    """Return the generator of a column's values, from the options ``fields.<name>.*``."""
    prefix = f"fields.{name}."
    kind = options.get(prefix + "kind", "random")
    null_rate = float(options.get(prefix + "null-rate", "0"))
    if kind == "sequence":
        start = int(options[prefix + "start"])
        return lambda _, row: _as_type(start + row, type_)
    made = _random_value(type_, options, prefix)
    if not null_rate:
        return made
    return lambda source, row: None if source.random() < null_rate else made(source, row)


def _as_type(number: int, type_: DataType) -> Any:
    if is_character(type_):
        return str(number)
    return Decimal(number) if isinstance(type_, DecimalType) else float(number) if is_approximate(type_) else number


def _random_value(type_: DataType, options: dict[str, str], prefix: str) -> Generate:  # noqa: C901 - a case for each type
    low, high = options.get(prefix + "min"), options.get(prefix + "max")
    length = int(options.get(prefix + "length", "0"))
    match type_:
        case BooleanType():
            return lambda source, _: source.random() < 0.5
        case _ if is_integer(type_):
            half = 1 << (type_.bits - 1)  # type: ignore[attr-defined]
            least, most = int(low or -half), int(high or half - 1)
            return lambda source, _: source.randint(least, most)
        case _ if is_approximate(type_):
            least_f, most_f = float(low or 0), float(high or 1)
            return lambda source, _: source.uniform(least_f, most_f)
        case DecimalType():
            unit, top = Decimal(1).scaleb(-type_.scale), 10**type_.precision
            first, last = int(Decimal(low or 0) / unit), int(Decimal(high) / unit) if high else top - 1
            return lambda source, _: source.randint(first, last) * unit
        case CharType():
            size = type_.length
            return lambda source, _: _text(source, size)
        case _ if is_character(type_):
            return lambda source, _: _text(source, length or _LENGTH)
        case BinaryType() | VarBinaryType():
            return lambda source, _: source.randbytes(length or _LENGTH)
        case TimestampType() | LocalZonedTimestampType():
            past = _milliseconds(options.get(prefix + "max-past", "0"))
            return lambda source, _: dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=source.random() * past)
        case DateType():
            return lambda source, _: dt.datetime.now(dt.UTC).date()
        case TimeType():
            return lambda source, _: dt.datetime.now(dt.UTC).time().replace(microsecond=0)
        case ArrayType():
            element = _random_value(type_.element_type, options, prefix + "element.")
            return lambda source, row: [element(source, row) for _ in range(length or 3)]
        case MapType():
            key = _random_value(type_.key_type, options, prefix + "key.")
            value = _random_value(type_.value_type, options, prefix + "value.")
            return lambda source, row: {key(source, row): value(source, row) for _ in range(length or 3)}
        case MultisetType():
            element = _random_value(type_.element_type, options, prefix + "element.")
            return lambda source, row: {element(source, row): 1 for _ in range(length or 3)}
        case RowType():
            fields = [generator(one.name, one.data_type, _inner(options, prefix)) for one in type_.fields]
            return lambda source, row: [field(source, row) for field in fields]
    raise ValidationException(f"datagen cannot make values of type {type_}")


def _inner(options: dict[str, str], prefix: str) -> dict[str, str]:
    return {"fields." + key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}


def _text(source: random.Random, length: int) -> str:
    return "".join(source.choices(string.hexdigits[:16], k=length))


def _milliseconds(text: str) -> int:
    number = "".join(character for character in text if character.isdigit())
    unit = text[len(number) :].strip() or "ms"
    factors = {"ms": 1, "s": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    return int(number or 0) * factors.get(unit, 1)


class DataGenTableSource(TableSource):
    """A source of generated rows."""

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table

    def create(self) -> Source:
        """Create the source."""
        options = self._table.options
        counts = [int(options["number-of-rows"])] if "number-of-rows" in options else []
        for field in self._table.fields:
            prefix = f"fields.{field.name}."
            if options.get(prefix + "kind") == "sequence":
                if prefix + "start" not in options or prefix + "end" not in options:
                    raise ValidationException(f"'{prefix}start' and '{prefix}end' are required for a sequence")
                counts.append(int(options[prefix + "end"]) - int(options[prefix + "start"]) + 1)
        rate = int(options.get("rows-per-second", "10000"))
        return DataGenSource(self._table, min(counts) if counts else None, rate if rate < 2**31 - 1 else None)


@connector("datagen")
class DataGenFactory(ConnectorFactory):
    """``'connector' = 'datagen'``"""

    options: ClassVar[dict[str, str | None]] = {
        "rows-per-second": "10000",
        "number-of-rows": None,
        "fields....": None,
    }

    def source(self, table: ResolvedTable) -> TableSource:
        """Return the table as a source."""
        return DataGenTableSource(table)
