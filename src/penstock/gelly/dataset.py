"""Results: distributed collections of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from penstock.gelly.columns import concat, decode, public
from penstock.gelly.partitions import Bundle, Partitions

if TYPE_CHECKING:
    from penstock.gelly.environment import ExecutionEnvironment

__all__ = ["DataSet"]

T = TypeVar("T")


class DataSet(Generic[T]):
    """A distributed collection of records, computed on demand.

    :param name: the name of its tables in their bundles
    :param make: creates a record from the values of the columns
    """

    def __init__(
        self,
        env: ExecutionEnvironment,
        partitions: Partitions,
        name: str,
        columns: Sequence[str],
        make: Callable[..., T],
    ) -> None:
        self.env = env
        self._partitions = partitions
        self._name = name
        self._columns = tuple(columns)
        self._make = make

    def collect(self) -> list[T]:
        """Return all records as a local list."""
        table = self._table()
        return [
            self._make(*values)
            for values in zip(*[decode(table.column(name)) for name in table.column_names], strict=True)
        ]

    def __iter__(self) -> Iterator[T]:
        return iter(self.collect())

    def count(self) -> int:
        """Return the number of records."""
        counts = self.env.engine.narrow(partial(_count, self._name), [self._partitions])
        return sum(table.column(0)[0].as_py() for table in counts.collect("count"))

    def first(self, count: int) -> list[T]:
        """Return some of the records."""
        cut = self.env.engine.narrow(partial(_first, self._name, count), [self._partitions])
        return DataSet(self.env, cut, self._name, self._columns, self._make).collect()[:count]

    def print(self) -> None:
        """Print all records."""
        for record in self.collect():
            print(record)  # noqa: T201 - as in Flink

    def to_arrow(self) -> Any:
        """Return all records as a local Arrow table. Tuples become structs with the fields f0, f1, ..."""
        table = self._table()
        return pa.table({name: public(table.column(name)) for name in table.column_names})

    def to_dataframe(self) -> Any:
        """Return the records as a DataFrame. Tuples become structs with the fields f0, f1, ..."""
        engine = self.env.engine
        return engine.to_dataframe(engine.narrow(partial(_public, self._name), [self._partitions]), self._name)

    def to_stream(self, env: Any) -> Any:
        """Return the records as a bounded stream of a `StreamExecutionEnvironment`."""
        return env.from_collection(self.collect())

    def as_rows(self, names: Sequence[str]) -> Partitions:
        """Return the records as tables named ``rows``, with these column names."""
        return self.env.engine.narrow(partial(_renamed, self._name, tuple(names)), [self._partitions])

    def _table(self) -> Any:
        tables = self._partitions.collect(self._name)
        if not tables:
            return pa.table({name: pa.nulls(0) for name in self._columns})
        return concat(tables).select(list(self._columns))


def _count(name: str, channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if name in bundle:
        yield "count", pa.table({"count": [bundle[name].num_rows]})


def _first(name: str, count: int, channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if name in bundle:
        yield name, bundle[name].slice(0, count)


def _public(name: str, channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if name in bundle:
        table = bundle[name]
        yield name, pa.table({column: public(table.column(column)) for column in table.column_names})


def _renamed(name: str, names: tuple[str, ...], channel: int, bundle: Bundle) -> Iterator[tuple[str, Any]]:
    if name in bundle:
        yield "rows", bundle[name].rename_columns(list(names[: bundle[name].num_columns]))
