"""Files as sources and sinks."""

from __future__ import annotations

from penstock.connectors.file_system.sink import FileSink, StreamingFileSink
from penstock.connectors.file_system.sink_options import (
    BucketAssigner,
    BucketContext,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.connectors.file_system.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from penstock.formats.file_format import BulkFormat, StreamFormat

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
