"""Storage of savepoints: local or mounted directories, and all file systems of pyarrow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from penstock.common.errors import InvalidProgramError, SavepointError
from penstock.common.local_path import local_path
from penstock.common.storage import storage_error

_ADVICE = "Free some space, or choose another directory for the savepoint: the job continues without it"


class Directory(Protocol):
    """The files of one savepoint, by names relative to it."""

    location: str

    def create(self, name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """Open a file for writing. It exists, complete, when the context ends without an error."""

    def open(self, name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """Open a file for reading, with random access."""

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist."""

    def files(self) -> list[str]:
        """Return the names of all files, including subdirectories."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""

    def dispose(self) -> None:
        """Remove the directory with all files of the savepoint."""


def directory_at(location: str | os.PathLike[str]) -> Directory:
    """Return the directory at a path, ``file:`` URI or other URI, also if it ends in the file ``_metadata``.

    >>> directory_at("file:///tmp/with%20blank").location
    '/tmp/with blank'
    >>> directory_at("/tmp/savepoint-1/_metadata").location
    '/tmp/savepoint-1'
    """
    location = _text(location).removesuffix("/_metadata")
    path = _local_path(location)
    return ArrowDirectory(location) if path is None else LocalDirectory(path)


def _text(location: str | os.PathLike[str]) -> str:
    try:
        return os.fspath(location)
    except TypeError:
        raise SavepointError(f"the directory of a savepoint must be a path or a URI, got {location!r}") from None


def _local_path(location: str) -> str | None:
    try:
        return local_path(location, decode=True)
    except InvalidProgramError as error:
        raise SavepointError(str(error)) from None


def absolute(location: str | os.PathLike[str]) -> str:
    """Return an absolute location: workers do not run in the working directory of the program.

    >>> absolute("/tmp/here"), absolute("s3://bucket/there")
    ('/tmp/here', 's3://bucket/there')
    """
    location = _text(location)
    path = _local_path(location)
    return location if path is None or Path(path).is_absolute() else str(Path(path).absolute())


def join(location: str | os.PathLike[str], name: str) -> str:
    """Return the location of a file below a location."""
    return f"{_text(location).rstrip('/')}/{name}"


class LocalDirectory:
    """A local directory."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._root = Path(location)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Write under another name, sync to disk, then rename."""
        path = self._root / name
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError as error:
            raise SavepointError(str(storage_error(path, error, _ADVICE))) from error
        finally:
            with contextlib.suppress(OSError):  # the first error counts
                temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a local file."""
        path = self._root / name
        try:
            stream = path.open("rb")
        except OSError as error:
            raise SavepointError(f"cannot read {path}: {error}") from error
        with stream:
            yield stream

    def size(self, name: str) -> int | None:
        """Return the size of a file."""
        try:
            return (self._root / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SavepointError(f"cannot read {self._root / name}: {error}") from error

    def files(self) -> list[str]:
        """Return all files."""
        try:
            return sorted(str(path.relative_to(self._root)) for path in self._root.rglob("*") if path.is_file())
        except OSError as error:
            raise SavepointError(f"cannot read the directory {self._root}: {error}") from error

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._root / name).unlink(missing_ok=True)

    def dispose(self) -> None:
        """Remove only the savepoint's own files: the directory may contain others."""
        for name in self.files():
            if name == "_metadata" or name.endswith((".data", ".tmp")):
                self.remove(name)
        for path in sorted((p for p in self._root.rglob("*") if p.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            self._root.rmdir()


class ArrowDirectory:
    """A directory in a file system of pyarrow: s3, gs, hdfs, ..."""

    def __init__(self, location: str) -> None:
        from pyarrow import fs

        self.location = location
        try:
            self._fs, self._root = fs.FileSystem.from_uri(location)
        except Exception as error:
            raise SavepointError(
                f"cannot use the directory {location}: {error}. Use a path that all workers share, or a URI of a file "
                "system that pyarrow supports (file:, s3:, gs:, hdfs:)"
            ) from error

    def _path(self, name: str) -> str:
        return join(self._root, name)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """Write a file. Object stores show it when it is closed. In other file systems, it is renamed."""
        path = self._path(name)
        self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self._fs.open_output_stream(path + ".tmp") as stream:
            yield stream
        self._fs.move(path + ".tmp", path)

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """Open a file with random access."""
        try:
            stream = self._fs.open_input_file(self._path(name))
        except OSError as error:
            raise SavepointError(f"cannot read {self._path(name)}: {error}") from error
        with stream:
            yield stream

    def size(self, name: str) -> int | None:
        """Return the size of a file."""
        info = self._fs.get_file_info(self._path(name))
        size: int | None = info.size if info.is_file else None
        return size

    def files(self) -> list[str]:
        """Return all files."""
        from pyarrow import fs

        selector = fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        prefix = len(self._root.rstrip("/")) + 1
        return sorted(info.path[prefix:] for info in self._fs.get_file_info(selector) if info.is_file)

    def remove(self, name: str) -> None:
        """Remove a file."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(self._path(name))

    def dispose(self) -> None:
        """Delete all files of a savepoint."""
        for name in self.files():
            if name == "_metadata" or name.endswith((".data", ".tmp")):
                self.remove(name)
