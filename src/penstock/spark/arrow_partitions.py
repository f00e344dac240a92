"""Partitioned bundles of Arrow tables as RDDs of frames.

A frame is a table of a bundle in Arrow's stream format, with its channel: Spark moves a few large byte strings instead
of rows. All collections of an engine have the same partitioner, so the inputs of a step are united partition by
partition, without a shuffle. The output of an exchange is in Spark's shuffle files, from which later steps read it
again. An extra partition contains what a kernel reports to the driver, so reading a report reads nothing else.
"""

from __future__ import annotations

import collections
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.spark.failures import portable_error, raise_encoded
from penstock.spark.hadoop_directory import HadoopDirectory
from penstock.spark.package import ship_package
from penstock.spark.plan_nodes import map_in_arrow
from penstock.spark.session import failure_of
from penstock.spark.worker_tuning import tune_worker

__all__ = ["ArrowPartitions", "SparkEngine"]

DRIVER = -1
_FRAME_BYTES = 8 << 20
_numbers = itertools.count()

Frame = tuple[int, str, Any]
_Element = tuple[int, tuple[int, str, bytes]]  # channel, (collection, name of the table, table)


class ArrowPartitions:
    """A collection: the RDD of its frames, and its number, which distinguishes the frames of several inputs."""

    def __init__(self, engine: SparkEngine, number: int, rdd: Any) -> None:
        self.engine = engine
        self.number = number
        self.rdd = rdd

    def collect(self, name: str) -> list[Any]:
        """Return the tables with this name, one for each partition that has one."""
        wanted = self.rdd.filter(partial(_is_named, name))
        found: dict[int, list[Any]] = {}
        for channel, (_, _, data) in self.engine.run(wanted.collect):
            found.setdefault(channel, []).append(from_bytes(data))
        return [self.engine.concat(tables) for _, tables in sorted(found.items())]

    def report(self) -> list[Any]:
        """Return what the exchange has sent to the driver."""
        context, last = self.engine.context, self.engine.parallelism
        elements = self.engine.run(lambda: context.runJob(self.rdd, list, [last]))
        return [from_bytes(data) for _, (_, _, data) in elements]

    def persist(self) -> ArrowPartitions:
        """Keep the collection in memory, or on disk if memory is short."""
        self.rdd.persist(StorageLevel.MEMORY_AND_DISK)
        return self

    def release(self) -> None:
        """Release what `persist` keeps."""
        self.rdd.unpersist()

    def cut_lineage(self) -> None:
        """Keep the computed collection on the executors, and drop the lineage to compute it again."""
        self.rdd.localCheckpoint()


class SparkEngine:
    """Computes partitions with Spark.

    :param concat: combines the tables of one name
    """

    def __init__(self, spark: SparkSession, parallelism: int, concat: Callable[[Sequence[Any]], Any]) -> None:
        self.spark = spark
        self.concat = concat
        self._parallelism = parallelism
        ship_package(self.context)

    @property
    def context(self) -> SparkContext:
        """Spark's context."""
        return self.spark.sparkContext

    @property
    def parallelism(self) -> int:
        """The number of partitions."""
        return self._parallelism

    def run(self, action: Callable[[], Any]) -> Any:
        """Run an action. Errors of tasks and of Spark are raised as Penstock's errors."""
        try:
            return action()
        except (PySparkException, Exception) as error:
            if "py4j" in type(error).__module__ or isinstance(error, PySparkException):
                raise failure_of(self.spark, error) from None
            raise

    def source(self, data: Any) -> ArrowPartitions | None:
        """Return a DataFrame's rows as tables named ``rows``, in Spark's own partitions."""
        if not isinstance(data, DataFrame):
            return None
        number = next(_numbers)
        frames = self.run(lambda: map_in_arrow(data, _to_frames).rdd)
        return ArrowPartitions(self, number, frames.map(partial(_from_row, number)))

    def scatter(self, frames: Iterable[Frame]) -> ArrowPartitions:
        """Distribute tables of the driver as a collection."""
        number = next(_numbers)
        elements = [(channel, (number, name, data)) for channel, name, table in frames for data in to_bytes(table)]
        return self._partitioned(number, self.context.parallelize(elements, self._parallelism))

    def narrow(self, kernel: Callable[..., Iterable[tuple[str, Any]]], inputs: Sequence[Any]) -> ArrowPartitions:
        """Run a step without an exchange."""
        number = next(_numbers)
        work = _Work(kernel, tuple(each.number for each in inputs), number, self._parallelism, self.concat, True)
        return ArrowPartitions(self, number, self._united(inputs).mapPartitionsWithIndex(work, True))

    def exchange(self, kernel: Callable[..., Iterable[Frame]], inputs: Sequence[Any]) -> ArrowPartitions:
        """Run a step with an exchange."""
        number = next(_numbers)
        united = self._united(inputs)
        # The partitions of a source are Spark's own. All others have an extra one for the driver.
        channels = self._parallelism if united.partitioner is not None else united.getNumPartitions()
        work = _Work(kernel, tuple(each.number for each in inputs), number, channels, self.concat, False)
        return self._partitioned(number, united.mapPartitionsWithIndex(work))

    def to_dataframe(self, partitions: Any, name: str) -> DataFrame:
        """Return the tables with this name as a DataFrame with the same columns."""
        kept = partitions.rdd.filter(partial(_is_named, name)).persist(StorageLevel.MEMORY_AND_DISK)
        schemas = [pa.ipc.read_schema(pa.py_buffer(data)) for data in self.run(kept.map(_schema_of).collect)]
        if not schemas:
            schemas = [pa.schema([])]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        struct = from_arrow_schema(schema)
        rows = self.spark.createDataFrame(kept.map(_data_of), "frame binary")
        return map_in_arrow(rows, partial(_rows_of, schema.serialize().to_pybytes()), struct)

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, partitions: Any, path: str) -> None:
        """Write a collection to a directory on any Hadoop file system."""
        self.delete(path)
        self.run(lambda: partitions.rdd.saveAsPickleFile(path))

    def load(self, path: str) -> ArrowPartitions:
        """Read what `save` has written."""
        number = next(_numbers)
        stored = self.run(lambda: self.context.pickleFile(path))
        return self._partitioned(number, stored.map(partial(_renumbered, number)))

    def write_note(self, path: str, note: dict[str, Any]) -> None:
        """Write a small file atomically."""
        folder, _, name = path.rpartition("/")
        HadoopDirectory(self.spark, folder).write(name, pickle.dumps(note))

    def read_note(self, path: str) -> dict[str, Any] | None:
        """Read a small file, or return None if it does not exist."""
        folder, _, name = path.rpartition("/")
        directory = HadoopDirectory(self.spark, folder)
        if name not in directory.names():
            return None
        found: dict[str, Any] = pickle.loads(directory.read(name))
        return found

    def delete(self, path: str) -> None:
        """Delete a directory, if it exists."""
        HadoopDirectory(self.spark, path).remove()

    # -- RDDs ----------------------------------------------------------------------------------------------------------

    def _united(self, inputs: Sequence[Any]) -> Any:
        """Return the frames of all inputs, partition by partition."""
        distinct = list({each.number: each.rdd for each in inputs}.values())
        if not distinct:
            return self.context.parallelize(range(self._parallelism), self._parallelism)
        united = distinct[0]
        for rdd in distinct[1:]:
            united = united.union(rdd)
        return united

    def _partitioned(self, number: int, elements: Any) -> ArrowPartitions:
        partitioned = elements.partitionBy(self._parallelism + 1, channel_of)
        # Both serializers write pickled lists. If they are identical, `union` does not serialize again.
        partitioned._jrdd_deserializer = self.context.serializer  # noqa: SLF001 - there is no public way
        return ArrowPartitions(self, number, partitioned)


def read_csv_files(
    engine: Any, path: str, columns: Mapping[str, type], delimiter: str, *, skip_first_line: bool
) -> DataFrame:
    """Read CSV files as a DataFrame. A line that does not fit is an error."""
    kinds = {int: "bigint", float: "double", str: "string", bool: "boolean"}
    schema = ", ".join(f"`{name}` {kinds[kind]}" for name, kind in columns.items())
    reader = engine.spark.read.schema(schema).option("mode", "FAILFAST").option("sep", delimiter)
    found: DataFrame = engine.run(lambda: reader.option("header", skip_first_line).csv(path))
    return found


def channel_of(channel: int) -> int:
    """Return the partition of a channel. The driver's channel is in the last one, because Spark takes the remainder."""
    return channel


class _Work:
    """Runs a kernel in a task."""

    def __init__(
        self,
        kernel: Callable[..., Iterable[Any]],
        inputs: tuple[int, ...],
        output: int,
        parallelism: int,
        concat: Callable[[Sequence[Any]], Any],
        narrow: bool,
    ) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.output = output
        self.parallelism = parallelism
        self.concat = concat
        self.narrow = narrow

    def __call__(self, channel: int, elements: Iterator[_Element]) -> Iterator[_Element]:
        tune_worker()
        if channel >= self.parallelism:
            # Spark gives this Python process to another task only if this task has read all its input.
            collections.deque(elements, maxlen=0)
            return
        try:
            bundles: dict[int, dict[str, list[Any]]] = {number: {} for number in self.inputs}
            if self.inputs:
                for _, (number, name, data) in elements:
                    bundles[number].setdefault(name, []).append(from_bytes(data))
            whole = {
                number: {name: self.concat(tables) for name, tables in bundle.items()}
                for number, bundle in bundles.items()
            }
            frames = self.kernel(channel, *[whole[number] for number in self.inputs])
            for frame in frames:
                to, name, table = (channel, *frame) if self.narrow else frame
                for data in to_bytes(table):
                    yield to, (self.output, name, data)
        except Exception as error:
            raise_encoded(portable_error(error))


def to_bytes(table: pa.Table) -> Iterator[bytes]:
    """Encode a table as frames of bounded size."""
    pieces = max(1, -(-table.nbytes // _FRAME_BYTES))
    rows = max(1, -(-table.num_rows // pieces))
    for start in range(0, max(table.num_rows, 1), rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(start, rows))
        yield sink.getvalue().to_pybytes()


def from_bytes(data: bytes) -> pa.Table:
    """Decode the table of a frame, without a copy."""
    return pa.ipc.open_stream(data).read_all()


def _is_named(name: str, element: _Element) -> bool:
    return element[1][1] == name


def _data_of(element: _Element) -> tuple[bytes]:
    return (element[1][2],)


def _schema_of(element: _Element) -> bytes:
    data: bytes = pa.ipc.open_stream(element[1][2]).schema.serialize().to_pybytes()
    return data


def _renumbered(number: int, element: _Element) -> _Element:
    channel, (_, name, data) = element
    return channel, (number, name, data)


def _from_row(number: int, row: Any) -> _Element:
    return 0, (number, "rows", bytes(row.frame))


def _to_frames(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Convert rows of a DataFrame to frames."""
    for batch in batches:
        for data in to_bytes(pa.Table.from_batches([batch])):
            yield pa.RecordBatch.from_pydict({"channel": ["0"], "frame": [data]})


def _rows_of(schema: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Convert frames to rows of a DataFrame."""
    wanted = pa.ipc.read_schema(pa.py_buffer(schema))
    for batch in batches:
        for data in batch.column(0):
            yield from from_bytes(data.as_py()).cast(wanted).combine_chunks().to_batches()
