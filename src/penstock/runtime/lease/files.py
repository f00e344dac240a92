"""The storage of leases: a few small files. The file system only needs an atomic conditional create."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from pathlib import Path
from typing import Protocol

from penstock.common.errors import CheckpointError
from penstock.common.storage import directory_trouble
from penstock.runtime.storage.checked_file import sync_directory

__all__ = ["LeaseFiles", "LocalLeaseFiles"]

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}


class LeaseFiles(Protocol):
    """The files of one lease, by name."""

    location: str
    """The checkpoint directory, for messages."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def create(self, name: str, content: bytes) -> bool:
        """Create a file durably if it does not exist. Of several concurrent callers, only one gets True."""

    def read(self, name: str) -> bytes | None:
        """Read the current content of a file, not a cached one. Return ``None`` if there is no such file."""

    def exists(self, name: str) -> bool:
        """Whether the file exists now."""

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file. Fails if the directory no longer exists."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""


class LocalLeaseFiles:
    """Files on a local disk or a mounted file system.

    Network file systems cache lookups. Opening a file makes them ask the server, so ``read`` opens it every time, and a
    new owner removes the file of the previous one.
    """

    def __init__(self, location: str, directory: Path) -> None:
        self.location = location
        self._directory = directory

    def names(self) -> list[str]:
        """Return the names without temporary files."""
        try:
            return [path.name for path in self._directory.iterdir() if not path.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable(error) from error

    def create(self, name: str, content: bytes) -> bool:
        """Write under another name and link: the file is complete from the start."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            return self._create(name, content)
        except OSError as error:
            raise self._unusable(error) from error

    def _create(self, name: str, content: bytes) -> bool:
        target = self._directory / name
        temporary = self._temporary(name)
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return self._create_exclusively(target, content)
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(self._directory)
        return True

    def _create_exclusively(self, target: Path, content: bytes) -> bool:
        """Create without hard links, for FAT and some network file systems. A reader may briefly see an empty file."""
        try:
            with target.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            return False
        sync_directory(self._directory)
        return True

    def read(self, name: str) -> bytes | None:
        """Open the file and read it."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ESTALE:  # removed on the file server
                return None
            raise self._unusable(error) from error

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return (self._directory / name).exists()

    def write(self, name: str, content: bytes) -> None:
        """Write atomically, without syncing to disk: after a machine crash, the file is not needed."""
        temporary = self._temporary(name)
        try:
            temporary.write_bytes(content)
            temporary.replace(self._directory / name)
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            (self._directory / name).unlink(missing_ok=True)

    def _temporary(self, name: str) -> Path:
        return self._directory / f".{name}.{uuid.uuid4().hex[:8]}.tmp"

    def _unusable(self, error: OSError) -> CheckpointError:
        reason = directory_trouble(self._directory) or error
        return CheckpointError(f"cannot use the lease of the checkpoint directory {self.location}: {reason}")
