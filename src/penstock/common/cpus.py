"""The number of CPU cores that this process may use."""

from __future__ import annotations

import os

__all__ = ["usable_cpus"]


def usable_cpus() -> int:
    """Return the number of cores this process may run on. Systems without such a limit report all cores.

    >>> usable_cpus() >= 1
    True
    """
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
