"""A program to be killed: counts records by key, exactly once, into one file for each checkpoint.

python counting_job.py CHECKPOINT_DIRECTORY OUTPUT_DIRECTORY RECORDS [MODE]
"""

import json
import sys
from pathlib import Path

from penstock.common import Configuration
from penstock.common.restart_strategy import RestartStrategies
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

KEYS = 7
BATCH = 60


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


class FilesSink(Sink):
    """Records become visible with the checkpoint they belong to, under its number."""

    def __init__(self, directory):
        self.directory = directory

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        return FilesCommitter(Path(self.directory))


class FilesCommitter(Committer):
    """Idempotent: committing again writes the same file again, in one step."""

    def __init__(self, directory):
        self.directory = directory

    def commit(self, committables, checkpoint_id):
        temporary = self.directory / f"{checkpoint_id}.tmp"
        temporary.write_text(json.dumps(committables))
        temporary.rename(self.directory / f"{checkpoint_id}.json")


def main(checkpoint, output, records, mode="micro-batch"):
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": "local[2]"})
    configuration.set_string("penstock.execution.mode", mode)
    if mode == "continuous":
        configuration.set_string("execution.checkpointing.interval", "20 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000, 10))
    numbers = env.from_sequence(1, records).uid("numbers")
    numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count").sink_to(FilesSink(output)).uid("files")
    env.execute("count")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
