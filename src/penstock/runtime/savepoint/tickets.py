"""Savepoints that were asked for: which one the next batch has to write, and when one is complete.

Lives on the driver for as long as the job does; coordinators come and go with the job's attempts.
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
from penstock.runtime.frames import TaskReport
from penstock.runtime.job import JobVertex
from penstock.runtime.savepoint.capture import SavepointRequest, assemble, remove_strays
from penstock.runtime.savepoint.manifest import Json
from penstock.runtime.savepoint.storage import Directory, absolute, directory_at, join


class SavepointTicket:
    """One savepoint that somebody waits for."""

    def __init__(
        self, location: str, *, stop: bool, drain: bool, cancel: bool, parallelism: int | None, compress: bool
    ) -> None:
        self.request = SavepointRequest(os.urandom(8).hex(), location, compress)
        self.drain = drain
        self.cancel = cancel
        """Whether the job that stops with it ends as cancelled."""
        self.parallelism = parallelism
        """With which the job goes on from it; None if it does not."""
        self.stop = stop or cancel or parallelism is not None
        """Whether its batch is the last one, of the job or at this parallelism."""
        self.future: CompletableFuture[str] = CompletableFuture()

    def fail(self, error: Exception) -> None:
        """There will be no savepoint: what was written of it goes."""
        location = self.request.location
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            directory_at(location).dispose()
        self.future.complete_exceptionally(_as_savepoint_error(location, error))


class SavepointTickets:
    """The savepoints of one job, taken one after the other.

    A job that is rescaled stops with a savepoint, too: whoever asks meanwhile has his turn when the job runs again.
    """

    def __init__(self, job_id: str, job_name: str, *, compress: bool = False) -> None:
        self._vertices: list[JobVertex] = []
        self._job_id = job_id
        self._job_name = job_name
        self._compress = compress
        self._waiting: deque[SavepointTicket] = deque()
        self._submitting: set[str] = set()  # locations that are looked at
        self._lock = threading.Lock()
        self._ended: str | None = None
        self._offsets: dict[int, tuple[SavepointTicket, Json]] = {}  # by checkpoint id
        self.outside: Callable[[int, Directory], dict[str, Json]] = lambda checkpoint_id, directory: {}
        """Where the engine's own sources are at a checkpoint, by operator id."""
        self.on_request: Callable[[], None] = lambda: None

    def serve(self, vertices: list[JobVertex], on_request: Callable[[], None]) -> None:
        """From now on it is this form of the job that writes savepoints; nothing is left of batches of another."""
        with self._lock:
            self._vertices = vertices
            self._offsets = {}
            self.on_request = on_request

    def submit(
        self,
        root: str,
        *,
        stop: bool = False,
        drain: bool = False,
        cancel: bool = False,
        parallelism: int | None = None,
    ) -> SavepointTicket:
        """Ask for a savepoint below a directory.

        :param stop: it is the job's last act; with `cancel`, the job ends as cancelled
        :param drain: event time ends first
        :param parallelism: the job stops with it, and goes on from it with this parallelism
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
            probe = directory_at(ticket.request.location)  # one that cannot be used must not disturb the job
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
        self.on_request()
        return ticket

    @property
    def names(self) -> set[str]:
        """The directories of all that are not written yet."""
        with self._lock:
            locations = [*self._submitting, *(ticket.request.location for ticket in self._waiting)]
        return {location.rpartition("/")[2] for location in locations}

    @property
    def draining(self) -> bool:
        """Whether the next batch has to be the last one: not before those who asked earlier have their savepoints."""
        return next((ticket.drain for ticket in list(self._waiting)), False)

    @property
    def pending(self) -> bool:
        """Whether a batch is needed though no input may have come."""
        return bool(self._waiting)

    def attach(self, offset: Json) -> SavepointRequest | None:
        """What the tasks of the batch that ends with this offset have to write."""
        with self._lock:
            if not self._waiting:
                return None
            ticket = self._waiting[0]
            if ticket.drain and not offset["end"]:
                return None  # the batch was planned before anybody asked
            self._offsets = {offset["n"]: (ticket, offset)}
            return ticket.request

    def batch_done(self, reports: list[TaskReport], checkpoint_id: int) -> SavepointTicket | None:
        """A batch was committed: complete the savepoint it wrote. Returns the ticket if it succeeded."""
        ticket, offset = self._offsets.pop(checkpoint_id, (None, None))
        if ticket is None or offset is None:
            return None
        with self._lock:
            self._waiting.remove(ticket)
        try:
            self._complete(ticket, reports, offset)
        except Exception as error:
            ticket.fail(error)
            return None
        if not ticket.stop:
            ticket.future.complete(ticket.request.location)
        return ticket  # of one that stops the job, the future is completed when the job has stopped

    def _complete(self, ticket: SavepointTicket, reports: list[TaskReport], offset: Json) -> None:
        request = ticket.request
        parts = [report.savepoint for report in reports if report.savepoint is not None]
        failed = next((part.error for part in parts if part.error is not None), None)
        if failed is not None:
            raise SavepointError(failed)
        manifest = assemble(request, self._vertices, parts, job_id=self._job_id, job_name=self._job_name, offset=offset)
        directory = directory_at(request.location)
        for operator_id, position in self.outside(offset["n"], directory).items():
            manifest.sources[operator_id]["spark"] = position
        remove_strays(directory, manifest)
        manifest.write(directory)

    def end(self, reason: str) -> None:
        """The job is over: nobody will write what is still waiting."""
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
    """Where to put a savepoint; refuses if nobody has said (spec: ch. 10, AA17)."""
    root: Any = given or configured
    if not root:
        raise SavepointError("no directory for the savepoint: give one, or set execution.checkpointing.savepoint-dir")
    return str(root)
