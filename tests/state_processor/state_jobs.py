"""Jobs whose savepoints the tests of the State Processor API read, and functions that fill their state."""

from support import At, Script, collected

from penstock.common import Time, WatermarkStrategy
from penstock.connectors.sinks import CollectSink
from penstock.datastream import (
    KeyedProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.state_processor import (
    KeyedStateBootstrapFunction,
    OperatorTransformation,
    SavepointReader,
)
from penstock.testing import ManualClock, MiniCluster


def expiring(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


class Totals(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", default_value=0))
        self.seen = runtime_context.get_list_state(expiring(ListStateDescriptor("seen")))
        self.by_parity = runtime_context.get_map_state(expiring(MapStateDescriptor("by parity")))

    def process_element(self, value, ctx):
        key, number = value
        self.total.update(self.total.value() + number)
        self.seen.add(number)
        self.by_parity.put(number % 2, number)
        ctx.timer_service().register_event_time_timer(1_000 + number)
        ctx.timer_service().register_processing_time_timer(9_000)
        yield key, self.total.value(), list(self.seen.get())


class Elements(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window(), sorted(elements)


def by_key(value):
    return value[0]


class Job:
    """A job over a script, restored from a savepoint or not."""

    def __init__(self, build, *elements, savepoint=None, parallelism=2, source_uid="source", now=5, **options):
        self.sink = CollectSink()
        cluster = MiniCluster(clock=ManualClock(now))
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
        source = Script(elements, bounded=False)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Script").uid(source_uid)
        build(stream).sink_to(self.sink).set_parallelism(1)
        self.job = cluster.start(list(env.sinks), env.job_settings("job"), savepoint=savepoint, **options)
        self.job.run()

    def records(self):
        return collected(self.sink)

    def save(self, directory):
        return SavepointReader.read(self.job.stop_with_savepoint(str(directory))).verify()


def totals(stream):
    return stream.key_by(by_key).process(Totals()).uid("totals")


ELEMENTS = [At((key, number), number) for number in range(4) for key in "abc"]


class Fill(KeyedStateBootstrapFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))
        self.seen = runtime_context.get_list_state(expiring(ListStateDescriptor("seen")))
        self.by_parity = runtime_context.get_map_state(expiring(MapStateDescriptor("by parity")))

    def process_element(self, value, ctx):
        self.total.update(value[1])
        ctx.timer_service().register_event_time_timer(50)


def filled(pairs):
    return OperatorTransformation.bootstrap_with(pairs).key_by(by_key).transform(Fill())
