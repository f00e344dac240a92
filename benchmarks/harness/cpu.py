"""CPU seconds of a whole process tree, read from /proc.

On a shared machine wall-clock rates move with the neighbours' load; CPU seconds per record move much less, so every
measurement carries both.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends, so that none leaves the measured tree."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def tree_cpu_seconds() -> float:
    """User and system seconds of this process, its live descendants, and all children already waited for."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for pid, parent, used in _processes():
        children.setdefault(parent, []).append(pid)
        ticks[pid] = used
    total, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        total += ticks.get(pid, 0)
        todo.extend(children.get(pid, ()))
    return total / _TICKS


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield (pid, parent pid, clock ticks); the ticks include children already waited for."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue  # ended meanwhile
        # The command name is in parentheses and may hold spaces; the fields after it are regular.
        fields = text.rpartition(")")[2].split()
        yield int(entry.name), int(fields[1]), sum(map(int, fields[11:15]))
