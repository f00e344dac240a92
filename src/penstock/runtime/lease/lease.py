"""The lease on a checkpoint directory: two drivers must never both commit.

A driver takes the lease before it reads, cleans or writes anything else in the directory. Each owner has a higher
*epoch* than all previous ones. Epochs are files, such as ``epoch-000007``, and the file of an epoch can be created only
once. Before each critical step, the owner checks that it is still the last one (`Lease.check`). A higher epoch is the
only reason to stop; clocks, slow disks and pauses are not.

A live owner renews its lease: it writes ``heartbeat-000007`` every few seconds, so that other machines see that it is
alive. They wait for the file to change, by their own clock; its content does not matter. On the owner's own machine,
its process is looked up instead, so a lease is refused or taken over without waiting.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable

from penstock.common.errors import CheckpointError, CheckpointInUseError, FencedError
from penstock.core.fence import Fence
from penstock.runtime.lease.files import LeaseFiles
from penstock.runtime.lease.owner import Owner, as_utc

__all__ = ["DEFAULT_TIMEOUT", "TAKE_OVER_KEY", "TIMEOUT_KEY", "Clock", "Lease", "check_free"]

LOG = logging.getLogger("penstock.lease")

DEFAULT_TIMEOUT = 10.0
"""Seconds without a heartbeat after which another machine considers an owner dead."""
TIMEOUT_KEY = "penstock.lease.timeout"
TAKE_OVER_KEY = "penstock.lease.take-over"

_RENEWALS = 3  # within the timeout
_LOOKS = 20  # within the timeout, for a waiting driver
_EPOCH, _HEARTBEAT = "epoch", "heartbeat"
_UNREADABLE_SECONDS = 1.0

_held: set[str] = set()  # ids of the owners in this process


class Clock:
    """A clock for a driver that waits for the heartbeat of another one."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary time."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Lease(Fence):
    """A lease that this driver holds. Create it with `acquire`."""

    def __init__(self, files: LeaseFiles, owner: Owner, epoch: int, timeout: float) -> None:
        self.epoch = epoch
        self.owner = owner
        self._files = files
        self._timeout = timeout
        self._lost: FencedError | None = None
        self._lock = threading.Lock()  # protects renewing and releasing
        self._released = threading.Event()
        self._beats = 0
        self._renewing: threading.Thread | None = None

    @classmethod
    def acquire(
        cls,
        files: LeaseFiles,
        owner: Owner,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        take_over: bool = False,
        clock: Clock | None = None,
    ) -> Lease:
        """Take the lease, or raise a `CheckpointInUseError`.

        :param take_over: also take it from a live owner
        """
        _held.add(owner.id)  # another thread may see the file before this one continues
        try:
            lease = cls(files, owner, _next_epoch(files, owner, clock or Clock(), take_over=take_over), timeout)
            lease._begin()
        except BaseException:
            _held.discard(owner.id)
            raise
        return lease

    def _begin(self) -> None:
        self._write_heartbeat(released=False)
        for name in self._files.names():
            if _number(name) < self.epoch:
                self._files.remove(name)

    def start_renewing(self) -> None:
        """Renew in the background from now on."""
        self._renewing = threading.Thread(target=self._renew_periodically, name="penstock-lease", daemon=True)
        self._renewing.start()

    def renew(self) -> None:
        """Renew the lease. Raise a `FencedError` if another driver has taken over."""
        self.check()
        with self._lock:
            if not self._released.is_set():
                self._write_heartbeat(released=False)

    def _write_heartbeat(self, *, released: bool) -> None:
        self._beats += 1
        content = {"beat": self._beats, "timeout": self._timeout, "released": released, "time": time.time()}
        self._files.write(_name(_HEARTBEAT, self.epoch), json.dumps(content).encode())

    def _renew_periodically(self) -> None:
        failing = False
        while not self._released.wait(self._timeout / _RENEWALS):
            try:
                self.renew()
                failing = False
            except FencedError as error:
                LOG.error("%s", error)  # noqa: TRY400 - the stack does not help
                return
            except Exception as error:
                if not failing:  # the job continues, because every commit checks for a takeover
                    LOG.warning("cannot renew the lease on %s, trying again: %s", self._files.location, error)
                failing = True

    def check(self) -> None:
        """Raise a `FencedError` if there is a higher epoch."""
        self.raise_if_lost()
        if self._released.is_set():
            return
        own = self._files.read(_name(_EPOCH, self.epoch))
        if not _is_of(self.owner, own) or self._files.exists(_name(_EPOCH, self.epoch + 1)):
            self._check_takeover()

    def _check_takeover(self) -> None:
        """Check why the file has changed. Another driver's file, of any epoch, means that it owns the directory."""
        newest = _newest(self._files)
        content = None if newest is None else self._files.read(_name(_EPOCH, newest))
        if newest == self.epoch and _is_of(self.owner, content):
            return
        if newest is None:
            self._restore()
            return
        other = None if content is None else Owner.from_json(content)
        self._lost = FencedError(
            f"another driver has taken over the checkpoint directory {self._files.location}: "
            f"{other or 'an unknown driver'} (epoch {newest}, this driver has {self.epoch}). This driver stops without "
            "committing anything; the other one continues from the last checkpoint"
        )
        raise self._lost

    def _restore(self) -> None:
        """Create the file again: it was removed, but not by another driver."""
        with self._lock:
            if self._released.is_set():
                return
            self._files.create(_name(_EPOCH, self.epoch), self.owner.to_json())
            LOG.warning(
                "the lease in %s was removed while the job was running; it has been restored", self._files.location
            )

    def raise_if_lost(self) -> None:
        """Raise the error if a higher epoch is known."""
        if self._lost is not None:
            raise self._lost

    def release(self, *, remove: Callable[[], None] | None = None) -> None:
        """Release the lease if this driver still holds it. If the storage is not reachable, the lease expires."""
        try:
            with contextlib.suppress(FencedError, CheckpointError):
                self.check()
                with self._lock:
                    self._released.set()
                    if remove is not None:
                        remove()
                    elif _is_of(self.owner, self._files.read(_name(_EPOCH, self.epoch))):
                        self._write_heartbeat(released=True)
        finally:
            self._released.set()
            _held.discard(self.owner.id)


def _next_epoch(files: LeaseFiles, owner: Owner, clock: Clock, *, take_over: bool) -> int:
    """Create the file of the next epoch. If another driver was faster, check again who holds the lease."""
    while True:
        newest = _newest(files)
        if newest is not None and not take_over:
            check_free(files, clock)
            if _newest(files) != newest:
                continue
        name = _name(_EPOCH, 1 if newest is None else newest + 1)
        # Not every store enforces the condition: the last writer has the file.
        if files.create(name, owner.to_json()) and _is_of(owner, files.read(name)):
            return _number(name)


def _is_of(owner: Owner, content: bytes | None) -> bool:
    found = None if content is None else Owner.from_json(content)
    return found is not None and found.id == owner.id


def check_free(files: LeaseFiles, clock: Clock | None = None) -> None:
    """Raise a `CheckpointInUseError` if the last owner of the lease is alive. This changes nothing."""
    newest = _newest(files)
    if newest is None:
        return
    owner = _read_owner(files, newest, clock or Clock())
    heartbeat = files.read(_name(_HEARTBEAT, newest))
    if owner is None or _is_released(heartbeat):
        return
    if owner.is_this_process:
        lives = owner.id in _held
    elif owner.is_here:
        lives = owner.is_alive
    else:
        lives = _is_alive(files, newest, owner, heartbeat, clock or Clock())
    if lives:
        raise _in_use(files, owner, newest, heartbeat)


def _is_alive(files: LeaseFiles, epoch: int, owner: Owner, heartbeat: bytes | None, clock: Clock) -> bool:
    """Watch an owner on another machine until its heartbeat changes, at most for the owner's timeout.

    If another driver takes over meanwhile, return whether that one is alive.
    """
    timeout = _timeout_of(heartbeat)
    LOG.info("waiting up to %.0f s for a heartbeat of %s", timeout, owner)
    deadline = clock.monotonic() + timeout
    while True:
        over = clock.monotonic() >= deadline
        if files.exists(_name(_EPOCH, epoch + 1)):
            check_free(files, clock)
            return False
        now = files.read(_name(_HEARTBEAT, epoch))
        if now != heartbeat:
            return not _is_released(now)
        if over:  # measured before this look, because a pause of this process is not a pause of the owner
            return False
        clock.sleep(timeout / _LOOKS)


def _read_owner(files: LeaseFiles, epoch: int, clock: Clock) -> Owner | None:
    """Read the owner. Without atomic creation, it may still be writing the file, or may have died while writing."""
    deadline = clock.monotonic() + _UNREADABLE_SECONDS
    while True:
        over = clock.monotonic() >= deadline
        content = files.read(_name(_EPOCH, epoch))
        owner = None if content is None else Owner.from_json(content)
        if owner is not None or over:
            return owner
        clock.sleep(_UNREADABLE_SECONDS / _LOOKS)


def _in_use(files: LeaseFiles, owner: Owner, epoch: int, heartbeat: bytes | None) -> CheckpointInUseError:
    renewed = _field(heartbeat, "time")
    sign = f", last renewed {as_utc(renewed)}" if isinstance(renewed, (int, float)) else ""
    return CheckpointInUseError(
        f"the checkpoint directory {files.location} is in use by {owner} (epoch {epoch}{sign}). Two drivers on one "
        f"directory would destroy the job. Stop the other driver first (penstock cancel {owner.job_id[:8]}), or give "
        "this job another directory. To take over from a driver that cannot be stopped, use penstock run --take-over "
        f"(or set {TAKE_OVER_KEY}=true): the other one then ends without committing"
    )


def _newest(files: LeaseFiles) -> int | None:
    return max((_number(name) for name in files.names() if name.startswith(f"{_EPOCH}-")), default=None)


def _name(kind: str, epoch: int) -> str:
    return f"{kind}-{epoch:06d}"


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _field(heartbeat: bytes | None, name: str) -> object:
    try:
        content = json.loads(heartbeat or b"{}")
    except ValueError:
        return None
    return content.get(name) if isinstance(content, dict) else None


def _is_released(heartbeat: bytes | None) -> bool:
    return _field(heartbeat, "released") is True


def _timeout_of(heartbeat: bytes | None) -> float:
    timeout = _field(heartbeat, "timeout")
    return float(timeout) if isinstance(timeout, (int, float)) else DEFAULT_TIMEOUT
