"""A program to be killed: a Kinesis stream -> by key -> files, exactly once.

python kinesis_job.py CHECKPOINT_DIRECTORY ENDPOINT STREAM OUTPUT_DIRECTORY
"""

import sys
from pathlib import Path

from penstock.common import Configuration, Encoder, SimpleStringSchema
from penstock.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from penstock.connectors.kinesis import FlinkKinesisConsumer
from penstock.datastream import StreamExecutionEnvironment


def main(checkpoint, endpoint, stream, output):
    configuration = Configuration.from_dict({"penstock.batch.max-records": "40", "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    properties = {
        "aws.region": "eu-west-1",
        "aws.endpoint": endpoint,
        "aws.credentials.provider.basic.accesskeyid": "key",
        "aws.credentials.provider.basic.secretkey": "secret",
        "flink.stream.initpos": "TRIM_HORIZON",
        "flink.shard.getrecords.maxrecordcount": "50",
        "flink.shard.getrecords.intervalmillis": "20",
        "flink.shard.discovery.intervalmillis": "500",
    }
    sink = (
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    numbers = env.add_source(FlinkKinesisConsumer(stream, SimpleStringSchema(), properties), "stream").uid("stream")
    numbers.key_by(lambda n: int(n) % 5).map(str).uid("map").sink_to(sink).uid("files")
    env.execute("stream")


if __name__ == "__main__":
    main(*sys.argv[1:])
