"""Savepoints as DataFrames, and DataFrames into savepoints. State moves only between files and executors."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow

from penstock.common.typeinfo import TypeInformation
from penstock.common.types import Row
from penstock.spark.package import ship_package

Read = Callable[[Any], Iterator[tuple[Any, ...]]]


def read_frame(
    spark: SparkSession, portions: list[Any], read: Read, types: dict[str, TypeInformation | None]
) -> DataFrame:
    """Return a DataFrame whose rows come from portions. A task reads each portion."""
    ship_package(spark.sparkContext)
    sample = next((row for portion in portions for row in read(portion)), ())
    names = list(types)
    ddl: list[str] = []
    for position, (name, known) in enumerate(types.items()):
        kind = known.to_ddl() if known is not None else ddl_of(sample[position] if sample else None)
        ddl.append(f"`{name}` {kind}")
    shapes = [part.partition("` ")[2] for part in ddl]

    reading = Shipped(read)

    def rows(portion: Any) -> Iterator[tuple[Any, ...]]:
        for row in reading(portion):
            yield tuple(spark_value(value, shape) for value, shape in zip(row, shapes, strict=False))[: len(names)]

    rdd = spark.sparkContext.parallelize(portions, max(1, len(portions))).flatMap(rows)
    return spark.createDataFrame(rdd, ", ".join(ddl))


def write_frame(
    frame: DataFrame,
    route: Callable[[Any, int], int] | None,
    fill: Callable[[int, int, Iterator[Any]], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Send rows to their parts, let a task write each part, and return the written parts."""
    ship_package(frame.sparkSession.sparkContext)
    filling = Shipped(fill)
    parts = 1 if route is None else max(1, frame.rdd.getNumPartitions())
    elements = frame.rdd.map(penstock_row)
    if route is None:
        elements = elements.coalesce(1)
    else:
        routing = Shipped(route)
        routed = elements.map(lambda row: (routing(row, parts), row))
        elements = routed.partitionBy(parts, lambda part: part).values()
    return elements.mapPartitionsWithIndex(lambda part, rows: iter([filling(part, parts, iter(rows))])).collect()


class Shipped:
    """A user's function for the workers, which import its modules from the same paths as this process."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, ([entry for entry in sys.path if entry], cloudpickle.dumps(self._function))


def _unpack(path: list[str], function: bytes) -> Shipped:
    sys.path += [entry for entry in path if entry not in sys.path]
    return Shipped(cloudpickle.loads(function))


def penstock_row(row: SparkRow) -> Row:
    """Convert Spark's row to a Penstock row."""
    made = Row(*(penstock_row(value) if isinstance(value, SparkRow) else value for value in row))
    names = getattr(row, "__fields__", None)
    if names:
        made.set_field_names(names)
    return made


_SCALARS: dict[type, str] = {bool: "boolean", int: "bigint", float: "double", str: "string", bytes: "binary"}


def ddl_of(value: Any) -> str:
    """Return Spark's type for a Python value. Values without a Spark type become strings.

    >>> ddl_of({"a": [1.5]})
    'map<string,array<double>>'
    """
    scalar = _SCALARS.get(type(value))
    if scalar is not None:
        return scalar
    if isinstance(value, (list, set, frozenset)) and value:
        return f"array<{ddl_of(next(iter(value)))}>"
    if isinstance(value, dict) and value:
        key, element = next(iter(value.items()))
        return f"map<{ddl_of(key)},{ddl_of(element)}>"
    fields = _fields(value)
    if fields:
        return f"struct<{','.join(f'`{name}`:{ddl_of(part)}' for name, part in fields.items())}>"
    return "string"


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Row) and value.get_field_names() is not None:
        return value.as_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or [f"f{index}" for index in range(len(value))]
        return dict(zip(names, value, strict=True))
    return None


def spark_value(value: Any, shape: str) -> Any:
    """Convert a Python value to Spark's form for a type."""
    if value is None or type(value) in _SCALARS:
        return str(value) if shape == "string" and value is not None else value
    if shape == "string":
        return repr(value)
    if isinstance(value, (list, set, frozenset)):
        inner = shape[len("array<") : -1]
        return [spark_value(element, inner) for element in value]
    if isinstance(value, dict):
        return value
    fields = _fields(value)
    return value if fields is None else tuple(spark_value(part, "") for part in fields.values())
