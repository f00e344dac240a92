"""A program to be killed: a RabbitMQ queue -> by key -> files, exactly once.

python rabbitmq_job.py CHECKPOINT_DIRECTORY PORT QUEUE OUTPUT_DIRECTORY
"""

import sys
from pathlib import Path

from penstock.common import Configuration, Encoder, SimpleStringSchema
from penstock.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from penstock.connectors.rabbitmq import RMQConnectionConfig, RMQSource
from penstock.datastream import StreamExecutionEnvironment


class Until(SimpleStringSchema):
    def is_end_of_stream(self, next_element):
        return next_element == "end"


def main(checkpoint, port, queue, output):
    configuration = Configuration.from_dict({"penstock.batch.max-records": "40", "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    config = (
        RMQConnectionConfig.Builder()
        .set_uri(f"amqp://guest:guest@127.0.0.1:{port}/%2F")
        .set_prefetch_count(100)
        .build()
    )
    sink = (
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    numbers = env.add_source(RMQSource(config, queue, True, Until()), "queue").uid("queue")
    numbers.key_by(lambda n: int(n) % 5).map(str).uid("map").sink_to(sink).uid("files")
    env.execute("queue")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
