"""Files as sources and sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datastream.connectors.file_system.formats import BulkFormat, StreamFormat
from penstock.datastream.connectors.file_system.sink import FileSink, StreamingFileSink
from penstock.datastream.connectors.file_system.sink_options import (
    BucketAssigner,
    BucketContext,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.datastream.connectors.file_system.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from penstock.datastream.pyflink_imports import imported_names

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]


if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
