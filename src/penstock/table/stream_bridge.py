"""Conversions between streams and tables (T110 to T112).

This module imports both sides: streams, and the plan of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from penstock.common.typeinfo.decimal import DecimalTypeInfo
from penstock.common.typeinfo.temporal import LocalZonedTimestampTypeInfo
from penstock.common.types import Row
from penstock.core.table.type_information import as_type_information
from penstock.core.table.types import DataType, DataTypes
from penstock.datastream import DataStream
from penstock.graph.transformation import Transformation
from penstock.runtime.table.operators.input_conversion import InputConversionOperator
from penstock.runtime.table.operators.output_conversion import OutputConversionOperator
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.expression import Expression
from penstock.table.plan import ast
from penstock.table.plan.nodes.base import ALL_CHANGES, INSERT_ONLY, NO_KEYS, Changelog, Field, Rel, TimeAttribute
from penstock.table.plan.planner import Planner, parallelism_of
from penstock.table.schema import Schema, UnresolvedColumn
from penstock.util.exceptions import TableException, ValidationException

_TYPES: list[tuple[TypeInformation, DataType]] = [
    (Types.STRING(), DataTypes.STRING()),
    (Types.BOOLEAN(), DataTypes.BOOLEAN()),
    (Types.BYTE(), DataTypes.TINYINT()),
    (Types.SHORT(), DataTypes.SMALLINT()),
    (Types.INT(), DataTypes.INT()),
    (Types.LONG(), DataTypes.BIGINT()),
    (Types.FLOAT(), DataTypes.FLOAT()),
    (Types.DOUBLE(), DataTypes.DOUBLE()),
    (Types.BIG_DEC(), DataTypes.DECIMAL(38, 18)),
    (Types.BIG_INT(), DataTypes.DECIMAL(38, 0)),
    (Types.SQL_DATE(), DataTypes.DATE()),
    (Types.SQL_TIME(), DataTypes.TIME(0)),
    (Types.SQL_TIMESTAMP(), DataTypes.TIMESTAMP(6)),
    (LocalZonedTimestampTypeInfo(), DataTypes.TIMESTAMP_LTZ(6)),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), DataTypes.BYTES()),
]


@dataclass(frozen=True, slots=True)
class StreamOrigin:
    """The stream that a scan reads."""

    stream: DataStream
    names: tuple[str, ...] | None
    places: tuple[int, ...]
    types: tuple[DataType, ...]
    with_rowtime: bool
    changelog: Changelog
    upsert: bool = False

    def __call__(self, planner: Planner) -> Transformation:
        """Return the records as columns."""
        source = self.stream.get_transformation()
        operator = InputConversionOperator(self.names, self.places, self.types, with_rowtime=self.with_rowtime)
        return planner.one_input(source, operator, "DataStreamToTable", parallelism=parallelism_of(source))


def stream_relation(stream: DataStream, schema: Schema | None, mode: ChangelogMode, resolver: Any, name: str) -> Rel:
    """Return a stream as a relation."""
    schema = schema or Schema()
    upsert = mode == ChangelogMode.upsert()
    if upsert and not schema.primary_key:
        raise ValidationException(
            "from_changelog_stream() in upsert mode needs a key: pass a Schema with .primary_key(...)"
        )
    derived = _derived_columns(stream.get_type())
    if not any(column.is_physical for column in schema.columns):
        if derived is None:
            raise ValidationException(
                f"the columns of stream '{stream.get_name()}' are unknown: declare its output type "
                "(output_type=Types.ROW_NAMED(...)) or pass a Schema with columns"
            )
        columns = tuple(UnresolvedColumn(column, type_) for column, type_ in derived)
        schema = replace(schema, columns=columns + schema.columns)
    rowtime = _source_watermark(schema)
    plan = resolver.schema(replace(schema, watermark=None) if rowtime is not None else schema)
    stored = [column for column in plan.columns if column.expression is None]
    physical = [column for column in stored if column.is_physical]
    metadata = [column for column in stored if not column.is_physical]
    if any(column.metadata_key != "rowtime" for column in metadata) or len(metadata) > 1:
        raise ValidationException("the only metadata column of a stream is 'rowtime', the timestamp of each record")
    names, places = _places([column.name for column in physical], derived, stream.get_type())
    changelog = INSERT_ONLY if mode == ChangelogMode.insert_only() else ALL_CHANGES
    types = tuple(column.type for column in physical)
    origin = StreamOrigin(stream, names, places, types, bool(metadata), changelog, upsert)
    known = [column.name for column in physical]
    key = tuple(known.index(column) for column in plan.primary_key) if upsert else ()
    rel: Rel = resolver.relation(name, plan, origin, _Keys(key))
    if rowtime is not None:
        fields = [replace(one, time=TimeAttribute.ROWTIME) if one.name == rowtime else one for one in rel.fields]
        rel = replace(rel, fields=tuple(fields))
    return rel


@dataclass(frozen=True, slots=True)
class _Keys:
    primary_key: tuple[int, ...] = ()
    identity: None = None


def _derived_columns(type_: TypeInformation) -> list[tuple[str, DataType]] | None:
    if isinstance(type_, RowTypeInfo):
        names, types = list(type_.get_field_names()), type_.get_field_types()
    elif isinstance(type_, TupleTypeInfo):
        types = type_.get_field_types()
        names = [f"f{index}" for index in range(len(types))]
    else:
        names, types = ["f0"], [type_]
    found = [_data_type(one) for one in types]
    known = [one for one in found if one is not None]
    return list(zip(names, known, strict=True)) if len(known) == len(found) else None


def _data_type(type_: TypeInformation) -> DataType | None:
    for known, data_type in _TYPES:
        if known == type_:
            return data_type
    if isinstance(type_, DecimalTypeInfo):
        return DataTypes.DECIMAL(type_.precision, type_.scale)
    if isinstance(type_, (RowTypeInfo, TupleTypeInfo)):
        columns = _derived_columns(type_)
        return None if columns is None else DataTypes.ROW([DataTypes.FIELD(name, one) for name, one in columns])
    return None


def _places(
    names: list[str], derived: list[tuple[str, DataType]] | None, type_: TypeInformation
) -> tuple[tuple[str, ...] | None, tuple[int, ...]]:
    """Return the fields of records by name and by position."""
    if derived is None:
        return tuple(names), tuple(range(len(names)))
    known = [name for name, _ in derived]
    missing = [name for name in names if name not in known]
    if missing:
        raise ValidationException(
            f"Unable to find a field named '{missing[0]}' in the stream: its fields are {', '.join(known)}"
        )
    places = tuple(known.index(name) for name in names)
    return (tuple(names) if isinstance(type_, (RowTypeInfo, TupleTypeInfo)) else None), places


def _source_watermark(schema: Schema) -> str | None:
    """Return the rowtime column if it uses the stream's own watermarks."""
    spec = schema.watermark
    if spec is None:
        return None
    expression = spec.expression
    if isinstance(expression, str):
        is_source = "".join(expression.split()).upper() == "SOURCE_WATERMARK()"
    else:
        is_source = isinstance(expression, ast.FunctionCall) and expression.name.upper() == "SOURCE_WATERMARK"
    return spec.column if is_source else None


def table_stream(planner: Planner, env: Any, relation: Rel, mode: ChangelogMode) -> DataStream:
    """Return a relation as a stream of rows with names and kinds."""
    relation = planner.optimize(relation)
    changes = planner.changelog(relation)
    if mode == ChangelogMode.insert_only() and not changes.insert_only:
        raise TableException(
            "Table sink 'Unregistered_DataStream_Sink' doesn't support consuming update and delete changes which is "
            f"produced by node {relation.describe()}: use to_changelog_stream()"
        )
    if mode == ChangelogMode.upsert() and not changes.insert_only and planner.upsert_keys(relation) == NO_KEYS:
        raise TableException("to_changelog_stream() in upsert mode needs a query whose rows have a key")
    source = planner.translate(relation, update_before=mode == ChangelogMode.all())
    rowtimes = [index for index, one in enumerate(relation.fields) if one.time is TimeAttribute.ROWTIME]
    if len(rowtimes) > 1:
        names = ", ".join(relation.fields[index].name for index in rowtimes)
        raise TableException(f"a stream has one timestamp for each record, found the rowtime columns {names}")
    operator = OutputConversionOperator(
        [one.type for one in relation.fields], relation.names, rowtimes[0] if rowtimes else None
    )
    made = planner.one_input(source, operator, "TableToDataStream")
    made.output_type = Types.ROW_NAMED(relation.names, [_type_information(one) for one in relation.fields])
    return DataStream(env, made)


def _type_information(field: Field) -> TypeInformation:
    try:
        made: TypeInformation = as_type_information(field.type)
    except Exception:
        return Types.PICKLED_BYTE_ARRAY()
    return made


def schema_and_names(given: Sequence[Any]) -> tuple[Schema | None, list[str]]:
    """Split the arguments after the stream in ``from_data_stream``: a Schema, or columns as expressions."""
    if len(given) == 1 and (given[0] is None or isinstance(given[0], Schema)):
        return given[0], []
    names = []
    for one in given:
        node = one.node if isinstance(one, Expression) else None
        if not isinstance(node, ast.Ref) or len(node.path) != 1:
            raise ValidationException(f"from_data_stream() takes a Schema or col(...) expressions, got {one!r}")
        names.append(node.path[0])
    return None, names


def values_of(type_: TypeInformation) -> Callable[[Row], Any]:
    """Return the conversion from a table's row to a record of a type: a row, a tuple, or the only value."""
    if isinstance(type_, RowTypeInfo):
        names = type_.get_field_names()
        return lambda row: Row(**dict(zip(names, row, strict=True)))
    if isinstance(type_, TupleTypeInfo):
        return tuple
    return lambda row: row[0]
