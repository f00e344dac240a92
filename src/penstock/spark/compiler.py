"""Compiles a job graph to one Spark query: sources -> a stage per level -> rows for the driver."""

from __future__ import annotations

import atexit
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from penstock.runtime.task.job_blob import pack_job
from penstock.runtime.task.job_spec import JobSpec
from penstock.spark.batch_stage import BatchStage
from penstock.spark.data_source import FORMAT, PenstockSource
from penstock.spark.frame_stage import FrameStage
from penstock.spark.plan_nodes import map_in_arrow, transform_with_state
from penstock.spark.source_server import SourceServer
from penstock.spark.state_stage import StageProcessor

_ship_directory: Path | None = None


def ship_job(spark: SparkSession, spec: JobSpec) -> str:
    """Put the job where all workers find it, and return its file name.

    The file stays until the process ends: an executor that joins late fetches every file ever added.
    """
    global _ship_directory  # noqa: PLW0603
    if _ship_directory is None:
        _ship_directory = Path(mkdtemp(prefix="penstock-jobs-"))
        atexit.register(shutil.rmtree, _ship_directory, ignore_errors=True)
    name = f"penstock-{uuid4().hex}.job"
    path = _ship_directory / name
    path.write_bytes(pack_job(spec))
    spark.sparkContext.addFile(str(path))
    return name


def channel_keys(spark: SparkSession, channels: int) -> list[str]:
    """Return a grouping key for each channel that Spark's hash partitioning sends to the partition of this number."""
    jvm: Any = spark.sparkContext._jvm
    hashing = jvm.org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction
    string_type = jvm.org.apache.spark.sql.types.DataTypes.StringType
    keys: dict[int, str] = {}
    candidate = 0
    while len(keys) < channels:
        key = str(candidate)
        code = int(hashing.hash(jvm.org.apache.spark.unsafe.types.UTF8String.fromString(key), string_type, 42))
        code = (code & 0xFFFFFFFF) - (1 << 32) if code & 0x80000000 else code & 0xFFFFFFFF
        keys.setdefault(code % channels, key)
        candidate += 1
    return [keys[channel] for channel in range(channels)]


def _source_options(server: SourceServer, job_file: str, keys: list[str], levels: int) -> dict[str, str]:
    return {
        "address": server.address,
        "secret": server.secret.hex(),
        "job": job_file,
        "keys": ",".join(keys),
        "levels": str(levels),
    }


def compile_streaming(
    spark: SparkSession,
    spec: JobSpec,
    server: SourceServer,
    frames: dict[int, DataFrame] | None = None,
    directory: str | None = None,
    base: int = 0,
) -> DataFrame:
    """Return the streaming DataFrame of a job, whose rows are task reports. ``directory`` stores batch DataFrames."""
    spark.dataSource.register(PenstockSource)
    job_file = ship_job(spark, spec)
    keys = channel_keys(spark, spec.channels)
    frame = spark.readStream.format(FORMAT).options(**_source_options(server, job_file, keys, spec.levels)).load()
    for vertex_id, outside in (frames or {}).items():
        stream = outside
        if not outside.isStreaming:
            source = next(vertex for vertex in spec.vertices if vertex.id == vertex_id).operators[0]
            stream = snapshot(spark, outside, source.operator_id, directory or mkdtemp(prefix="penstock-frames-"))
        frame = frame.union(_adopted(spark, map_in_arrow(stream, FrameStage(job_file, vertex_id, keys, base))))
    for level in range(1, spec.levels + 1):
        frame = transform_with_state(frame.groupBy("channel"), StageProcessor(job_file, level, keys))
    return frame


def compile_batch(
    spark: SparkSession, spec: JobSpec, server: SourceServer, frames: dict[int, DataFrame] | None = None
) -> DataFrame:
    """Return the batch DataFrame of a job: the same stages with an exact exchange before each, without stored state."""
    spark.dataSource.register(PenstockSource)
    job_file = ship_job(spark, spec)
    channels = [str(channel) for channel in range(spec.channels)]
    frame = spark.read.format(FORMAT).options(**_source_options(server, job_file, channels, spec.levels)).load()
    for vertex_id, outside in (frames or {}).items():
        frame = frame.union(_adopted(spark, map_in_arrow(outside, FrameStage(job_file, vertex_id, channels))))
    for level in range(1, spec.levels + 1):
        frame = map_in_arrow(
            frame.repartitionById(spec.channels, frame.channel.cast("int")), BatchStage(job_file, level)
        )
    return frame


def snapshot(spark: SparkSession, frame: DataFrame, operator_id: str, directory: str) -> DataFrame:
    """Write a batch DataFrame once and return it as a stream, so that every attempt of the job reads the same rows."""
    path = f"{directory}/frames/{operator_id}"
    jvm: Any = spark.sparkContext._jvm
    written = jvm.org.apache.hadoop.fs.Path(f"{path}/_SUCCESS")
    if not written.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(written):
        frame.write.mode("overwrite").parquet(path)
    return spark.readStream.schema(frame.schema).parquet(path)


def _adopted(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the user's DataFrame in the job's own session, whose settings the query needs."""
    java_frame = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(  # type: ignore[union-attr]
        spark._jsparkSession, frame._jdf.logicalPlan()
    )
    return DataFrame(java_frame, spark)
