"""Reads a batch from a checkpoint directory: its plan from Spark's log, and the state before it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from penstock.common.errors import CheckpointError, InvalidProgramError, UnsupportedFeatureError
from penstock.common.spark_execution_mode import SparkExecutionMode
from penstock.graph.job_graph import JobGraph, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.restore import RestorePlan, plan_restore
from penstock.spark.checkpoint_metadata import CheckpointDirectory
from penstock.spark.page_store import PAGES, unsealed
from penstock.spark.session import session_for
from penstock.spark.stage_host import META_PAGE, snapshot_of

__all__ = ["StoredBatch", "read_batch"]

_KEPT = "spark.sql.streaming.minBatchesToRetain"


@dataclass(slots=True)
class StoredBatch:
    """The data needed to run a batch again."""

    graph: JobGraph
    job_id: str
    start: Offset
    end: Offset
    committed: bool
    restore: RestorePlan | None
    channels: dict[tuple[int, int], tuple[dict[str, bytes], bytes]] = field(default_factory=dict)
    """The pages and the snapshot of each level and channel before the batch."""


def read_batch(
    spark: SparkSession, sinks: list[Transformation], settings: JobSettings, checkpoint_id: int | None
) -> StoredBatch:
    """Read a checkpoint of a job, or the last planned one if None. This changes nothing, so the job may be running."""
    location = settings.checkpoint_dir
    if location is None:
        raise InvalidProgramError(f"job '{settings.job_name}' has no checkpoint directory: there is nothing to replay")
    if settings.execution_mode is SparkExecutionMode.CONTINUOUS:
        raise UnsupportedFeatureError(
            "a checkpoint of the continuous mode covers many steps whose inputs are not kept: it cannot be replayed"
        )
    directory, parallelism = CheckpointDirectory(spark, location).newest()
    if parallelism is not None:
        settings = replace(settings, parallelism=parallelism)
    graph = translate(sinks, settings)
    record = directory.look_up(graph)
    planned = sorted(int(name) for name in directory.names("offsets") if name.isdigit())
    batch = _batch_number(directory, planned, checkpoint_id, record.base)
    restore = None
    if batch == 0 and record.savepoint is not None:
        restore = plan_restore(record.savepoint, graph.vertices, graph.edges, ignore_unclaimed=True)
    initial = Offset() if restore is None else restore.initial_offset()
    start = _offset(directory, batch - 1) if batch else initial
    committed = str(batch) in directory.names("commits")
    found = StoredBatch(graph, record.job_id, start, _offset(directory, batch), committed, restore)
    if batch:
        session = session_for(spark, shuffle_partitions=graph.channels)
        for operator in directory.names("state"):
            if operator.isdigit():
                found.channels |= _channels(session, directory.location, operator, batch - 1, graph.levels)
    return found


def _batch_number(directory: CheckpointDirectory, planned: list[int], checkpoint_id: int | None, base: int) -> int:
    """Return the batch of a checkpoint, if it and the previous one still exist."""
    possible = [number for number in planned if number == 0 or number - 1 in planned]
    if not possible:
        raise CheckpointError(f"there is no checkpoint in {directory.location} yet")
    batch = possible[-1] if checkpoint_id is None else checkpoint_id - base - 1
    if batch not in possible:
        raise InvalidProgramError(
            f"checkpoint {checkpoint_id} is not kept in {directory.location}: checkpoints {possible[0] + base + 1} to "
            f"{possible[-1] + base + 1} are. To keep more, set state.checkpoints.num-retained ({_KEPT})"
        )
    return batch


def _offset(directory: CheckpointDirectory, batch: int) -> Offset:
    _, _, *offsets = directory.read(f"offsets/{batch}").decode().splitlines()
    try:
        (text,) = offsets
        return Offset.from_json(json.loads(text))
    except ValueError as error:
        raise CheckpointError(f"the file offsets/{batch} in {directory.location} cannot be read: {error}") from None


def _channels(
    session: SparkSession, location: str, operator: str, batch: int, levels: int
) -> dict[tuple[int, int], tuple[dict[str, bytes], bytes]]:
    """Return the state of one stage after the batch."""
    reader = session.read.format("statestore").option("batchId", batch).option("operatorId", operator)
    table = reader.option("stateVarName", PAGES).load(location).selectExpr("partition_id", "key.*", "value.*").toArrow()
    stored: dict[int, dict[str, bytes]] = {}
    for channel, page_id, blob in zip(*(column.to_pylist() for column in table.columns), strict=True):
        stored.setdefault(channel, {})[page_id] = blob
    found = {}
    for channel, pages in stored.items():
        level = _level_of(pages, channel, levels)
        place = f"{level}/{channel}"
        blobs = {page_id: unsealed(blob, place, page_id) for page_id, blob in pages.items()}
        found[(level, channel)] = (blobs, snapshot_of(blobs.pop(META_PAGE)))
    return found


def _level_of(pages: dict[str, Any], channel: int, levels: int) -> int:
    """Return the level that wrote pages. Spark numbers stages in its own order, but checksums cover the level."""
    for level in range(1, levels + 1):
        try:
            unsealed(pages[META_PAGE], f"{level}/{channel}", META_PAGE)
        except CheckpointError:
            continue
        return level
    raise CheckpointError(f"the state of channel {channel} in the checkpoint is damaged: no stage wrote it")
