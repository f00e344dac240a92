"""A program that keeps state the test chooses, its savepoints, and its next versions."""

import queue
from dataclasses import dataclass

from support import Script

from penstock.common import Types, WatermarkStrategy
from penstock.connectors.sinks import CollectSink
from penstock.datastream import CheckpointedFunction, KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.testing import ManualClock, MiniCluster


class Keeps(KeyedProcessFunction):
    """Keeps a value for each key in states that the test chooses, and emits what it finds."""

    def __init__(self, *descriptors, update=lambda value, key: value):
        self.descriptors = descriptors
        self.update = update

    def open(self, runtime_context):
        getters = {
            ValueStateDescriptor: runtime_context.get_state,
            ListStateDescriptor: runtime_context.get_list_state,
            MapStateDescriptor: runtime_context.get_map_state,
            ReducingStateDescriptor: runtime_context.get_reducing_state,
        }
        self.states = {d.name: getters[type(d)](d) for d in self.descriptors}

    def process_element(self, value, ctx):
        found = {}
        for name, state in self.states.items():
            if hasattr(state, "value"):
                found[name] = state.value()
                state.update(self.update(value, ctx.get_current_key()))
            elif hasattr(state, "items"):
                found[name] = dict(state.items())
                state.put(value, value)
            else:
                found[name] = state.get() if not hasattr(state, "add_all") else list(state.get())
                state.add(self.update(value, ctx.get_current_key()))
        yield found


class Program:
    def __init__(self, parallelism=2, max_parallelism=None):
        self.cluster = MiniCluster(clock=ManualClock(5))
        self.env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(parallelism)
        if max_parallelism is not None:
            self.env.set_max_parallelism(max_parallelism)
        self.source = Script(bounded=False)
        self.sink = CollectSink()

    def stream(self, uid="source"):
        return self.env.from_source(self.source, WatermarkStrategy.no_watermarks(), "Script").uid(uid)

    def keeping(self, *descriptors, uid="keeps", **options):
        self.stream().key_by(str).process(Keeps(*descriptors, **options)).uid(uid).sink_to(self.sink)
        return self

    def start(self, savepoint=None, **options):
        self.job = self.cluster.start(
            list(self.env.sinks), self.env.job_settings("job"), savepoint=savepoint, **options
        )
        return self

    def continue_from(self, before, **options):
        """As on the checkpoint directory of the version before, which has crashed."""
        return self.start(snapshot=before.job.snapshot(), **options)

    def feed(self, *values):
        """New elements; a restored job finds the position of its source behind those it has read."""
        self.source.splits[0] += [None] * (self._position() - len(self.source.splits[0])) + list(values)
        self.job.run()
        found = []
        while True:
            try:
                found += self.sink.records.get_nowait()
            except queue.Empty:
                return found

    def _position(self):
        positions = [splits["0"].offset for splits in self.job.offset.splits.values()]
        return max(positions, default=0)

    def stop(self, directory):
        return self.job.stop_with_savepoint(str(directory))


def saved(tmp_path, *descriptors, **options):
    """A savepoint of a job that has seen the values 1 to 5."""
    program = Program().keeping(*descriptors, **options).start()
    program.feed(1, 2, 3, 4, 5)
    return program.stop(tmp_path)


def restored(path, *descriptors, parallelism=3, **options):
    start = {"allow_non_restored_state": options.pop("allow", False)}
    return Program(parallelism).keeping(*descriptors, **options).start(path, **start)


@dataclass
class Typed(MapFunction, CheckpointedFunction):
    """Operator state of any kind, with a declared type or without."""

    mode: str
    types: tuple

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        if self.mode == "broadcast":
            self.state = store.get_broadcast_state(MapStateDescriptor("kept", *self.types))
            self.given = sorted(self.state.items())
        else:
            get = store.get_list_state if self.mode == "list" else store.get_union_list_state
            self.state = get(ListStateDescriptor("kept", *self.types))
            self.given = list(self.state.get())

    def snapshot_state(self, context):
        """Everything is in the state."""

    def map(self, value):
        if self.mode == "broadcast":
            self.state.put(*value)
        else:
            self.state.add(value)
        return self.given


def typed(mode, *types, parallelism=1):
    program = Program(parallelism)
    program.stream().broadcast().map(Typed(mode, types)).uid("typed").name("typed").sink_to(program.sink)
    return program


OTHER_OPERATOR_TYPES = [
    ("list", [Types.STRING()], [Types.LONG()], "a"),
    ("union", [Types.STRING()], [Types.LONG()], "a"),
    ("broadcast", [Types.STRING(), Types.STRING()], [Types.STRING(), Types.LONG()], ("a", "b")),
    ("broadcast", [Types.STRING(), Types.STRING()], [Types.LONG(), Types.STRING()], ("a", "b")),
]
"""Operator state of a mode that is declared otherwise by a later version, and a value of the earlier one."""
