"""The lease on a job's checkpoint directory, on any storage."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from penstock.common.configuration import Configuration
from penstock.common.errors import CheckpointError, InvalidProgramError
from penstock.common.local_path import local_path
from penstock.common.time import parse_duration
from penstock.core.fence import Fence
from penstock.graph.settings import JobSettings
from penstock.runtime.lease.files import LeaseFiles, LocalLeaseFiles
from penstock.runtime.lease.lease import DEFAULT_TIMEOUT, TAKE_OVER_KEY, TIMEOUT_KEY, Lease, check_free
from penstock.runtime.lease.owner import Owner
from penstock.spark.hadoop_directory import HadoopDirectory, reason_of

__all__ = ["LEASE", "HadoopLeaseFiles", "acquire_lease", "refuse_if_in_use"]

LEASE = "lease"
"""The subdirectory of the lease in the checkpoint directory."""
_EXISTS = ("FileAlreadyExistsException", "RemoteFileChangedException", "PathExistsException")
_MISSING = "FileNotFoundException"
_MILLIS = 1000
# Object stores create a file when it is closed. With this option, S3 refuses to replace an existing one
# (If-None-Match). Azure and Google always do so, and HDFS creates the file when it is opened.
_CONDITIONAL = "fs.option.create.conditional.overwrite"


def refuse_if_in_use(settings: JobSettings) -> None:
    """Fail at once if another driver on this machine uses the directory: starting Spark would take a while."""
    location = settings.checkpoint_dir
    directory = None if location is None else local_path(location)
    if location is None or directory is None or _takes_over(settings.configuration):
        return
    check_free(LocalLeaseFiles(location, Path(directory) / LEASE))


def acquire_lease(spark: SparkSession, settings: JobSettings, job_id: str) -> Fence:
    """Take the lease of a job's checkpoint directory, and keep renewing it."""
    location = settings.checkpoint_dir
    if location is None:
        return Fence()
    directory = HadoopDirectory(spark, location)
    local = directory.local()
    files: LeaseFiles
    files = HadoopLeaseFiles(spark, location) if local is None else LocalLeaseFiles(location, local / LEASE)
    lease = Lease.acquire(
        files,
        Owner.of_this_process(job_id, settings.job_name, since=time.time()),
        timeout=_timeout(settings.configuration),
        take_over=_takes_over(settings.configuration),
    )
    lease.start_renewing()
    return lease


def _timeout(configuration: Mapping[str, str]) -> float:
    text = configuration.get(TIMEOUT_KEY)
    seconds = DEFAULT_TIMEOUT if text is None else parse_duration(text).to_milliseconds() / _MILLIS
    if seconds <= 0:
        raise InvalidProgramError(f"{TIMEOUT_KEY} must be positive, got {text!r}")
    return seconds


def _takes_over(configuration: Mapping[str, str]) -> bool:
    return Configuration.from_dict(configuration).get_boolean(TAKE_OVER_KEY, default_value=False)


class HadoopLeaseFiles:
    """The files of a lease on a storage that only Spark can access: HDFS, S3, GCS, Azure."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location
        self._directory = HadoopDirectory(spark, f"{location.rstrip('/')}/{LEASE}")

    def names(self) -> list[str]:
        """Return the names of all files."""
        try:
            return self._directory.names()
        except Py4JError as error:
            raise self._unusable(error) from None

    def create(self, name: str, content: bytes) -> bool:
        """Create the file only if it does not exist; the storage enforces this."""
        try:
            file_system, path = self._directory.path_of(name)
            builder = file_system.createFile(path).overwrite(False).recursive().opt(_CONDITIONAL, "true")
            self._fill(builder.build(), content)
        except Py4JJavaError as error:
            if _is(error, *_EXISTS):
                return False
            raise self._unusable(error) from None
        except Py4JError as error:
            raise self._unusable(error) from None
        return True

    def read(self, name: str) -> bytes | None:
        """Return the content, or None."""
        try:
            file_system, path = self._directory.path_of(name)
            stream = file_system.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Py4JJavaError as error:
            if _is(error, _MISSING):
                return None
            raise self._unusable(error) from None
        except Py4JError as error:
            raise self._unusable(error) from None

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        try:
            file_system, path = self._directory.path_of(name)
            return bool(file_system.exists(path))
        except Py4JError as error:
            raise self._unusable(error) from None

    def write(self, name: str, content: bytes) -> None:
        """Replace the file."""
        try:
            file_system, path = self._directory.path_of(name)
            self._fill(file_system.create(path, True), content)
        except Py4JError as error:
            raise self._unusable(error) from None

    def remove(self, name: str) -> None:
        """Delete the file."""
        try:
            file_system, path = self._directory.path_of(name)
            file_system.delete(path, False)
        except Py4JError as error:
            raise self._unusable(error) from None

    def _fill(self, stream: Any, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def _unusable(self, error: Py4JError) -> CheckpointError:
        return CheckpointError(f"cannot use the lease of the checkpoint directory {self.location}: {reason_of(error)}")


def _is(error: Py4JJavaError, *names: str) -> bool:
    """Whether a Java exception, or one of its causes, has a class with one of these names."""
    cause = error.java_exception
    while cause is not None:
        if str(cause.getClass().getSimpleName()) in names:
            return True
        cause = cause.getCause()
    return False
