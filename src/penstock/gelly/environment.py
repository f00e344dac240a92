"""The environments in which graphs are computed: on Spark, or in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError, shorten
from penstock.datastream.execution_defaults import current_defaults
from penstock.gelly.columns import concat, encode
from penstock.gelly.partitions import CollectionsEngine, Engine, Partitions

__all__ = ["ExecutionEnvironment", "SuperstepReport"]

_BYTES_PER_FRAME = 1 << 18


class SuperstepReport(NamedTuple):
    """The statistics of a superstep."""

    name: str
    superstep: int
    active: int
    """The number of vertices for which the function was called, or that changed."""
    messages: int
    """The number of messages sent, after combining."""
    aggregates: dict[str, Any]
    seconds: float


class ExecutionEnvironment:
    """Runs graph programs. Create it with :meth:`get_execution_environment` or :meth:`create_collections_environment`.

    >>> env = ExecutionEnvironment.create_collections_environment()
    >>> env.get_parallelism()
    2
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._listeners: list[Callable[[SuperstepReport], None]] = []
        self._show = sys.stderr.isatty()

    @staticmethod
    def get_execution_environment(spark: Any = None, parallelism: int | None = None) -> ExecutionEnvironment:
        """Return an environment on Spark: on this session, or on the embedded one, which is started if necessary.

        :param parallelism: the number of partitions; a task holds one partition in memory at a time, so more partitions
        need less memory; by default there is one per core
        """
        if spark is None and current_defaults().executor is not None:
            return ExecutionEnvironment.create_collections_environment(parallelism or 2)
        from penstock.datastream import StreamExecutionEnvironment
        from penstock.spark.arrow_partitions import SparkEngine

        if spark is None:
            streams = StreamExecutionEnvironment.get_execution_environment()
            spark = streams.spark_session(streams.job_settings(None))
        count = _checked(parallelism) if parallelism is not None else spark.sparkContext.defaultParallelism
        return ExecutionEnvironment(SparkEngine(spark, count, concat))

    @staticmethod
    def create_collections_environment(parallelism: int = 2) -> ExecutionEnvironment:
        """Return an environment in this process, without Spark, for tests and small graphs."""
        return ExecutionEnvironment(CollectionsEngine(_checked(parallelism)))

    def get_parallelism(self) -> int:
        """The number of partitions of every graph of this environment."""
        return self.engine.parallelism

    def print_progress(self, show: bool = True) -> ExecutionEnvironment:
        """Print a line for every superstep to standard error. By default, this happens only in a terminal."""
        self._show = show
        return self

    def add_superstep_listener(self, listener: Callable[[SuperstepReport], None]) -> ExecutionEnvironment:
        """Call this function after every superstep."""
        self._listeners.append(listener)
        return self

    def on_superstep(self, report: SuperstepReport) -> None:
        """Report a superstep to the terminal and the listeners."""
        if self._show:
            aggregates = "".join(f", {name} {shorten(value, 30)}" for name, value in report.aggregates.items())
            print(  # noqa: T201 - progress in a terminal
                f"{report.name}: superstep {report.superstep}, {report.active:,} active vertices, "
                f"{report.messages:,} messages{aggregates}, {report.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
        for listener in self._listeners:
            listener(report)

    def rows(self, data: Any, names: Sequence[str], required: int) -> Partitions:
        """Return rows of any kind as tables named ``rows``: a collection, an Arrow table, a DataFrame, a stream or a
        table.

        :param required: the minimum number of columns
        """
        from penstock.gelly.dataset import DataSet

        if isinstance(data, DataSet):
            return data.as_rows(names)
        of_engine = self.engine.source(data)
        if of_engine is not None:
            return of_engine
        return self.engine.scatter(self._frames(_to_table(data, names, required)))

    def _frames(self, table: Any) -> Iterable[tuple[int, str, Any]]:
        count = self.engine.parallelism
        if table.num_rows == 0:
            return
        size = -(-table.num_rows // max(count, table.nbytes // _BYTES_PER_FRAME))
        for number, start in enumerate(range(0, table.num_rows, size)):
            yield number % count, "rows", table.slice(start, size)


def _checked(parallelism: int) -> int:
    if parallelism < 1:
        raise InvalidProgramError(f"the parallelism is {parallelism}; it must be at least 1")
    return parallelism


def no_spark() -> UnsupportedFeatureError:
    """Return the error for a DataFrame in an environment without Spark."""
    return UnsupportedFeatureError(
        "an environment from create_collections_environment() has no Spark and no DataFrames: use to_arrow(), or "
        "ExecutionEnvironment.get_execution_environment()"
    )


def _to_table(data: Any, names: Sequence[str], required: int) -> Any:
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data
    if hasattr(data, "execute_and_collect"):  # a bounded stream
        with data.execute_and_collect() as found:
            data = list(found)
    elif hasattr(data, "execute") and hasattr(data, "get_schema"):  # a table
        with data.execute().collect() as found:
            data = list(found)
    elif type(data).__module__.partition(".")[0] == "pyspark":
        raise no_spark()
    elif type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    elif isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise InvalidProgramError(
            f"{shorten(data)} is not a collection of records: pass a list of tuples, an Arrow table, a DataFrame, a "
            "bounded stream or a table"
        )
    rows = [_fields(row, names, required) for row in data]
    width = max(map(len, rows), default=required)
    columns = {}
    for position, name in enumerate(names[:width]):
        columns[name] = encode([row[position] if position < len(row) else None for row in rows])
    return pa.table(columns)


def _fields(row: Any, names: Sequence[str], required: int) -> Sequence[Any]:
    if isinstance(row, (tuple, list)) or (hasattr(row, "__getitem__") and hasattr(row, "__len__") and _is_row(row)):
        if required <= len(row) <= len(names):
            return list(row)
    elif required == 1 and isinstance(row, (int, str)):
        return [row]
    raise InvalidProgramError(
        f"record {shorten(row)} does not fit: it needs {required} to {len(names)} fields ({', '.join(names)})"
    )


def _is_row(value: Any) -> bool:
    return not isinstance(value, (str, bytes, dict))
