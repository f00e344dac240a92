"""What a checkpoint directory says about the job that wrote it, so that another job does not misread it.

The file also remembers where the job comes from (a savepoint), and where it went: a job that was rescaled continues in
a directory below, with another number of channels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.common.errors import InvalidProgramError
from penstock.graph.job_graph import JobGraph
from penstock.runtime.savepoint.restore import adopt_max_parallelism

_FILE = "penstock.json"
_VERSION = 1


@dataclass(slots=True)
class CheckpointRecord:
    """How a job starts in a checkpoint directory."""

    base: int = 0
    """Checkpoint ids go on from here: that of the savepoint the job started from."""
    savepoint: str | None = None
    """The savepoint to load, if nothing was committed since."""
    job_id: str = ""
    """The job that began the directory: sinks know their files and transactions by it."""


class CheckpointDirectory:
    """A checkpoint directory, on any storage that Spark can write to."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location
        self._known = self._read()

    # -- following a job that was rescaled ----------------------------------------------------------------------

    def newest(self) -> tuple[CheckpointDirectory, int | None]:
        """Where the job is now, and the parallelism it was given there."""
        directory, parallelism = self, None
        while directory._known is not None and "continued_in" in directory._known:
            parallelism = directory._known["parallelism"]
            name = directory._known["continued_in"]
            directory = CheckpointDirectory(self._spark, f"{self.location.rstrip('/')}/{name}")
        return directory, parallelism

    def continue_in(self, name: str, parallelism: int) -> None:
        """From now on the job is in another directory below the first one. This is the moment it is rescaled."""
        self._known = {**(self._known or {}), "continued_in": name, "parallelism": parallelism}
        self._write(self._known)

    # -- starting -----------------------------------------------------------------------------------------------

    def claim(self, graph: JobGraph, savepoint: str | None, base: int, job_id: str) -> CheckpointRecord:
        """Write the job's shape into a new directory; refuse an old one that the job cannot continue."""
        shape = _shape(graph)
        known = self._known
        if known is None:
            self._known = {**shape, "base": base, "savepoint": savepoint, "job": job_id}
            self._write(self._known)
            return CheckpointRecord(base, savepoint, job_id)
        self._check(known, shape)
        for vertex in graph.vertices:
            for chained in vertex.operators:
                groups = known.get("key_groups", {}).get(chained.operator_id)
                if groups is not None:
                    adopt_max_parallelism(groups, vertex, chained, graph.edges)
            vertex.split_parallelism = known.get("splits", {}).get(vertex.operators[0].operator_id)
        before = known.get("savepoint")
        if savepoint is not None and savepoint != before:
            raise InvalidProgramError(
                f"the checkpoint directory {self.location} already belongs to a job, which would be lost by starting "
                f"from the savepoint {savepoint}: use an empty checkpoint directory, or leave the savepoint out to "
                "continue that job"
            )
        return CheckpointRecord(known.get("base", 0), None if self.committed else before, known.get("job", job_id))

    @property
    def committed(self) -> bool:
        """Whether a batch was committed here."""
        file_system, path = self._path("commits")
        return bool(file_system.exists(path)) and any(
            str(status.getPath().getName()).isdigit() for status in file_system.listStatus(path)
        )

    def remove(self) -> None:
        """Remove the checkpoint."""
        file_system, path = self._path("")
        file_system.delete(path, True)

    def _check(self, known: dict[str, Any], shape: dict[str, Any]) -> None:
        where = f"the checkpoint in {self.location}"
        if known["version"] != _VERSION:
            raise InvalidProgramError(
                f"{where} was written by another version of Penstock (format {known['version']}, this one reads "
                f"{_VERSION})"
            )
        if known["channels"] != shape["channels"]:
            raise InvalidProgramError(
                f"{where} was written with parallelism {known['channels']}, this job has {shape['channels']}: run it "
                "with the same parallelism, take a savepoint to change it, or use an empty checkpoint directory"
            )
        for level, (before, now) in enumerate(zip(known["stages"], shape["stages"], strict=False), start=1):
            for operator_id, name in before.items():
                if operator_id not in now:
                    raise InvalidProgramError(
                        f"{where} has state of operator '{name}' in stage {level}, which this job does not have there: "
                        "give stateful operators a uid() and keep the shape of the job, or use an empty checkpoint "
                        "directory"
                    )
        if len(known["stages"]) != len(shape["stages"]):
            raise InvalidProgramError(
                f"{where} belongs to a job of {len(known['stages'])} stages, this one has {len(shape['stages'])}: use "
                "an empty checkpoint directory"
            )

    # -- the file -----------------------------------------------------------------------------------------------

    def _path(self, name: str) -> tuple[Any, Any]:
        """Hadoop's file system for the directory, and a path in it."""
        jvm: Any = self._spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(self.location)
        if name:
            path = jvm.org.apache.hadoop.fs.Path(path, name)
        return path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()), path

    def _read(self) -> dict[str, Any] | None:
        file_system, path = self._path(_FILE)
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
            raise InvalidProgramError(f"the file {_FILE} in checkpoint {self.location} is damaged: {error}") from None
        return content

    def _write(self, content: dict[str, Any]) -> None:
        """In one step: a crash leaves the old file or the new one."""
        file_system, path = self._path(_FILE)
        _, temporary = self._path(f".{_FILE}.tmp")
        file_system.mkdirs(path.getParent())
        stream = file_system.create(temporary, True)
        try:
            stream.write(bytearray(json.dumps(content, indent=2).encode()))
        finally:
            stream.close()
        if not file_system.rename(temporary, path):  # who cannot replace a file has to remove it first
            file_system.delete(path, False)
            file_system.rename(temporary, path)


def _shape(graph: JobGraph) -> dict[str, Any]:
    stages: list[dict[str, str]] = [{} for _ in range(graph.levels)]
    for vertex in graph.vertices:
        for chained in vertex.operators:
            if vertex.level and chained.operator is not None and (chained.operator.keyed or chained.operator.stateful):
                stages[vertex.level - 1][chained.operator_id] = chained.name
    keyed = [c for v in graph.vertices for c in v.operators if c.operator is not None and c.operator.keyed]
    return {
        "version": _VERSION,
        "channels": graph.channels,
        "stages": stages,
        "splits": {vertex.operators[0].operator_id: vertex.source_parallelism for vertex in graph.source_vertices},
        "key_groups": {chained.operator_id: chained.max_parallelism for chained in keyed},
    }
