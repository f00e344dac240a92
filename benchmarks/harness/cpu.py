"""CPU seconds of a whole process tree and of the machine, read from /proc.

On a shared machine wall-clock rates move with the neighbours' load. CPU seconds per record move much less, so every
measurement carries both, and how much the neighbours took meanwhile.
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
    for pid, fields in _processes():
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))  # own user and system time, and that of children waited for
    total, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        total += ticks.get(pid, 0)
        todo.extend(children.get(pid, ()))
    return total / _TICKS


def machine_cpu_seconds() -> float:
    """Seconds that all processors together were busy since the machine started."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def processes_of_session(session: int) -> list[int]:
    """The live processes of a session (setsid), by their ids."""
    return [pid for pid, fields in _processes() if int(fields[3]) == session]


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield (pid, the fields of /proc/pid/stat from the third, the state, on)."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue  # ended meanwhile
        # The command name before them is in parentheses and may hold spaces and parentheses.
        yield int(entry.name), text.rpartition(")")[2].split()
