"""Requested savepoints: which one the next checkpoint must write, and when one is complete.

The queue lives on the driver as long as the job, across restarts and rescaling.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import PenstockError, SavepointError
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.plan.offset import Offset
from penstock.runtime.savepoint.capture import SavepointRequest, assemble, remove_strays
from penstock.runtime.savepoint.manifest import Json
from penstock.runtime.savepoint.storage import Directory, absolute, directory_at, join

SourcePositions = Callable[[int, Directory], dict[str, Json]]
"""Returns the positions of the engine's own sources at a checkpoint, by operator id. May write files there."""


class SavepointTicket:
    """One requested savepoint."""

    def __init__(
        self, location: str, *, stop: bool, drain: bool, cancel: bool, parallelism: int | None, compress: bool
    ) -> None:
        self.request = SavepointRequest(os.urandom(8).hex(), location, compress)
        self.drain = drain
        self.cancel = cancel
        """Whether the job stops with it and ends as cancelled."""
        self.parallelism = parallelism
        """The parallelism with which the job continues from here, or None."""
        self.stop = stop or cancel or parallelism is not None
        """Whether its checkpoint is the last one, of the job or at this parallelism."""
        self.future: CompletableFuture[str] = CompletableFuture()

    def fail(self, error: Exception) -> None:
        """Give up: remove written files, and report the error to the waiting caller."""
        location = self.request.location
        with contextlib.suppress(Exception):  # report the first error
            directory_at(location).dispose()
        self.future.complete_exceptionally(_as_savepoint_error(location, error))


class SavepointQueue:
    """The savepoints of one job, taken one after the other.

    Rescaling a job also stops it with a savepoint. Requests that arrive meanwhile wait until it runs again.
    """

    def __init__(self, job_id: str, job_name: str, *, compress: bool = False) -> None:
        self._vertices: list[JobVertex] = []
        self._job_id = job_id
        self._job_name = job_name
        self._compress = compress
        self._waiting: deque[SavepointTicket] = deque()
        self._submitting: set[str] = set()  # locations whose access is being checked
        self._lock = threading.Lock()
        self._ended: str | None = None
        self._offsets: dict[int, tuple[SavepointTicket, Offset]] = {}  # by checkpoint id
        self._wake: Callable[[], None] = lambda: None

    def serve(self, vertices: list[JobVertex], wake: Callable[[], None]) -> None:
        """Let this attempt of the job write savepoints, and drop unfinished savepoints of the previous one.

        :param wake: called when a savepoint is requested
        """
        with self._lock:
            self._vertices = vertices
            self._offsets = {}
            self._wake = wake

    def submit(
        self,
        root: str,
        *,
        stop: bool = False,
        drain: bool = False,
        cancel: bool = False,
        parallelism: int | None = None,
    ) -> SavepointTicket:
        """Request a savepoint below a directory.

        :param stop: whether the job stops with it; with `cancel`, it ends as cancelled
        :param drain: whether event time ends first
        :param parallelism: the job stops with the savepoint and continues from it with this parallelism
        """
        location = join(root, f"savepoint-{self._job_id[:6]}-{os.urandom(6).hex()}")
        ticket = SavepointTicket(
            location, stop=stop, drain=drain, cancel=cancel, parallelism=parallelism, compress=self._compress
        )
        with self._lock:
            ended = self._ended
            self._submitting |= {location} if ended is None else set()
        if ended is not None:
            ticket.fail(SavepointError(ended))
            return ticket
        failure: Exception | None = None
        try:
            ticket.request.location = absolute(location)
            probe = directory_at(ticket.request.location)  # an unusable directory must not disturb the job
            with probe.create("probe.tmp") as stream:
                stream.write(b"")
            probe.remove("probe.tmp")
        except Exception as error:
            failure = _not_written(location, error)
        with self._lock:
            self._submitting.discard(location)
            if failure is None and self._ended is not None:
                failure = SavepointError(self._ended)
            elif failure is None:
                self._waiting.append(ticket)
        if failure is not None:
            ticket.fail(failure)
        self._wake()
        return ticket

    @property
    def names(self) -> set[str]:
        """The names of the incomplete directories."""
        with self._lock:
            locations = [*self._submitting, *(ticket.request.location for ticket in self._waiting)]
        return {location.rpartition("/")[2] for location in locations}

    @property
    def draining(self) -> bool:
        """Whether the next batch must be the last one. Earlier requests get their savepoints first."""
        return next((ticket.drain for ticket in list(self._waiting)), False)

    @property
    def pending(self) -> bool:
        """Whether a batch is needed even without input."""
        return bool(self._waiting)

    def attach(self, offset: Offset) -> SavepointRequest | None:
        """Return what the tasks must write at the end of the batch that leads to this offset."""
        with self._lock:
            if not self._waiting:
                return None
            ticket = self._waiting[0]
            if ticket.drain and not offset.is_last:
                return None  # the batch was planned before the request
            self._offsets = {offset.checkpoint_id: (ticket, offset)}
            return ticket.request

    def checkpoint_committed(
        self, checkpoint_id: int, reports: list[TaskReport], source_positions: SourcePositions
    ) -> SavepointTicket | None:
        """Complete the savepoint that the tasks wrote with this checkpoint. Return the ticket if it succeeded."""
        ticket, offset = self._offsets.pop(checkpoint_id, (None, None))
        if ticket is None or offset is None:
            return None
        with self._lock:
            self._waiting.remove(ticket)
        try:
            self._complete(ticket, reports, offset, source_positions)
        except Exception as error:
            ticket.fail(error)
            return None
        if not ticket.stop:
            ticket.future.complete(ticket.request.location)
        return ticket  # if it stops the job, its future completes after the job has stopped

    def _complete(
        self, ticket: SavepointTicket, reports: list[TaskReport], offset: Offset, source_positions: SourcePositions
    ) -> None:
        request = ticket.request
        parts = [report.savepoint for report in reports if report.savepoint is not None]
        failed = next((part.error for part in parts if part.error is not None), None)
        if failed is not None:
            raise SavepointError(failed)
        manifest = assemble(request, self._vertices, parts, job_id=self._job_id, job_name=self._job_name, offset=offset)
        directory = directory_at(request.location)
        for operator_id, position in source_positions(offset.checkpoint_id, directory).items():
            manifest.sources[operator_id]["spark"] = position
        remove_strays(directory, manifest)
        manifest.write(directory)

    def end(self, reason: str) -> None:
        """Fail all waiting requests: the job has ended."""
        with self._lock:
            self._ended = reason
            waiting, self._waiting = list(self._waiting), deque()
        for ticket in waiting:
            ticket.fail(SavepointError(reason))


def _as_savepoint_error(location: str, error: Exception) -> PenstockError:
    return error if isinstance(error, SavepointError) else _not_written(location, error)


def _not_written(location: str, error: Exception) -> SavepointError:
    reason = str(error) if isinstance(error, SavepointError) else f"{type(error).__name__}: {error}"
    return SavepointError(f"no savepoint could be written to {location}: {reason}")


def savepoint_root(given: str | None, configured: str | None) -> str:
    """Return the parent directory of a savepoint. It must be given or configured (rule AA17)."""
    root: Any = given or configured
    if not root:
        raise SavepointError("no directory for the savepoint: give one, or set execution.checkpointing.savepoint-dir")
    return str(root)
