"""Notes in a file about what a process is doing. The file survives the process.

A function that crashes in native code, calls `os._exit` or runs out of memory takes its process with it, and no
exception says where it was. Each thread therefore notes which operator it runs. The notes are in memory that is mapped
to a file: writing one needs no system call, and the file outlives the process. Without a file, nothing is noted.
"""

from __future__ import annotations

import mmap
import os
import re
import threading

__all__ = ["BLACK_BOX", "NOTHING", "BlackBox", "note_of", "notes_in"]

_MARK = b"PENSTOCK-RUNS:"
_SLOT_BYTES = 240
_SLOTS = 16
NOTHING = b"\n".rjust(_SLOT_BYTES)
_NOTE = re.compile(re.escape(_MARK.decode()) + r"([^\n]*?) *\n")


class BlackBox:
    """The notes of one process."""

    def __init__(self) -> None:
        self._map: mmap.mmap | None = None
        self._of_thread = threading.local()
        self._used = 0

    def write_to(self, path: str) -> None:
        """Keep the notes at the start of this existing file."""
        with open(path, "r+b") as file:  # noqa: PTH123 - mmap needs a file object
            os.ftruncate(file.fileno(), _SLOTS * _SLOT_BYTES)
            self._map = mmap.mmap(file.fileno(), _SLOTS * _SLOT_BYTES)
        self._map[:] = NOTHING * _SLOTS
        self._of_thread = threading.local()
        self._used = 0

    def enter(self, note: bytes) -> bytes:
        """Note what this thread does from now on, and return its previous note."""
        if self._map is None:
            return NOTHING
        mine = self._of_thread
        try:
            before: bytes = mine.note
        except AttributeError:
            before, mine.place = NOTHING, self._used % _SLOTS * _SLOT_BYTES
            self._used += 1
        if note is not before:
            mine.note = note
            self._map[mine.place : mine.place + _SLOT_BYTES] = note
        return before


BLACK_BOX = BlackBox()
"""The black box of this process."""


def note_of(name: str, subtask: int, parallelism: int) -> bytes:
    """Return the note for a running operator.

    >>> len(note_of("count" * 100, 0, 1)) == len(note_of("count", 0, 2))
    True
    """
    where = f" (subtask {subtask + 1} of {parallelism})" if parallelism > 1 else ""
    label = name.encode("ascii", "backslashreplace").replace(b"\n", b" ")[: _SLOT_BYTES - len(_MARK) - len(where) - 8]
    return (_MARK + b"'" + label + b"'" + where.encode()).ljust(_SLOT_BYTES - 1) + b"\n"


def notes_in(text: str) -> list[str]:
    """Return the operators that were running, read from the text of a black box.

    >>> notes_in(note_of("count", 0, 2).decode())
    ["'count' (subtask 1 of 2)"]
    """
    return list(dict.fromkeys(_NOTE.findall(text)))
