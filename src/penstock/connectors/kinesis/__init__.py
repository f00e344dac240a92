"""The connectors for Kinesis Data Streams and Data Firehose, based on boto3: ``pip install 'penstock[kinesis]'``."""

from __future__ import annotations

from penstock.connectors.kinesis.alignment import WatermarkTracker
from penstock.connectors.kinesis.client import KinesisError
from penstock.connectors.kinesis.deserialization import KinesisDeserializationSchema
from penstock.connectors.kinesis.firehose_sink import KinesisFirehoseSink, KinesisFirehoseSinkBuilder
from penstock.connectors.kinesis.shards import KinesisShard, KinesisShardAssigner
from penstock.connectors.kinesis.source import FlinkKinesisConsumer
from penstock.connectors.kinesis.streams_sink import (
    KinesisStreamsSink,
    KinesisStreamsSinkBuilder,
    PartitionKeyGenerator,
)

__all__ = [
    "FlinkKinesisConsumer",
    "KinesisDeserializationSchema",
    "KinesisError",
    "KinesisFirehoseSink",
    "KinesisFirehoseSinkBuilder",
    "KinesisShard",
    "KinesisShardAssigner",
    "KinesisStreamsSink",
    "KinesisStreamsSinkBuilder",
    "PartitionKeyGenerator",
    "WatermarkTracker",
]
