"""The owner of a lease: a driver process, described so that a later driver can check whether it is alive."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
import uuid
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["Owner", "is_running", "started_at"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_TIME = 19  # in /proc/<pid>/stat, counted after the program name: see proc(5), field 22
_ENDED = ("Z", "X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A driver.

    >>> owner = Owner.of_this_process("1a2b", "counting", since=0.0)
    >>> Owner.from_json(owner.to_json()) == owner, owner.is_here, is_running(owner.pid, owner.started)
    (True, True, True)
    """

    id: str
    """A random id: two jobs of one process are two owners."""
    host: str
    machine: str
    """Identifies one boot of one machine or container, in which processes can see each other by pid."""
    pid: int
    started: str
    """The start time of the process, in units of the machine. A later process with the same pid has another value."""
    since: float
    """When it took the lease, in seconds since 1970."""
    job_id: str
    job_name: str

    @classmethod
    def of_this_process(cls, job_id: str, job_name: str, since: float) -> Owner:
        """Describe this process, for one job."""
        pid = os.getpid()
        return cls(
            id=uuid.uuid4().hex,
            host=platform.node(),
            machine=this_machine(),
            pid=pid,
            started=started_at(pid) or "",
            since=since,
            job_id=job_id,
            job_name=job_name,
        )

    @property
    def is_here(self) -> bool:
        """Whether its process would be visible from this one."""
        return self.machine == this_machine()

    @property
    def is_this_process(self) -> bool:
        """Whether it is a job of this process."""
        return self.is_here and self.pid == os.getpid() and self.started == started_at(self.pid)

    @property
    def is_alive(self) -> bool:
        """Whether its process is alive. Meaningful only if it `is_here`."""
        return is_running(self.pid, self.started)

    def to_json(self) -> bytes:
        """Encode for a file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Owner | None:
        """Decode from a file. Return ``None`` if it is incomplete."""
        try:
            content = json.loads(text)
            return cls(**{field.name: content[field.name] for field in fields(cls)})
        except (ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        job = f"job '{self.job_name}' ({self.job_id[:8]})"
        return f"{job} in process {self.pid} on {self.host} since {as_utc(self.since)}"


def as_utc(seconds: float) -> str:
    """Format a time for messages.

    >>> as_utc(0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


@functools.cache
def this_machine() -> str:
    """Identify the machine since its boot. In a container, identify the container, which has its own pids."""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def started_at(pid: int) -> str | None:
    """Return when a process started, or ``None`` if it has ended.

    >>> started_at(os.getpid()) == started_at(os.getpid())
    True
    """
    if not sys.platform.startswith("linux"):
        return _started_by_ps(pid)
    try:
        # The program name is in parentheses, and may contain any character.
        state, *numbers = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if state in _ENDED else numbers[_START_TIME - 1]


def _started_by_ps(pid: int) -> str | None:
    answer = subprocess.run(  # noqa: S603 - the argument is a number
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not state or state.startswith(_ENDED) else started.strip()


def is_running(pid: int, started: str) -> bool:
    """Whether the process that was started at this time is alive, rather than a later one with the same pid."""
    return started_at(pid) == started
