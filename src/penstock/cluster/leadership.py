"""Which of several services leads: a lease with epochs in a shared directory.

The service that holds the lease answers requests and looks after the jobs; the others are standbys, which point to it.
Every leader has a higher epoch than those before it. A leader that finds a higher epoch, or cannot renew its lease for
as long as it lasts, ends at once: it must not act on what it believed before a pause.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cluster.rest.responses import json_response
from penstock.common.errors import CheckpointInUseError, FencedError, PenstockError
from penstock.runtime.lease.files import LeaseFiles, LocalLeaseFiles
from penstock.runtime.lease.lease import DEFAULT_TIMEOUT, Lease
from penstock.runtime.lease.owner import Owner

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LeaderOnly", "Leadership"]

LOG = logging.getLogger("penstock.leadership")
_LOST_LEADERSHIP = 75
_ADDRESS = "leader.json"
_HEARTBEAT = "heartbeat-"
_LOOKS = 10  # within the timeout


class Leadership:
    """One service's view of who leads.

    :param directory: shared by all services; the leader leaves its address there
    :param files: where the lease is; in the directory if None
    :param give_up: ends the process; called with its exit code
    """

    def __init__(
        self,
        directory: Path,
        timeout: float = DEFAULT_TIMEOUT,
        give_up: Callable[[int], object] = os._exit,
        files: LeaseFiles | None = None,
    ) -> None:
        self._directory = directory
        self._files = files or LocalLeaseFiles(str(directory), directory / "leader")
        self._timeout = timeout
        self._give_up = give_up
        self._lease: Lease | None = None
        self._released = threading.Event()

    @property
    def is_leader(self) -> bool:
        """Whether this service leads."""
        return self._lease is not None and not self._released.is_set()

    @property
    def epoch(self) -> int | None:
        """The epoch of this leader."""
        return None if self._lease is None else self._lease.epoch

    @property
    def leader_url(self) -> str | None:
        """Where the leader answers, as far as it is known."""
        try:
            return str(json.loads((self._directory / _ADDRESS).read_text(encoding="utf-8"))["url"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def wait(self, url: str, ended: threading.Event) -> bool:
        """Wait until this service leads, and announce its address; False if the service ends before."""
        seen, since = None, time.monotonic()
        while not ended.is_set():
            try:
                beat = self._newest_heartbeat()
                if beat != seen:
                    seen, since = beat, time.monotonic()
                # A leader that is paused is alive and shows no life: its clock does not count, ours does.
                silent = seen is not None and time.monotonic() - since > self._timeout
                owner = Owner.of_this_process("service", url, time.time())
                self._lease = Lease.acquire(self._files, owner, timeout=self._timeout, take_over=silent)
            except CheckpointInUseError:
                ended.wait(self._timeout / _LOOKS)
                continue
            except PenstockError as error:  # the store of the lease does not answer: that says nothing about the leader
                LOG.warning("this service cannot see who leads: %s", error)
                since = time.monotonic()
                ended.wait(self._timeout / _LOOKS)
                continue
            self._announce(url, self._lease.epoch)
            threading.Thread(target=self._renew, args=(self._lease,), name="penstock-leader", daemon=True).start()
            return True
        return False

    def _newest_heartbeat(self) -> bytes | None:
        names = sorted(name for name in self._files.names() if name.startswith(_HEARTBEAT))
        return self._files.read(names[-1]) if names else None

    def _announce(self, url: str, epoch: int) -> None:
        hidden = self._directory / f".{_ADDRESS}.{os.getpid()}"
        hidden.write_text(json.dumps({"url": url, "epoch": epoch}), encoding="utf-8")
        hidden.replace(self._directory / _ADDRESS)

    def _renew(self, lease: Lease) -> None:
        renewed = time.monotonic()
        while not self._released.wait(self._timeout / 3):
            try:
                lease.renew()
                renewed = time.monotonic()
            except FencedError as error:
                LOG.error("this service no longer leads: %s", error)  # noqa: TRY400 - the stack does not help
                self._give_up(_LOST_LEADERSHIP)
                return
            except PenstockError as error:
                LOG.warning("the leader's lease cannot be renewed: %s", error)
                if time.monotonic() - renewed > self._timeout:
                    self._give_up(_LOST_LEADERSHIP)
                    return

    def release(self) -> None:
        """Give the lease back, so that a standby leads at once."""
        self._released.set()
        if self._lease is not None:
            self._lease.release()


class LeaderOnly:
    """Answers requests to a standby with 503 and the address of the leader; `/health/live` is always answered."""

    def __init__(self, app: ASGIApp, leadership: Leadership) -> None:
        self._app = app
        self._leadership = leadership

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._leadership.is_leader or scope["type"] != "http" or scope["path"].endswith("/health/live"):
            await self._app(scope, receive, send)
            return
        url = self._leadership.leader_url
        where = "there is no leader yet" if url is None else f"the leader is {url}"
        response = json_response({"errors": [f"This service is a standby: {where}."]}, 503)
        response.headers["Retry-After"] = "1"
        if url is not None:
            response.headers["Location"] = url + scope["path"]
        await response(scope, receive, send)
