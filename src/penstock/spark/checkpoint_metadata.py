"""Describes the job that wrote a checkpoint directory, so that another job does not misread it.

The file also records where the job comes from (a savepoint), and where it went: a rescaled job continues in a
subdirectory, with another number of channels.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.common.errors import CheckpointError, InvalidProgramError
from penstock.common.spark_execution_mode import EXECUTION_MODE, SparkExecutionMode
from penstock.core.fence import Fence
from penstock.graph.job_graph import JobGraph
from penstock.runtime.savepoint.restore import adopt_max_parallelism
from penstock.runtime.task.union_states import UnionFiles
from penstock.spark.hadoop_directory import HadoopDirectory
from penstock.spark.moved_checkpoint import correct_paths
from penstock.spark.storage_failures import checkpoint_gone

CONTINUOUS = "continuous"
"""The directory of checkpoints of the continuous mode."""

_FILE = "penstock.json"
_VERSION = 2
_UNIONS = "unions"
_RESCALED = "rescaled"
_SIGNPOST = {"version", "continued_in", "parallelism"}
# Files that Spark and the job master write into a checkpoint directory. Never touch any other files.
_OF_A_JOB = {
    *("offsets", "commits", "state", "sources", "metadata", ".metadata.crc"),
    *("committables", "received", "frames", _UNIONS, CONTINUOUS),
}
_OF_AN_EPOCH = ("committables-", "received-")
_SEAL = "crc32"
_ADVICE = "restore it, or start from a savepoint with an empty checkpoint directory"


@dataclass(slots=True)
class CheckpointRecord:
    """The start of a job in a checkpoint directory."""

    base: int = 0
    """The id of the savepoint from which the job started. Checkpoint ids continue from here."""
    savepoint: str | None = None
    """The savepoint to load, if nothing was committed since."""
    job_id: str = ""
    """The job that created the directory. Sinks identify their files and transactions by it."""


class CheckpointDirectory(HadoopDirectory):
    """A checkpoint directory, on any storage that Spark can write to. Every change first checks the fence."""

    def __init__(self, spark: SparkSession, location: str, fence: Fence | None = None) -> None:
        self._fence = fence or Fence()
        super().__init__(spark, location, guard=self._fence.check)
        self.local_path = self.local()
        """The local path of the directory, if it is on this machine."""
        self._known = self._read()

    # -- following a job that was rescaled ----------------------------------------------------------------------

    def newest(self) -> tuple[CheckpointDirectory, int | None]:
        """Return the directory where the job continues now, and its parallelism there."""
        directory, parallelism = self, None
        while directory._known is not None and "continued_in" in directory._known:
            parallelism = directory._known["parallelism"]
            name = directory._known["continued_in"]
            directory = self.below(name)
        return directory, parallelism

    def below(self, name: str) -> CheckpointDirectory:
        """Return a checkpoint directory below this one. It has the lease of the first one."""
        return CheckpointDirectory(self._spark, f"{self.location.rstrip('/')}/{name}", self._fence)

    def continue_in(self, name: str, parallelism: int) -> None:
        """Move the job to another directory below the first one. At this moment, the rescale takes effect."""
        self._known = {**(self._known or {}), "continued_in": name, "parallelism": parallelism}
        self._write(self._known)

    def left_behind(self, newest: CheckpointDirectory) -> list[str]:
        """Return what a rescaled job no longer needs after it has committed a batch in its new directory.

        Call it before the job runs there: its first batch may rescale it again, with another savepoint.
        """
        current = newest.location.rstrip("/").rpartition("/")[2]
        names = self.names()
        of_a_job = [name for name in names if name in _OF_A_JOB or name.startswith(_OF_AN_EPOCH)]
        old = of_a_job + [name for name in names if name.startswith(f"{_RESCALED}-") and name != current]
        return old + [f"{_RESCALED}/{name}" for name in self.names(_RESCALED)]

    def tidy(self, newest: CheckpointDirectory, parallelism: int, left_behind: list[str]) -> None:
        """Remove the files from before a rescale. This directory, the first one, then points to the current one."""
        name = newest.location.rstrip("/").rpartition("/")[2]
        if self._known is None or self._known.get("continued_in") != name or set(self._known) != _SIGNPOST:
            self._known = {"version": _VERSION, "continued_in": name, "parallelism": parallelism}
            self._write(self._known)
        for left in left_behind:
            self.delete(left)

    # -- starting -----------------------------------------------------------------------------------------------

    def claim(self, graph: JobGraph, savepoint: str | None, base: int, job_id: str) -> CheckpointRecord:
        """Write the job's shape into a new directory. Reject an old directory that the job cannot continue."""
        shape = _shape(graph)
        known = self._known
        if known is None:
            self._known = {**shape, "base": base, "savepoint": savepoint, "job": job_id, "location": self.qualified()}
            self._write(self._known)
            return CheckpointRecord(base, savepoint, job_id)
        self._check_shape(known, shape)
        if correct_paths(self, known.get("location")):
            self._known = known = {**known, "location": self.qualified()}
            self._write(known)
        _adopt(graph, known)
        before = known.get("savepoint")
        if savepoint is not None and savepoint != before:
            raise InvalidProgramError(
                f"the checkpoint directory {self.location} already belongs to a job, which would be lost by starting "
                f"from the savepoint {savepoint}: use an empty checkpoint directory, or leave the savepoint out to "
                "continue that job"
            )
        return CheckpointRecord(known.get("base", 0), None if self.committed else before, known.get("job", job_id))

    def look_up(self, graph: JobGraph) -> CheckpointRecord:
        """Return what :meth:`claim` finds, without changing the directory. The savepoint is that of the first batch."""
        known = self._known
        if known is None:
            raise InvalidProgramError(f"there is no checkpoint in {self.location}")
        self._check_shape(known, _shape(graph))
        _adopt(graph, known)
        return CheckpointRecord(known.get("base", 0), known.get("savepoint"), known.get("job", ""))

    @property
    def committed(self) -> bool:
        """Whether a checkpoint was completed here."""
        return self.last_batch is not None or any(name.startswith("manifest-") for name in self.names(CONTINUOUS))

    @property
    def last_batch(self) -> int | None:
        """Return the number of the last batch that was committed here."""
        return max((int(name) for name in self.names("commits") if name.isdigit()), default=None)

    def check_logs(self, channels: int) -> None:
        """Reject logs that Spark would fail on or misread. Its log of offsets contains settings of the query."""
        for folder in ("offsets", "commits"):
            for number in sorted(int(name) for name in self.names(folder) if name.isdigit())[-2:]:
                name = f"{folder}/{number}"
                version, *lines = self.read(name).decode(errors="replace").splitlines() or [""]
                try:
                    entries = [json.loads(line) for line in lines if line != "-"]
                except ValueError as error:
                    raise self._damaged(name, str(error)) from None
                if not version.startswith("v") or not entries:
                    raise self._damaged(name, "it is not complete")
                if folder == "offsets" and _partitions(entries[0]) not in (None, str(channels)):
                    raise self._damaged(name, f"{_partitions(entries[0])} partitions instead of {channels}")

    def _damaged(self, name: str, why: str) -> CheckpointError:
        return CheckpointError(f"the file {name} in checkpoint {self.location} is damaged ({why}): {_ADVICE}")

    @property
    def union_files(self) -> UnionFiles:
        """The storage of union list states."""
        return _UnionFiles(self)

    def _check_shape(self, known: dict[str, Any], shape: dict[str, Any]) -> None:
        where = f"the checkpoint in {self.location}"
        if known["version"] != _VERSION:
            raise InvalidProgramError(
                f"{where} was written by another version of Penstock (format {known['version']}, this one reads "
                f"{_VERSION})"
            )
        before, now = (each.get("mode", SparkExecutionMode.MICRO_BATCH.value) for each in (known, shape))
        if before != now:
            raise InvalidProgramError(
                f"{where} was written in the {before} mode, this job runs in the {now} mode: set {EXECUTION_MODE} to "
                f"{before}, or take a savepoint there and start from it with an empty checkpoint directory"
            )
        if known["channels"] != shape["channels"]:
            raise InvalidProgramError(
                f"{where} was written with parallelism {known['channels']}, this job has {shape['channels']}: run it "
                "with the same parallelism, take a savepoint to change it, or use an empty checkpoint directory"
            )
        for level, (earlier, present) in enumerate(zip(known["stages"], shape["stages"], strict=False), start=1):
            for operator_id, name in earlier.items():
                if operator_id not in present:
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

    # -- positions of DataFrames --------------------------------------------------------------------------------

    @property
    def started_from(self) -> str | None:
        """The savepoint from which the job started, as long as the positions of DataFrames are read from there."""
        known = self._known or {}
        return None if known.get("frames_placed") else known.get("savepoint")

    def frames_placed(self) -> None:
        """Record that the positions of DataFrames are in Spark's log from now on."""
        self._known = {**(self._known or {}), "frames_placed": True}
        self._write(self._known)

    def check_presence(self) -> None:
        """Raise an error if the directory was deleted: Spark would create a new one, without the state."""
        if self.local_path is not None and self._known is not None and not (self.local_path / _FILE).exists():
            raise checkpoint_gone(self.location)

    # -- the file -----------------------------------------------------------------------------------------------

    def _read(self) -> dict[str, Any] | None:
        file_system, path = self.path_of(_FILE)
        if not file_system.exists(path):
            return None
        return _unsealed(self.read(_FILE), f"the file {_FILE} in checkpoint {self.location}")

    def _write(self, content: dict[str, Any]) -> None:
        self.write(_FILE, json.dumps(_sealed(content), indent=2).encode())


class _UnionFiles:
    """One file per checkpoint, beside Spark's files."""

    def __init__(self, directory: CheckpointDirectory) -> None:
        self._directory = directory

    def checkpoints(self) -> list[int]:
        return [int(name) for name in self._directory.names(_UNIONS) if name.isdigit()]

    def read(self, checkpoint_id: int) -> bytes:
        return self._directory.read(f"{_UNIONS}/{checkpoint_id}")

    def write(self, checkpoint_id: int, content: bytes) -> None:
        self._directory.write(f"{_UNIONS}/{checkpoint_id}", content)

    def remove(self, checkpoint_id: int) -> None:
        self._directory.delete(f"{_UNIONS}/{checkpoint_id}")


def _partitions(metadata: Any) -> str | None:
    conf = metadata.get("conf") if isinstance(metadata, dict) else None
    value = conf.get("spark.sql.shuffle.partitions") if isinstance(conf, dict) else None
    return None if value is None else str(value)


def _sealed(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, _SEAL: zlib.crc32(json.dumps(content, sort_keys=True).encode())}


def _unsealed(text: bytes, label: str) -> dict[str, Any]:
    """Decode a file and verify its checksum. The first version had none."""
    try:
        content: dict[str, Any] = json.loads(text)
        checksum = content.pop(_SEAL, None)
        fine = content["version"] == 1 if checksum is None else _sealed(content)[_SEAL] == checksum
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{label} is damaged ({error!r}): {_ADVICE}") from None
    if not fine:
        raise CheckpointError(f"{label} is damaged (it does not match its checksum): {_ADVICE}")
    return content


def _adopt(graph: JobGraph, known: dict[str, Any]) -> None:
    """Give the graph the numbers of key groups and splits with which the job created the directory."""
    for vertex in graph.vertices:
        for chained in vertex.operators:
            groups = known.get("key_groups", {}).get(chained.operator_id)
            if groups is not None:
                adopt_max_parallelism(groups, vertex, chained, graph.edges)
        vertex.split_parallelism = known.get("splits", {}).get(vertex.operators[0].operator_id)


def _shape(graph: JobGraph) -> dict[str, Any]:
    stages: list[dict[str, str]] = [{} for _ in range(graph.levels)]
    for vertex in graph.vertices:
        for chained in vertex.operators:
            if vertex.level and chained.operator is not None and (chained.operator.keyed or chained.operator.stateful):
                stages[vertex.level - 1][chained.operator_id] = chained.name
    keyed = [c for v in graph.vertices for c in v.operators if c.operator is not None and c.operator.keyed]
    mode = graph.settings.execution_mode
    return {
        "version": _VERSION,
        **({} if mode is SparkExecutionMode.MICRO_BATCH else {"mode": mode.value}),
        "channels": graph.channels,
        "stages": stages,
        "splits": {vertex.operators[0].operator_id: vertex.source_parallelism for vertex in graph.source_vertices},
        "key_groups": {chained.operator_id: chained.max_parallelism for chained in keyed},
    }
