"""The state pages of one stage on the machine of its task: few in memory, many in a file.

The file is private to the task and has no name in the file system, so it disappears however the task ends. It is not
part of any checkpoint. The size of a page's slot is a power of two. Free slots are reused, so the file does not grow
with the number of writes, and needs no compaction.
"""

from __future__ import annotations

import os
import tempfile

from penstock.common.errors import CheckpointError
from penstock.runtime.state.change_log import is_changes_page

__all__ = ["LocalPages", "PageFile"]

_IN_MEMORY = 4 << 20
_SMALLEST_SLOT = 12  # as a power of two
_LOCAL_DIRECTORIES = "SPARK_LOCAL_DIRS"


class PageFile:
    """Blobs by name in an unnamed file.

    >>> pages = PageFile()
    >>> pages.put("a", b"one")
    >>> pages.put("a", b"two")
    >>> pages.get("a"), pages.get("b")
    (b'two', None)
    >>> pages.remove("a")
    >>> pages.get("a")
    """

    __slots__ = ("_end", "_file", "_free", "_slots")

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp(prefix="penstock-", dir=local_directory())
        os.unlink(path)  # noqa: PTH108 - the file is deleted with its last descriptor
        self._slots: dict[str, tuple[int, int]] = {}  # position and length
        self._free: dict[int, list[int]] = {}  # by size
        self._end = 0

    def __del__(self) -> None:
        os.close(self._file)

    def get(self, name: str) -> bytes | None:
        """Return the blob under this name."""
        slot = self._slots.get(name)
        if slot is None:
            return None
        place, length = slot
        data = os.pread(self._file, length, place)
        if len(data) < length:
            raise CheckpointError(
                f"the local file with state pages is too short: '{name}' should end at {place + length}"
            )
        return data

    def put(self, name: str, blob: bytes) -> None:
        """Store a blob."""
        size = _slot_size(len(blob))
        old = self._slots.get(name)
        if old is not None and _slot_size(old[1]) == size:
            place = old[0]
        else:
            self.remove(name)
            free = self._free.get(size)
            if free:
                place = free.pop()
            else:
                place, self._end = self._end, self._end + size
        try:
            written = 0
            while written < len(blob):
                written += os.pwrite(self._file, memoryview(blob)[written:], place + written)
        except OSError as error:
            raise CheckpointError(
                f"cannot write state that exceeds memory to {local_directory()}: {error}. Free some space, or let "
                "spark.local.dir name a directory on a larger disk"
            ) from error
        self._slots[name] = (place, len(blob))

    def remove(self, name: str) -> None:
        """Remove a blob, if it exists."""
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._free.setdefault(_slot_size(slot[1]), []).append(slot[0])

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._end


def _slot_size(length: int) -> int:
    return 1 << max(_SMALLEST_SLOT, (length - 1).bit_length())


def local_directory() -> str:
    """Return Spark's directory for local files, or the directory for temporary files."""
    first = os.environ.get(_LOCAL_DIRECTORIES, "").partition(",")[0]
    return first if first and os.path.isdir(first) else tempfile.gettempdir()  # noqa: PTH112


class LocalPages:
    """A page store that records changes since the last checkpoint.

    >>> store = LocalPages()
    >>> store.put("a", b"1")
    >>> store.put("b", b"2")
    >>> store.remove("a")
    >>> store.take()
    ({'b': b'2'}, {'a'})
    >>> store.take()
    ({}, set())
    """

    __slots__ = ("_bytes", "_changed", "_file", "_memory", "_memory_limit", "_removed")

    def __init__(self, memory_limit: int = _IN_MEMORY) -> None:
        self._memory: dict[str, bytes] = {}
        self._memory_limit = memory_limit
        self._bytes = 0
        self._file: PageFile | None = None
        self._changed: dict[str, bytes] = {}
        self._removed: set[str] = set()

    def get(self, page_id: str) -> bytes | None:
        """Return the blob under this id."""
        return self._memory.get(page_id) if self._file is None else self._file.get(page_id)

    def put(self, page_id: str, blob: bytes) -> None:
        """Store a blob."""
        self.load(page_id, blob)
        self._changed[page_id] = blob
        self._removed.discard(page_id)

    def load(self, page_id: str, blob: bytes) -> None:
        """Store a blob that is already in checkpoints."""
        if self._file is not None:
            self._file.put(page_id, blob)
            return
        self._bytes += len(blob) - len(self._memory.get(page_id, b""))
        self._memory[page_id] = blob
        if self._bytes > self._memory_limit:
            self._file = PageFile()
            for name, each in self._memory.items():
                self._file.put(name, each)
            self._memory.clear()

    def remove(self, page_id: str) -> None:
        """Remove a blob."""
        if self._file is None:
            self._bytes -= len(self._memory.pop(page_id, b""))
        else:
            self._file.remove(page_id)
        self._changed.pop(page_id, None)
        if not is_changes_page(page_id):  # these are only here until they are applied to their pages
            self._removed.add(page_id)

    def take(self) -> tuple[dict[str, bytes], set[str]]:
        """Return changed and removed pages since the last call."""
        changed, removed, self._changed, self._removed = self._changed, self._removed, {}, set()
        return changed, removed
