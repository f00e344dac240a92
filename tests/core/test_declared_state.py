"""State declared in the class of a function is the same as state asked for with a descriptor."""

import pickle
from datetime import timedelta

import pytest
from support import collected

from penstock.common import Types
from penstock.common.errors import InvalidProgramError, PenstockError, StateAccessError
from penstock.connectors.sinks import CollectSink
from penstock.core.functions import AggregateFunction
from penstock.core.state import (
    AggregatingState,
    ListState,
    ListStateDescriptor,
    MapState,
    ReducingState,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueState,
    ValueStateDescriptor,
)
from penstock.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.testing import KeyedOneInputOperatorHarness, MiniCluster


class Longest(AggregateFunction):
    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return max(value, accumulator, key=len)

    def get_result(self, accumulator):
        return len(accumulator)

    def merge(self, acc_a, acc_b):
        return max(acc_a, acc_b, key=len)


class Declared(KeyedProcessFunction):
    count = ValueState(int, default=0)
    seen = ListState(str)
    lengths = MapState(str, int)
    total = ReducingState(int, lambda a, b: a + b)
    longest = AggregatingState(Longest())

    def process_element(self, value, ctx):
        _, word = value
        self.count.update(self.count.value() + 1)
        self.seen.add(word)
        self.lengths[word] = len(word)
        self.total.add(len(word))
        self.longest.add(word)
        yield self.count.value(), list(self.seen), dict(self.lengths.items()), self.total.get(), self.longest.get()


class CountDeclared(KeyedProcessFunction):
    count = ValueState(int, default=0)
    words = ListState(str)
    letters = ReducingState(int, lambda a, b: a + b)

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        self.words.add(value[1])
        self.letters.add(len(value[1]))
        yield value[0], self.count.value(), list(self.words), self.letters.get()


class CountDescribed(CountDeclared):
    count = words = letters = None

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))
        self.words = runtime_context.get_list_state(ListStateDescriptor("words"))
        self.letters = runtime_context.get_reducing_state(ReducingStateDescriptor("letters", lambda a, b: a + b))


def harness(function, **options):
    return KeyedOneInputOperatorHarness(KeyedProcessOperator(function, lambda value: value[0]), **options)


def test_every_kind_of_state_can_be_declared():
    h = harness(pickle.loads(pickle.dumps(Declared())))
    for record in [("a", "to"), ("b", "be"), ("a", "three")]:
        h.process_element(record)
    assert h.extract_values()[-1] == (2, ["to", "three"], {"to": 2, "three": 5}, 7, 5)


def started(function, sink, **origin):
    cluster = MiniCluster(max_records=1)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    records = env.from_collection([("a", "to"), ("b", "be"), ("a", "or"), ("a", "not"), ("b", "x")]).uid("records")
    records.key_by(lambda r: r[0]).process(function()).uid("count").sink_to(sink)
    return cluster.start(list(env.sinks), env.job_settings(None), **origin)


@pytest.mark.parametrize(("before", "after"), [(CountDeclared, CountDescribed), (CountDescribed, CountDeclared)])
def test_a_savepoint_cannot_tell_declared_state_from_described_state(before, after, tmp_path):
    sink = CollectSink()
    job = started(before, sink)
    for _ in range(2):
        job.run_batch()
    path = job.stop_with_savepoint(str(tmp_path))
    collected(sink)
    job = started(after, sink, savepoint=path)
    job.run_to_end()
    job.close()
    assert collected(sink) == [("a", 3, ["to", "or", "not"], 7), ("b", 2, ["be", "x"], 3)]
    sink.release()


def test_states_of_base_classes_are_declared_too():
    class Louder(CountDeclared):
        loud = ValueState(bool, default=False)

        def process_element(self, value, ctx):
            self.loud.update(value[1].isupper() or self.loud.value())
            for result in super().process_element(value, ctx):
                yield (*result, self.loud.value())

    h = harness(Louder())
    for record in [("a", "TO"), ("a", "be")]:
        h.process_element(record)
    assert h.extract_values()[-1] == ("a", 2, ["TO", "be"], 4, True)


def test_a_declared_state_may_have_a_name_of_its_own_and_a_type():
    class Renamed(CountDeclared):
        count = ValueState(Types.LONG(), default=0, name="counter")

    descriptor = Renamed.count.descriptor()
    assert (descriptor.name, descriptor.type_info, descriptor.default_value) == ("counter", Types.LONG(), 0)
    assert CountDeclared.count.descriptor().type_info is None
    assert MapState(Types.STRING(), Types.INT(), name="m").descriptor().type_info == Types.MAP(
        Types.STRING(), Types.INT()
    )


@pytest.mark.parametrize("ttl", [timedelta(hours=1), "1 h", 3_600_000, StateTtlConfig.new_builder(3_600_000).build()])
def test_the_time_to_live_is_an_argument(ttl):
    class Forgetful(KeyedProcessFunction):
        last = ValueState(str, ttl=ttl)

        def process_element(self, value, ctx):
            yield self.last.value()
            self.last.update(value[1])

    h = harness(Forgetful())
    h.process_element(("a", "to"))
    h.set_processing_time(3_599_999)
    h.process_element(("a", "be"))
    h.set_processing_time(3_599_999 + 3_600_001)
    h.process_element(("a", "or"))
    assert h.extract_values() == [None, "to", None]


def test_two_functions_of_a_class_have_their_own_state():
    one, two = harness(CountDeclared()), harness(CountDeclared())
    one.process_element(("a", "x"))
    one.process_element(("a", "x"))
    two.process_element(("a", "y"))
    assert one.extract_values()[-1][1] == 2
    assert two.extract_values() == [("a", 1, ["y"], 1)]


def test_a_declaration_is_of_the_kind_it_declares():
    assert isinstance(CountDeclared.count, ValueState)
    assert repr(CountDeclared.count) == "CountDeclared.count = ValueState(...)"


def test_a_declaration_has_no_value():
    with pytest.raises(
        StateAccessError,
        match=r"CountDeclared\.count = ValueState.* is a state declaration: declare state in the body of",
    ):
        CountDeclared().count.value()


def test_a_stream_without_keys_has_no_declared_state():
    class Numbered(MapFunction):
        n = ValueState(int, default=0)

        def map(self, value):
            return self.n.value()

    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    stream = env.from_collection([1]).map(Numbered())
    with pytest.raises(PenstockError, match=r"'Map' requested keyed state 'n', but its stream has no keys"):
        list(stream.execute_and_collect())
    numbered = env.from_collection([1]).key_by(lambda v: v).map(Numbered())
    assert list(numbered.execute_and_collect()) == [0]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: ValueState(int, default="0"), "the default of a ValueState of int is '0', which has another type"),
        (lambda: ReducingState(int), r"a ReducingState needs a function of two values: ReducingState\(int, lambda"),
        (lambda: ValueState(int).descriptor(), "a ValueState is declared outside of a class"),
    ],
)
def test_declarations_that_make_no_sense_are_refused(declare, message):
    with pytest.raises(InvalidProgramError, match=message):
        declare()


class Assigning(KeyedProcessFunction):
    count = ValueState(int, default=0)

    def process_element(self, value, ctx):
        self.count = 3
        yield 3


class Adding(KeyedProcessFunction):
    count = ValueState(int, default=0)

    def process_element(self, value, ctx):
        self.count += 1
        yield 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Assigning(), r"Assigning assigns 3 to self.count, which is a ValueState: use self.count.update"),
        (Adding(), r"read a ValueState with value\(\) and write it with update\(\)"),
    ],
)
def test_assigning_to_a_declared_state_is_an_error_instead_of_lost_state(function, message):
    env = StreamExecutionEnvironment(executor=MiniCluster())
    with pytest.raises(PenstockError, match=message):
        list(env.from_collection([("a", 1)]).key_by(lambda value: value[0]).process(function).collect())


def test_a_declaration_belongs_to_one_attribute():
    shared = ValueState(int)
    with pytest.raises((InvalidProgramError, RuntimeError)) as caught:
        type("Twice", (KeyedProcessFunction,), {"a": shared, "b": shared})
    found = caught.value if isinstance(caught.value, InvalidProgramError) else caught.value.__cause__
    assert "the state 'a' of Twice is also 'b' of Twice: declare a separate state for each attribute" in str(found)
