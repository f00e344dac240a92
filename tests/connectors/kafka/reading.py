"""A job that reads a Kafka source, and what it has read."""

from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.connectors.kafka import KafkaSource
from penstock.datastream import ProcessFunction, StreamExecutionEnvironment
from penstock.testing import MiniCluster

SEEN = []


def see(value):
    SEEN.append(value)
    return value


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        SEEN.append((value, ctx.timestamp(), ctx.timer_service().current_watermark()))
        yield value


def take():
    found = list(SEEN)
    SEEN.clear()
    return found


class Program:
    """A job that reads a Kafka source; what it has read is in SEEN."""

    def __init__(self, kafka, *, parallelism=1, max_records=None, strategy=None, clock=None):
        self.builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers)
        self.builder.set_value_only_deserializer(SimpleStringSchema())
        self.cluster = MiniCluster(max_records=max_records, clock=clock)
        self.parallelism = parallelism
        self.strategy = strategy or WatermarkStrategy.no_watermarks()
        self.function = see

    def start(self, snapshot=None):
        env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(self.parallelism)
        stream = env.from_source(self.builder.build(), self.strategy, "kafka").uid("kafka")
        if self.function is see:
            stream.map(see).print()
        else:
            stream.rebalance().process(self.function).set_parallelism(1).print()
        return self.cluster.start(env.sinks, env.job_settings("job"), snapshot=snapshot)

    def run(self, snapshot=None):
        """Read what there is."""
        job = self.start(snapshot)
        job.run()
        state = job.snapshot()
        job.close()
        return state


def numbers(*bounds):
    return [str(n) for n in range(*bounds)]
