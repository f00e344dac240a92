"""Leases without waiting: owners on machines that are made up, and a clock that a test moves."""

from dataclasses import replace

from penstock.runtime.lease.files import LocalLeaseFiles
from penstock.runtime.lease.lease import Clock, Lease
from penstock.runtime.lease.owner import Owner


def owner(name="job", *, machine=None, **changes):
    """A driver; on this machine unless another one is named."""
    this = Owner.of_this_process(job_id=f"{name}-0123456789", job_name=name, since=0.0)
    if machine is not None:
        changes = {"machine": machine, "host": machine, **changes}
    return replace(this, **changes)


class Directory:
    """The lease of one checkpoint directory."""

    def __init__(self, path):
        self.path = path
        self.files = LocalLeaseFiles(str(path), path / "lease")

    def acquire(self, who=None, **options):
        return Lease.acquire(self.files, who or owner(), **options)

    @property
    def names(self):
        return sorted(self.files.names())


class MovedByHand(Clock):
    """Time passes while a driver sleeps; something may happen meanwhile."""

    def __init__(self, meanwhile=lambda now: None):
        self.now = 0.0
        self.meanwhile = meanwhile

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.meanwhile(self.now)
