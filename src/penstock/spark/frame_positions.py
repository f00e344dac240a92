"""The positions of a job in the streaming DataFrames that it reads, which only Spark knows and keeps in its checkpoint.

A savepoint includes them: the offsets of the batch, and the logs that some of Spark's sources keep beside them (for
instance the files that a directory had). Spark has no call that starts a query at given offsets. A restored job
therefore runs its first batch, in which tasks load their state, without the DataFrames. Then the offsets are written
into Spark's log of this batch, and the query starts again with everything.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from penstock.common.errors import SavepointError, UnsupportedFeatureError
from penstock.graph.job_graph import JobGraph
from penstock.runtime.savepoint.blocks import BlockFile, BlockWriter
from penstock.runtime.savepoint.manifest import Json, Manifest
from penstock.runtime.savepoint.storage import Directory, directory_at
from penstock.spark.checkpoint_metadata import CheckpointDirectory

_OFFSETS, _SOURCES = "offsets", "sources"
_HEAD_LINES = 2  # the version of Spark's log, and settings
_NOTHING_READ = "-"
_STAGED = "restored-offsets"


class FramePositions:
    """The DataFrames of one job, and their part of its checkpoint."""

    def __init__(self, graph: JobGraph, checkpoint: CheckpointDirectory) -> None:
        self._checkpoint = checkpoint
        vertices = {vertex.id: vertex.operators[0] for vertex in graph.vertices}
        self._sources = {vertices[vertex_id].operator_id: frame for vertex_id, frame in graph.frames.items()}

    # -- into a savepoint ---------------------------------------------------------------------------------------

    def save(self, batch_id: int, directory: Directory, *, compress: bool) -> dict[str, Json]:
        """Return manifest entries for the DataFrames at the end of a batch. Also write the logs of sources."""
        lines = self._lines(batch_id)
        saved: dict[str, Json] = {}
        number = 1  # the first source of the query has all sources that are not DataFrames
        for operator_id, frame in self._sources.items():
            leaves = streaming_leaves(frame)
            if not frame.isStreaming:
                saved[operator_id] = {"bounded": True}  # it is read in the first batch
            else:
                saved[operator_id] = {
                    "bounded": False,
                    "offsets": lines[number : number + leaves],
                    **self._save_logs(range(number, number + leaves), f"{operator_id}/spark.data", directory, compress),
                }
            number += leaves
        return saved

    def _lines(self, batch_id: int) -> list[str]:
        lines = self._checkpoint.read(f"{_OFFSETS}/{batch_id}").decode().split("\n")
        if lines[0] != "v1":
            raise SavepointError(
                f"Spark's log of offsets has the unknown format {lines[0]!r}: with this Spark, savepoints of jobs that "
                "read streaming DataFrames are not supported"
            )
        return lines[_HEAD_LINES:]

    def _save_logs(self, numbers: range, name: str, directory: Directory, compress: bool) -> Json:
        files = [
            (position, file)
            for position, number in enumerate(numbers)
            for file in sorted(self._checkpoint.names(f"{_SOURCES}/{number}"))
            if not file.startswith(".")
        ]
        if not files:
            return {"logs": []}
        with directory.create(name) as stream:
            blocks = BlockWriter(stream, compress=compress)
            for tag, (position, file) in enumerate(files):
                blocks.add(tag, self._checkpoint.read(f"{_SOURCES}/{numbers[position]}/{file}"), 1)
            return {"logs": [list(pair) for pair in files], "file": {"path": name, **blocks.finish()}}

    # -- out of a savepoint -------------------------------------------------------------------------------------

    def check(self, manifest: Manifest, location: str) -> None:
        """Reject DataFrames that cannot continue."""
        for operator_id, source in manifest.sources.items():
            known, frame = source.get("spark"), self._sources.get(operator_id)
            title = f"source '{source['name']}'" + (f" (uid {source['uid']!r})" if source["uid"] else "")
            if known is not None and frame is None:
                raise SavepointError(
                    f"{title} was a DataFrame when the savepoint in {location} was taken, but is not one in this "
                    "job: only Spark can read its position. Give the new source another uid()"
                )
            if known is None and frame is not None and source["splits"]:
                raise SavepointError(
                    f"{title} was not a DataFrame when the savepoint in {location} was taken: give the DataFrame "
                    "another uid()"
                )
            if known is None or frame is None:
                continue
            if known["bounded"] == frame.isStreaming:
                kinds = ("a batch DataFrame", "a streaming DataFrame")
                before, now = kinds if known["bounded"] else reversed(kinds)
                raise SavepointError(
                    f"{title} was {before} when the savepoint in {location} was taken, and is {now} now"
                )
            if frame.isStreaming and len(known["offsets"]) != streaming_leaves(frame):
                raise SavepointError(
                    f"the DataFrame of {title} was read from {len(known['offsets'])} of Spark's sources when the "
                    f"savepoint in {location} was taken, now from {streaming_leaves(frame)}: give it another uid() to "
                    "read it from the beginning"
                )

    def is_read(self, manifest: Manifest) -> set[str]:
        """Return the batch DataFrames that the saved job has read to the end."""
        return {operator_id for operator_id in self._sources if self._known(manifest, operator_id).get("bounded")}

    def needs_placing(self, manifest: Manifest) -> bool:
        """Whether there are positions to write into Spark's log."""
        return any("offsets" in self._known(manifest, operator_id) for operator_id in self._sources)

    def place(self, manifest: Manifest, location: str) -> None:
        """Write the positions into the log of the last batch, which ran without the DataFrames. May be repeated."""
        batch_id = self._checkpoint.last_batch
        if _STAGED in self._checkpoint.names():
            staged = self._checkpoint.read(_STAGED)
        else:
            lines = self._checkpoint.read(f"{_OFFSETS}/{batch_id}").decode().split("\n")[: _HEAD_LINES + 1]
            for operator_id, frame in self._sources.items():
                nothing = [_NOTHING_READ] * streaming_leaves(frame)
                lines += self._known(manifest, operator_id).get("offsets", nothing)
            staged = "\n".join(lines).encode()
            self._checkpoint.write(_STAGED, staged)  # a copy, in case the log is lost halfway
        self._place_logs(manifest, directory_at(location))
        self._checkpoint.write(f"{_OFFSETS}/{batch_id}", staged)

    def _place_logs(self, manifest: Manifest, directory: Directory) -> None:
        number = 1
        for operator_id, frame in self._sources.items():
            known = self._known(manifest, operator_id)
            if known.get("logs"):
                for block, content in BlockFile(directory, known["file"]).read():
                    position, name = known["logs"][block.tag]
                    self._checkpoint.write(f"{_SOURCES}/{number + position}/{name}", content)
            number += streaming_leaves(frame)

    def _known(self, manifest: Manifest, operator_id: str) -> Json:
        known: Json = manifest.sources.get(operator_id, {}).get("spark") or {}
        return known


def streaming_leaves(frame: DataFrame) -> int:
    """Count the Spark sources that a DataFrame reads. A streaming job turns a batch DataFrame into one source."""
    if not frame.isStreaming:
        return 1
    leaves: Any = frame._jdf.logicalPlan().collectLeaves()
    return sum(bool(leaves.apply(index).isStreaming()) for index in range(leaves.size()))


def check_stateless(graph: JobGraph) -> None:
    """Reject stateful DataFrames: only Spark's own checkpoint contains their state."""
    for vertex in graph.source_vertices:
        kind = stateful_part(graph.frames[vertex.id]) if vertex.id in graph.frames else None
        if kind is not None:
            raise UnsupportedFeatureError(
                f"the streaming DataFrame of source '{vertex.operators[0].name}' keeps state inside of Spark ({kind}), "
                "which savepoints cannot contain: do this part in the job, on the stream"
            )


_STATEFUL = ("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "GlobalLimit")


def stateful_part(frame: DataFrame) -> str | None:
    """Return the operation of a streaming DataFrame that needs state, or None."""
    todo: list[Any] = [frame._jdf.logicalPlan()] if frame.isStreaming else []
    while todo:
        node = todo.pop()
        if not node.isStreaming():
            continue
        name = str(node.nodeName())
        inputs = [node.children().apply(index) for index in range(node.children().size())]
        if name in _STATEFUL or "State" in name or (name == "Join" and all(each.isStreaming() for each in inputs)):
            return name
        todo += inputs
    return None
