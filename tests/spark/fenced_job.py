"""A program for two drivers: counts records by key, exactly once, into the sink that is asked for.

penstock run fenced_job.py CHECKPOINT_DIRECTORY SINK TARGET RECORDS

SINK and TARGET: ``files`` a directory, ``two-phase-commit`` a directory, ``postgresql`` an address, ``kafka`` the
bootstrap servers and a topic with a slash between them.
"""

import sys
import uuid
from pathlib import Path

from penstock.common import Configuration, Encoder, SimpleStringSchema, Types
from penstock.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from penstock.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from penstock.core.functions import TwoPhaseCommitSinkFunction
from penstock.core.sink import DeliveryGuarantee
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

KEYS = 7
BATCH = 40
LINE = Types.ROW_NAMED(["line"], [Types.STRING()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield f"{ctx.get_current_key()} {self.count.value()}"


class Transactions(TwoPhaseCommitSinkFunction):
    """A system with transactions: files, which get another name with every step. A commit can be repeated."""

    def __init__(self, directory: str):
        self.directory = Path(directory)

    def path(self, name, stage):
        return self.directory / f"{name}.{stage}"

    def begin_transaction(self):
        name = uuid.uuid4().hex
        self.path(name, "open").touch()
        return name

    def invoke(self, transaction, value, context):
        with self.path(transaction, "open").open("a") as file:
            file.write(f"{value}\n")

    def pre_commit(self, transaction):
        self.path(transaction, "open").rename(self.path(transaction, "prepared"))

    def commit(self, transaction):
        if not self.path(transaction, "committed").exists():
            self.path(transaction, "prepared").rename(self.path(transaction, "committed"))

    def abort(self, transaction):
        self.path(transaction, "open").unlink(missing_ok=True)


def files(lines, target):
    sink = FileSink.for_row_format(target, Encoder.simple_string_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink.with_rolling_policy(RollingPolicy.default_rolling_policy(500, 10**9, 10**9))
    lines.sink_to(sink.build()).uid("sink")


def two_phase_commit(lines, target):
    lines.add_sink(Transactions(target)).uid("sink")


def postgresql(lines, target):
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(target).build()
    sink = JdbcSink.exactly_once_sink("INSERT INTO lines VALUES (?)", LINE, connection)
    lines.map(lambda line: (line,)).uid("rows").sink_to(sink).uid("sink")


def kafka(lines, target):
    servers, _, topic = target.partition("/")
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    builder = KafkaSink.builder().set_bootstrap_servers(servers)
    builder.set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(f"lines-{topic}")
    lines.sink_to(builder.build()).uid("sink")


SINKS = {"files": files, "two-phase-commit": two_phase_commit, "postgresql": postgresql, "kafka": kafka}


def main(checkpoint, sink, target, records):
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    numbers = env.from_sequence(1, int(records)).uid("numbers")
    SINKS[sink](numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count"), target)
    env.execute("count")
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
