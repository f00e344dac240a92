"""What a checkpoint directory says about the job that wrote it, so that another job does not misread it."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from penstock.common.errors import InvalidProgramError
from penstock.graph.job_graph import JobGraph

_FILE = "penstock.json"
_VERSION = 1


def check_checkpoint(spark: SparkSession, directory: str, graph: JobGraph, job_id: str) -> str:
    """Write the job's shape into a new checkpoint; refuse an old one that the job cannot continue.

    Returns the id of the job that began the checkpoint: sinks know their files and transactions by it.
    """
    shape = {**_shape(graph), "job": job_id}
    known = _read(spark, directory)
    if known is None:
        _write(spark, directory, shape)
        return job_id
    if known["version"] != _VERSION:
        raise InvalidProgramError(
            f"the checkpoint in {directory} was written by another version of Penstock (format {known['version']}, "
            f"this one reads {_VERSION})"
        )
    if known["channels"] != shape["channels"]:
        raise InvalidProgramError(
            f"the checkpoint in {directory} was written with parallelism {known['channels']}, this job has "
            f"{shape['channels']}: run it with the same parallelism, or with an empty checkpoint directory"
        )
    for level, (before, now) in enumerate(zip(known["stages"], shape["stages"], strict=False), start=1):
        for operator_id, name in before.items():
            if operator_id not in now:
                raise InvalidProgramError(
                    f"the checkpoint in {directory} has state of operator '{name}' in stage {level}, which this "
                    "job does not have there: give stateful operators a uid() and keep the shape of the job, or use an "
                    "empty checkpoint directory"
                )
    if len(known["stages"]) != len(shape["stages"]):
        raise InvalidProgramError(
            f"the checkpoint in {directory} belongs to a job of {len(known['stages'])} stages, this one has "
            f"{len(shape['stages'])}: use an empty checkpoint directory"
        )
    return str(known.get("job", job_id))


def _shape(graph: JobGraph) -> dict[str, Any]:
    stages: list[dict[str, str]] = [{} for _ in range(graph.levels)]
    for vertex in graph.vertices:
        for chained in vertex.operators:
            if vertex.level and chained.operator is not None and (chained.operator.keyed or chained.operator.stateful):
                stages[vertex.level - 1][chained.operator_id] = chained.name
    return {"version": _VERSION, "channels": graph.channels, "stages": stages}


def _file_system(spark: SparkSession, directory: str) -> tuple[Any, Any]:
    """Hadoop's file system for the directory, and the path of the file: any storage Spark can write to."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(directory, _FILE)
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


def _read(spark: SparkSession, directory: str) -> dict[str, Any] | None:
    file_system, path = _file_system(spark, directory)
    if not file_system.exists(path):
        return None
    stream = file_system.open(path)
    try:
        text = bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()
    try:
        content: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InvalidProgramError(f"the file {_FILE} in checkpoint {directory} is damaged: {error}") from None
    return content


def _write(spark: SparkSession, directory: str, shape: dict[str, Any]) -> None:
    file_system, path = _file_system(spark, directory)
    file_system.mkdirs(path.getParent())
    stream = file_system.create(path, True)
    try:
        stream.write(bytearray(json.dumps(shape, indent=2).encode()))
    finally:
        stream.close()
