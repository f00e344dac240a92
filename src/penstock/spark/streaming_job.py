"""A streaming job through all its lives: a job master for each parallelism it was given, one after the other."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import JobExecutionError
from penstock.common.job_status import JobStatus
from penstock.graph.job_graph import JobGraph, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation
from penstock.runtime.job_progress import JobProgress
from penstock.runtime.savepoint.restore import adopt_max_parallelism
from penstock.runtime.savepoint.storage import directory_at, join
from penstock.runtime.savepoint.tickets import savepoint_root
from penstock.spark.checkpoint_metadata import CheckpointDirectory
from penstock.spark.frame_positions import check_stateless
from penstock.spark.job_master import JobMaster
from penstock.spark.query_server import QueryServer
from penstock.spark.session import session_for

DEFAULT_QUERY_PORT = "9069"

_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
_STATE_STORE_KEYS = {
    "changelog": _ROCKSDB + "changelogCheckpointing.enabled",
    "block_size_kb": _ROCKSDB + "blockSizeKB",
    "block_cache_mb": _ROCKSDB + "blockCacheSizeMB",
    "write_buffer_mb": _ROCKSDB + "writeBufferSizeMB",
    "write_buffers": _ROCKSDB + "maxWriteBufferNumber",
    "max_open_files": _ROCKSDB + "maxOpenFiles",
}


class StreamingJob:
    """What the client of a streaming job drives."""

    def __init__(self, sinks: list[Transformation], settings: JobSettings, session: SparkSession, job_id: str) -> None:
        self._sinks = sinks
        self._settings = settings
        self._session = session
        self._job_id = job_id
        self._root = None if settings.checkpoint_dir is None else CheckpointDirectory(session, settings.checkpoint_dir)
        self._lock = threading.RLock()
        self._rescaling: tuple[int, CompletableFuture[None]] | None = None
        self._cancel_after_savepoint = False
        self._cancelled = False
        self._query_server = _query_server(settings)
        self._master = self._first_master()

    def _first_master(self) -> JobMaster:
        """The job as the program wrote it, or as it was rescaled to before this program was started."""
        checkpoint, settings = self._root, self._settings
        parallelism: int | None = None
        if checkpoint is not None:
            checkpoint, parallelism = checkpoint.newest()
            if parallelism is not None:
                settings = self._settings = replace(settings, parallelism=parallelism)
                settings = replace(settings, savepoint_path=None)
        master = self._new_master(translate(self._sinks, settings), checkpoint)
        if checkpoint is not None and parallelism is not None:
            master.on_first_commit = self._tidying(checkpoint, parallelism)
        return master

    def _tidying(self, checkpoint: CheckpointDirectory, parallelism: int) -> Callable[[], None]:
        """What to do when the job has committed a batch since it was rescaled: remove what it came from."""
        assert self._root is not None
        return partial(self._root.tidy, checkpoint, parallelism, self._root.left_behind(checkpoint))

    def _new_master(
        self, graph: JobGraph, checkpoint: CheckpointDirectory | None, progress: JobProgress | None = None
    ) -> JobMaster:
        spark = session_for(self._session, shuffle_partitions=graph.channels, conf=_conf(graph.settings))
        master = JobMaster(graph, spark, self._job_id, checkpoint, progress)
        if self._query_server is not None:
            self._query_server.register(self._job_id, master.queries)
        return master

    # -- what a client asks -------------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life."""
        if self._rescaling is not None and self._master.status.is_terminal_state():
            return JobStatus.RESTARTING
        return self._master.status

    @property
    def progress(self) -> JobProgress:
        """Records, watermarks, state."""
        return self._master.progress

    @property
    def query_port(self) -> int | None:
        """The port of the queryable state server; None if there is none."""
        return None if self._query_server is None else self._query_server.port

    @property
    def graph(self) -> JobGraph:
        """The job graph as it runs now."""
        return self._master.graph

    def cancel(self) -> None:
        """Stop after the running batch; a job that is being rescaled stops as well."""
        with self._lock:
            self._cancelled = True
            self._master.cancel()

    def run(self) -> None:
        """Run to the end, through all rescalings; raises the job's error."""
        while True:
            error: Exception | None = None
            try:
                self._master.run()
            except Exception as failure:
                error = failure
            with self._lock:
                ticket, rescaling = self._master.stopped_with, self._rescaling
                cancelled = self._cancelled and rescaling is not None
                if error is None and ticket is not None and rescaling is not None and not cancelled:
                    try:
                        self._restart(rescaling[0], ticket.request.location)
                    except Exception as failure:
                        error = failure
                    else:
                        ticket.future.complete(ticket.request.location)
                        continue
            if rescaling is not None and (cancelled or error is not None):
                reason = error or JobExecutionError("the job was cancelled while it was rescaled")
                rescaling[1].complete_exceptionally(reason)
            if ticket is not None and (cancelled or self._cancel_after_savepoint):
                self._master.status = JobStatus.CANCELED
            if ticket is not None:
                ticket.future.complete(ticket.request.location)
            if self._query_server is not None:
                self._query_server.unregister(self._job_id)
            if self._root is not None and is_disposable(self._settings.checkpoint_retention, self._master.status):
                self._root.remove()
            if error is not None:
                raise error
            return

    # -- savepoints ---------------------------------------------------------------------------------------------

    def savepoint(
        self, directory: str | None, *, stop: bool = False, drain: bool = False, cancel: bool = False
    ) -> CompletableFuture[str]:
        """Take a savepoint, perhaps as the last act."""
        root = savepoint_root(directory, self._settings.savepoint_dir)
        check_stateless(self._master.graph)
        if stop or cancel:
            self._cancel_after_savepoint = cancel
        return self._master.savepoints.submit(root, stop=stop or cancel, drain=drain).future

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Continue with another parallelism."""
        graph = translate(self._sinks, replace(self._settings, parallelism=parallelism))
        self._check_key_groups(graph)  # once the job has stopped it is too late
        done: CompletableFuture[None] = CompletableFuture()
        with self._lock:
            if self._rescaling is not None:
                raise JobExecutionError("the job is being rescaled already: wait for it")
            self._rescaling = (parallelism, done)
        known = self._settings.checkpoint_dir or self._settings.savepoint_dir
        root = tempfile.mkdtemp(prefix="penstock-rescaled-") if known is None else join(known, "rescaled")
        try:
            taken = self.savepoint(root, stop=True)
        except BaseException:
            self._rescaling = None
            raise
        taken.add_done_callback(partial(self._after_rescaling, root))
        return done

    def _check_key_groups(self, graph: JobGraph) -> None:
        """Refuse a parallelism that is above the number of key groups: that of the first start stays."""
        now = {c.operator_id: c for vertex in self._master.graph.vertices for c in vertex.operators}
        for vertex in graph.vertices:
            for chained in vertex.operators:
                known = now.get(chained.operator_id)
                if known is not None and known.operator is not None and known.operator.keyed:
                    adopt_max_parallelism(known.max_parallelism, vertex, chained, graph.edges)

    def _after_rescaling(self, root: str, taken: CompletableFuture[str]) -> None:
        with self._lock:
            rescaling, self._rescaling = self._rescaling, None
        assert rescaling is not None
        error = taken.exception()
        if error is not None:
            with contextlib.suppress(OSError):  # of no use any more, if it was made for this
                os.rmdir(root)  # noqa: PTH106 - it may be an address
            rescaling[1].complete_exceptionally(error)
        else:
            rescaling[1].complete(None)

    def _restart(self, parallelism: int, savepoint: str) -> None:
        """The old master has stopped with a savepoint: the next one starts from it, in a directory of its own."""
        self._settings = replace(self._settings, parallelism=parallelism)
        settings = replace(self._settings, savepoint_path=savepoint, ignore_unclaimed_state=False)
        checkpoint: CheckpointDirectory | None = None
        graph = translate(self._sinks, settings)
        if self._root is not None:
            name = f"rescaled-{os.urandom(4).hex()}"  # never one that a crash has left half made
            checkpoint = CheckpointDirectory(self._session, join(self._root.location, name))
            master = self._new_master(graph, checkpoint, self._carried(graph))
            master.prepare(checkpoint)
            # From here on a restarted driver continues there. Before, it continues the old job: nothing was lost, since
            # the savepoint was that job's last batch.
            current, _ = self._root.newest()
            current.continue_in(name, parallelism)
        else:
            master = self._new_master(graph, None, self._carried(graph))
        master.on_first_commit = (
            partial(_dispose, savepoint) if checkpoint is None else self._tidying(checkpoint, parallelism)
        )
        master.program = ""
        self._master = master

    def _carried(self, graph: JobGraph) -> JobProgress:
        progress = self._master.progress
        for vertex in progress.vertices.values():
            vertex.watermarks.clear()
            vertex.state_bytes.clear()
        return progress


def _dispose(savepoint: str) -> None:
    """Remove the savepoint that a job without a checkpoint directory was rescaled by."""
    directory_at(savepoint).dispose()
    with contextlib.suppress(OSError):  # made for this one; another may have come since
        os.rmdir(savepoint.rpartition("/")[0])  # noqa: PTH106 - it may be an address


def is_disposable(retention: str | None, status: JobStatus) -> bool:
    """Whether checkpoints go with the job (spec: ch. 10, DD10 to DD12).

    >>> is_disposable("DELETE_ON_CANCELLATION", JobStatus.CANCELED), is_disposable(None, JobStatus.CANCELED)
    (True, False)
    """
    if retention == "NO_EXTERNALIZED_CHECKPOINTS":
        return True
    return retention == "DELETE_ON_CANCELLATION" and status is JobStatus.CANCELED


def _query_server(settings: JobSettings) -> QueryServer | None:
    if settings.configuration.get("queryable-state.enable", "false").strip().lower() != "true":
        return None
    return QueryServer.on_port(int(settings.configuration.get("queryable-state.proxy.ports", DEFAULT_QUERY_PORT)))


def _conf(settings: JobSettings) -> dict[str, str]:
    """Spark's settings that follow from the job's."""
    conf: dict[str, Any] = {}
    if settings.retained_checkpoints is not None:
        conf["spark.sql.streaming.minBatchesToRetain"] = str(max(2, settings.retained_checkpoints))
    for name, value in settings.state_store.items():
        conf[_STATE_STORE_KEYS[name]] = str(value).lower()
    return conf
