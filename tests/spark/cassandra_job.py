"""A program to be killed: numbers -> counts by key -> Cassandra, by upserts and through a write-ahead log.

python cassandra_job.py CHECKPOINT_DIRECTORY PORT

Keys of the log's rows are random: a batch that is run again makes other ones, so that every row that is written but
should not be is counted.
"""

import sys
import uuid
from pathlib import Path

from penstock.common import Configuration
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import CassandraSink
from penstock.datastream.state import ValueStateDescriptor

NUMBERS = 800
KEYS = 7


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def main(checkpoint, port):
    configuration = Configuration.from_dict({"penstock.batch.max-records": "40", "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    counts = env.from_sequence(0, NUMBERS - 1).uid("numbers").key_by(lambda n: n % KEYS).process(Count()).uid("counts")

    def to(query, **settings):
        return CassandraSink.sink(query, host="127.0.0.1", port=int(port), max_retries=100, **settings)

    counts.sink_to(to("INSERT INTO example.counts (key, count) VALUES (?, ?)")).uid("upserts")
    logged = counts.map(lambda pair: (str(uuid.uuid4()), *pair)).uid("ids")
    query = "INSERT INTO example.events (id, key, count) VALUES (?, ?, ?)"
    logged.sink_to(to(query, write_ahead_log=True)).uid("log")
    env.execute("count")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
