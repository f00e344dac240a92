"""Errors for directories that cannot be written: the cause, the free space, and what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.common.errors import StorageError

__all__ = ["directory_trouble", "free_space", "storage_error", "storage_errors"]

NEARLY_FULL = 1 << 20
"""A disk with fewer free bytes counts as full, because a failed write often removes its partial file."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_OF_STORAGE = {
    *_FULL,
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR),
    *(errno.EIO, errno.ESTALE, errno.ENAMETOOLONG, errno.EFBIG),
}


def storage_error(path: str | os.PathLike[str], reason: object, advice: str) -> StorageError:
    """Return the error for a local directory, or something in it, that cannot be written.

    :param reason: the exception or message, used if the directory itself is fine
    :param advice: what to do, as a sentence
    """
    what = _full(Path(path)) if getattr(reason, "errno", None) in _FULL else directory_trouble(path)
    if what is None and isinstance(reason, FileNotFoundError) and not Path(path).exists():
        what = "it was deleted"
    if what is None:
        said = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
        what = f"{said} ({free_space(path)})"
    return StorageError(f"cannot write to {os.fspath(path)}: {what}. {advice}")


@contextlib.contextmanager
def storage_errors(path: str | os.PathLike[str], advice: str) -> Iterator[None]:
    """Convert file system errors below a directory to a StorageError that says what to do."""
    try:
        yield
    except OSError as error:
        elsewhere = error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(path)
        if elsewhere or error.errno not in _OF_STORAGE:
            raise
        raise storage_error(path, error, advice) from error


def directory_trouble(path: str | os.PathLike[str]) -> str | None:
    """Return the reason why this process cannot write to a directory, which need not exist yet, or ``None``.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     directory_trouble(file.name + "/checkpoints") == f"{file.name} is a file and not a directory"
    True
    >>> directory_trouble(tempfile.gettempdir()) is None
    True
    """
    place = _nearest(Path(path))
    if not place.is_dir():
        return f"{place} is a file and not a directory"
    if not os.access(place, os.W_OK | os.X_OK):
        read_only = os.statvfs(place).f_flag & os.ST_RDONLY
        return f"{place} is on a read-only file system" if read_only else f"{place} is not writable for this user"
    if shutil.disk_usage(place).free < NEARLY_FULL:
        return _full(place)
    return None


def free_space(path: str | os.PathLike[str]) -> str:
    """Return how much space is free at a path.

    >>> free_space("/")  # doctest: +ELLIPSIS
    '... of ... free'
    """
    usage = shutil.disk_usage(_nearest(Path(path)))
    return f"{_size(usage.free)} of {_size(usage.total)} free"


def _full(path: Path) -> str:
    return f"no space left there ({free_space(path)})"


def _nearest(path: Path) -> Path:
    """Return the path, or its nearest existing parent."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"
