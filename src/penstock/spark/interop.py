"""Streams as Spark DataFrames, so that every Spark writer is a sink.

It imports the parts that it connects: the plan of a job, and its execution on Spark.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import Row as SparkRow
from pyspark.sql.types import StructType

from penstock.common.errors import InvalidProgramError, TypeMismatchError, shorten
from penstock.common.job_id import JobID
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.core.sink import HandOverWriter, Sink, SinkWriter, WriterInitContext
from penstock.graph.job_graph import job_spec, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import SinkTransformation, Transformation
from penstock.runtime.checkpoint.checkpoint_coordinator import CheckpointCoordinator
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.exchange.frames import REPORT_EDGE, decode_frame
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.job.job_progress import JobProgress
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.source.batch_sizer import BatchSizer
from penstock.runtime.source.source_coordinator import SourceCoordinator
from penstock.runtime.task.stage import decode_reports
from penstock.spark.batch_planning import StreamingPlanning, WholeInput
from penstock.spark.compiler import compile_batch, compile_streaming
from penstock.spark.plan_nodes import map_in_arrow
from penstock.spark.session import session_for
from penstock.spark.source_server import SourceServer

_ALL = 1 << 60
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2}))?")


class RowSink(Sink):
    """Passes records on with the task's report."""

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Return a writer that collects the records of a batch."""
        return HandOverWriter()


def to_dataframe(stream: Any, schema: StructType | str | None) -> DataFrame:
    """Return the records of a DataStream as a DataFrame of the environment's Spark session."""
    env = stream.get_execution_environment()
    settings = env.job_settings(None)
    return stream_to_dataframe(env.spark_session(settings), stream.get_transformation(), settings, schema)


def stream_to_dataframe(
    session: Any, transformation: Transformation, settings: JobSettings, schema: StructType | str | None
) -> DataFrame:
    """Return a DataFrame of a stream's records: streaming, unless the job runs in BATCH mode. Spark runs it lazily."""
    struct = _schema(transformation, schema)
    sink = SinkTransformation(name="To DataFrame", input=transformation, operator=SinkOperator(RowSink()))
    graph = translate([sink], settings)
    spark = session_for(session, shuffle_partitions=graph.channels)
    batch = graph.runs_as_batch
    job_id, parallelism = str(JobID()), spark.sparkContext.defaultParallelism
    sources = SourceCoordinator(
        graph.source_vertices, external=graph.external_sources, sizer=BatchSizer(_ALL if batch else None)
    )
    checkpoints = CheckpointCoordinator(graph.vertices, JobLife(job_id, graph.name), JobProgress(graph))
    checkpoints.start(job_id, MemoryCheckpointStorage())
    checkpoints.open(sources)
    whole = WholeInput(checkpoints.begin_whole_input, parallelism)
    server = SourceServer(whole if batch else StreamingPlanning(checkpoints, parallelism))
    atexit.register(server.close)
    spec = job_spec(graph, job_id, 0, batch=batch)
    compiled = (compile_batch if batch else compile_streaming)(spark, spec, server, graph.frames)
    return map_in_arrow(compiled, _ToRows(struct, str(spark.conf.get("spark.sql.session.timeZone"))), struct)


def _schema(transformation: Transformation, schema: StructType | str | None) -> StructType:
    if isinstance(schema, StructType):
        return schema
    text = schema
    if text is None:
        text = _ddl(transformation.output_type)
    if text is None:
        raise InvalidProgramError(
            f"to_dataframe() on '{transformation.name}' needs a schema, for instance "
            "to_dataframe('id string, temperature double'): the stream has no declared row type"
        )
    parsed = StructType.fromDDL(text)
    assert isinstance(parsed, StructType)
    return parsed


def _ddl(output_type: TypeInformation | None) -> str | None:
    if isinstance(output_type, RowTypeInfo):
        names, types = output_type.get_field_names(), output_type.get_field_types()
    elif isinstance(output_type, TupleTypeInfo):
        types = output_type.get_field_types()
        names = [f"f{position}" for position in range(len(types))]
    elif output_type is not None:
        names, types = ["value"], [output_type]
    else:
        return None
    return ", ".join(f"`{name}` {kind.to_ddl()}" for name, kind in zip(names, types, strict=True))


class _ToRows:
    """Converts task reports to rows of the user's schema. The user's own query raises its errors, untranslated."""

    def __init__(self, schema: StructType, time_zone: str) -> None:
        self._schema = schema
        self._time_zone = time_zone

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(self._schema, timezone=self._time_zone)
        for batch in batches:
            for data in batch.column(1).to_pylist():
                if decode_frame(data).edge == REPORT_EDGE:
                    for report in decode_reports(data):
                        for _, values in report.committables:
                            yield to_record_batch(values, arrow_schema)


def to_record_batch(values: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Convert records to an Arrow batch: tuples and Rows by position or name, dicts and objects by name, or scalars."""
    names = schema.names
    rows = [_fields(value, names) for value in values]
    try:
        arrays = [_array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise TypeMismatchError(
            f"a record does not fit the DataFrame's schema ({error}); one of {shorten(values)}"
        ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    convert = _converter(kind)
    return pa.array(values if convert is None else [_if_any(value, convert) for value in values], kind)


def _if_any(value: Any, convert: Callable[[Any], Any]) -> Any:
    return None if value is None else convert(value)


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return a conversion from a record's value to Arrow's value for this type, or None if they are the same."""
    if pa.types.is_struct(kind):
        names = [kind.field(position).name for position in range(kind.num_fields)]
        converters = [_converter(kind.field(position).type) or _same for position in range(kind.num_fields)]
        return lambda value: {
            name: _if_any(field, convert)
            for name, field, convert in zip(names, _fields(value, names), converters, strict=True)
        }
    if pa.types.is_map(kind):
        of_key, of_value = _converter(kind.key_type) or _same, _converter(kind.item_type) or _same
        return lambda value: [(of_key(key), _if_any(item, of_value)) for key, item in dict(value).items()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_element = _converter(kind.value_type)
        return None if of_element is None else lambda value: [_if_any(element, of_element) for element in value]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return partial(_in_zone, _zone(kind.tz))
    return None


def _same(value: Any) -> Any:
    return value


def _zone(name: str) -> tzinfo:
    """Return a time zone of Spark: a name, ``Z``, or an offset such as ``+01:00`` and ``GMT+8``."""
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return ZoneInfo("UTC" if name == "Z" else name)
    sign, hours, minutes = offset.groups(default="0")
    return timezone((-1 if sign == "-" else 1) * timedelta(hours=int(hours), minutes=int(minutes)))


def _in_zone(zone: tzinfo, value: Any) -> Any:
    """Put a time without a zone into the session's zone, as everywhere in Spark. Arrow would take it as UTC."""
    return value.replace(tzinfo=zone) if isinstance(value, datetime) and value.tzinfo is None else value


def _fields(value: Any, names: list[str]) -> Sequence[Any]:
    if isinstance(value, Row) and set(names) <= set(getattr(value, "_fields", None) or ()):
        return [value[name] for name in names]
    if isinstance(value, (tuple, list, Row, SparkRow)) and len(value) == len(names):
        return list(value)
    if isinstance(value, dict):
        return [value.get(name) for name in names]
    if len(names) == 1 and not hasattr(value, names[0]):
        return [value]
    if isinstance(value, (tuple, list, Row, SparkRow)) and not hasattr(value, names[0]):
        raise TypeMismatchError(
            f"record {shorten(value)} has {len(value)} fields, but there are {len(names)} columns: {', '.join(names)}"
        )
    try:
        return [getattr(value, name) for name in names]
    except AttributeError as error:
        raise TypeMismatchError(
            f"record {shorten(value)} does not fit the columns {', '.join(names)}: {error}"
        ) from None
