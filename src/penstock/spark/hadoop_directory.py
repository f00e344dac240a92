"""A directory on any storage that Spark can write to, through Hadoop's file systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.common.errors import CheckpointError
from penstock.spark.storage_failures import unwritable

__all__ = ["HadoopDirectory", "reason_of"]


class HadoopDirectory:
    """Files by names relative to the directory.

    :param guard: called before every change; may raise an error
    """

    def __init__(self, spark: SparkSession, location: str, guard: Callable[[], None] | None = None) -> None:
        self._spark = spark
        self.location = location
        self._guard = guard

    def names(self, below: str = "") -> list[str]:
        """Return the names in the directory or one of its subdirectories."""
        file_system, path = self.path_of(below)
        if not file_system.exists(path):
            return []
        return [str(status.getPath().getName()) for status in file_system.listStatus(path)]

    def read(self, name: str) -> bytes:
        """Return a file's content."""
        file_system, path = self.path_of(name)
        try:
            stream = file_system.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Py4JError as error:
            raise CheckpointError(
                f"the file {name} in checkpoint {self.location} cannot be read: {reason_of(error)}"
            ) from None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file atomically: a crash leaves the old file or the new one."""
        file_system, path = self.path_of(name)
        folder, _, last = name.rpartition("/")
        _, temporary = self.path_of(f"{folder}/.{last}.tmp" if folder else f".{last}.tmp")
        self._check()
        try:
            file_system.mkdirs(path.getParent())
            stream = file_system.create(temporary, True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()
            if not file_system.rename(temporary, path):  # the file system cannot replace a file
                file_system.delete(path, False)
                file_system.rename(temporary, path)
        except Py4JError as error:
            raise unwritable(self.location, self.local(), reason_of(error)) from None

    def delete(self, name: str) -> None:
        """Remove a file or subdirectory, if it exists."""
        file_system, path = self.path_of(name)
        self._check()
        file_system.delete(path, True)

    def remove(self) -> None:
        """Remove the directory and everything in it."""
        self.delete("")

    def qualified(self) -> str:
        """The location of the directory, as Spark writes it."""
        file_system, path = self.path_of("")
        return str(file_system.makeQualified(path).toString())

    def local(self) -> Path | None:
        """The directory as a path, if it is local or mounted."""
        file_system, path = self.path_of("")
        address = file_system.makeQualified(path).toUri()
        return Path(str(address.getPath())) if str(address.getScheme()).lower() == "file" else None

    def _check(self) -> None:
        if self._guard is not None:
            self._guard()

    def path_of(self, name: str) -> tuple[Any, Any]:
        """Return Hadoop's file system for the directory, and a path in it."""
        jvm: Any = self._spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(self.location)
        if name:
            path = jvm.org.apache.hadoop.fs.Path(path, name)
        return path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()), path


def reason_of(error: Py4JError) -> str:
    """Return the reason of a Java exception."""
    return str(getattr(error, "java_exception", error))
