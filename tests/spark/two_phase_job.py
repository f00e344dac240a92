"""A program to be killed: counts records by key and writes the counts through a two-phase-commit function.

python two_phase_job.py CHECKPOINT_DIRECTORY OUTPUT_DIRECTORY RECORDS [MASTER]
"""

import json
import sys
import uuid
from pathlib import Path

from penstock.common import Configuration
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.functions import TwoPhaseCommitSinkFunction
from penstock.datastream.state import ValueStateDescriptor

KEYS = 7
BATCH = 60


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


class Files(TwoPhaseCommitSinkFunction):
    """A transaction is a file, hidden until it is committed."""

    def __init__(self, directory):
        self.directory = directory

    def begin_transaction(self):
        return str(Path(self.directory) / f".{uuid.uuid4().hex}")

    def invoke(self, transaction, value, context):
        with Path(transaction).open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")

    def pre_commit(self, transaction):
        """Written already."""

    def commit(self, transaction):
        hidden = Path(transaction)
        if hidden.exists():  # else it has been committed, or nothing was written
            hidden.rename(hidden.with_name(f"{hidden.name[1:]}.txt"))

    def abort(self, transaction):
        Path(transaction).unlink(missing_ok=True)


def committed(directory):
    """What readers of the directory see."""
    lines = [line for path in Path(directory).glob("*.txt") for line in path.read_text().splitlines()]
    return sorted(tuple(json.loads(line)) for line in lines)


def main(checkpoint, output, records, master="local[2]"):
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": master})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    numbers = env.from_sequence(1, records).uid("numbers")
    numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count").add_sink(Files(output)).uid("files")
    env.execute("count")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
