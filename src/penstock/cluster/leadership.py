"""Leader election among several services: a lease with epochs in a shared directory.

The service that holds the lease responds to requests and supervises the jobs. The others are standbys, which point to
it. Each leader has a higher epoch than all earlier ones. A leader that finds a higher epoch, or cannot renew its lease
before it expires, ends at once, because its information may be outdated after a pause.
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
_LOOKS = 10  # checks within the timeout


class Leadership:
    """The leadership from the view of one service.

    :param directory: shared by all services; the leader writes its address there
    :param files: where the lease is; the directory if None
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
        """The URL of the leader, if known."""
        try:
            return str(json.loads((self._directory / _ADDRESS).read_text(encoding="utf-8"))["url"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def wait(self, url: str, ended: threading.Event) -> bool:
        """Wait until this service leads, and announce its URL. Return False if the service ends before that."""
        seen, since = None, time.monotonic()
        while not ended.is_set():
            try:
                beat = self._newest_heartbeat()
                if beat != seen:
                    seen, since = beat, time.monotonic()
                # A paused leader is alive but sends no heartbeats: our clock counts, not its clock.
                silent = seen is not None and time.monotonic() - since > self._timeout
                owner = Owner.of_this_process("service", url, time.time())
                self._lease = Lease.acquire(self._files, owner, timeout=self._timeout, take_over=silent)
            except CheckpointInUseError:
                ended.wait(self._timeout / _LOOKS)
                continue
            except PenstockError as error:  # the lease store does not respond: the leader may be fine
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
        """Release the lease, so that a standby can lead at once."""
        self._released.set()
        if self._lease is not None:
            self._lease.release()


class LeaderOnly:
    """Responds on a standby with 503 and the URL of the leader, except for `/health/live`."""

    def __init__(self, app: ASGIApp, leadership: Leadership) -> None:
        self._app = app
        self._leadership = leadership

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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
