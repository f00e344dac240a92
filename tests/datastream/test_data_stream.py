import pytest

from penstock.common import ExecutionConfig, Row, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, UserFunctionError
from penstock.connectors import DiscardingSink
from penstock.connectors.base import StreamTransformer, SupportsPreprocessing
from penstock.datastream import (
    CachedDataStream,
    DataStream,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.utils import ResultTypeQueryable
from penstock.runtime.operators.operator import ChainingStrategy


class Identity(MapFunction):
    def map(self, value):
        return value


class Plain(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


# Operators


def test_basic_transformations(running_env, collected):
    stream = running_env.from_elements(1, 2, 3)
    assert sorted(collected(stream.map(lambda value: value * 10))) == [10, 20, 30]
    assert sorted(collected(stream.filter(lambda value: value != 2))) == [1, 3]
    assert sorted(collected(stream.flat_map(lambda value: [value] * value))) == [1, 2, 2, 3, 3, 3]
    assert sorted(collected(stream.process(Plain()))) == [1, 2, 3]
    assert sorted(collected(stream.map(Identity()))) == [1, 2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.map(5),
        lambda stream: stream.map(None),
        lambda stream: stream.map(Identity),
        lambda stream: stream.filter(Identity()),
        lambda stream: stream.flat_map(Identity()),
        lambda stream: stream.process(lambda value, ctx: [value]),
        lambda stream: stream.process(Keyed()),
        lambda stream: stream.map(lambda value: value, output_type=int),
        lambda stream: stream.assign_timestamps_and_watermarks(lambda value: value),
        lambda stream: stream.sink_to(Identity()),
        lambda stream: stream.add_sink(Identity()),
        lambda stream: stream.union(5),
        lambda stream: stream.connect(5),
        lambda stream: stream.partition_custom(5, lambda value: value),
        lambda stream: stream.get_side_output("tag"),
        lambda stream: stream.project(),
        lambda stream: stream.project(-1),
        lambda stream: stream.execute_and_collect(limit=-1),
        lambda stream: stream.key_by(None),
        lambda stream: stream.broadcast(5),
    ],
)
def test_a_wrong_argument_is_refused_where_it_is_given(env, call):
    with pytest.raises(InvalidProgramError):
        call(env.from_elements(1).map(lambda value: value))


def test_a_class_in_place_of_an_object_is_named_as_such(env):
    with pytest.raises(InvalidProgramError, match="pass an instance of the class"):
        env.from_elements(1).map(Identity)


def test_types_are_declared_by_argument_by_the_function_or_afterwards(env):
    class Typed(Identity, ResultTypeQueryable):
        def get_produced_type(self):
            return Types.STRING()

    stream = env.from_elements(1)
    assert stream.map(lambda value: value).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert stream.map(lambda value: value, Types.INT()).get_type() == Types.INT()
    assert stream.map(Typed()).get_type() == Types.STRING()
    assert stream.map(lambda value: value).returns(Types.LONG()).get_type() == Types.LONG()


def test_filter_and_partitioning_keep_the_type(env):
    stream = env.from_collection([1], Types.INT())
    for kept in (stream.filter(bool), stream.rebalance(), stream.key_by(lambda value: value), stream.union(stream)):
        assert kept.get_type() == Types.INT()


def test_project_keeps_fields_in_the_given_order(running_env, env, collected):
    assert collected(running_env.from_elements(("a", 1, 2.0)).project(2, 0)) == [(2.0, "a")]
    assert collected(running_env.from_elements(Row(x=1, y=2)).project(1)) == [Row(y=2)]
    assert collected(running_env.from_elements(["a", 1]).project(1)) == [[1]]
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    assert env.from_collection([("a", 1)], kind).project(1).get_type() == Types.TUPLE([Types.INT()])
    with pytest.raises(InvalidProgramError, match="2 fields"):
        env.from_collection([("a", 1)], kind).project(2)


def test_timestamps_are_assigned_with_the_parallelism_of_the_input(env):
    env.set_parallelism(4)
    strategy = WatermarkStrategy.for_monotonous_timestamps()

    def stamped(stream):
        return stream.assign_timestamps_and_watermarks(strategy).get_parallelism()

    one = env.from_collection([1, 2])
    three = env.from_sequence(1, 9).set_parallelism(3)
    assert (one.get_parallelism(), stamped(one)) == (1, 1)
    assert stamped(three) == 3
    assert stamped(three.rebalance()) == stamped(three.union(one)) == 3
    assert stamped(three.map(lambda value: value)) == 4
    assert one.assign_timestamps_and_watermarks(strategy).set_parallelism(2).get_parallelism() == 2


def test_watermark_strategies_take_the_environments_interval(env):
    env.get_config().set_auto_watermark_interval(77)
    stream = env.from_elements(1).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    assert stream.get_transformation().operator.watermark_interval == 77


# Settings


def test_setters_change_the_operator_and_return_the_stream(env):
    stream = env.from_elements(1).map(lambda value: value)
    same = stream.name("my map").uid("id").set_description("text").set_parallelism(3).set_max_parallelism(64)
    assert same is stream
    t = stream.get_transformation()
    assert (t.name, t.uid, t.description, t.parallelism, t.max_parallelism) == ("my map", "id", "text", 3, 64)
    assert stream.set_buffer_timeout(10).start_new_chain().get_transformation().chaining is ChainingStrategy.HEAD
    assert stream.disable_chaining().get_transformation().chaining is ChainingStrategy.NEVER
    assert stream.slot_sharing_group("g").get_transformation().slot_sharing_group == "g"
    assert stream.set_uid_hash("AB" * 16).get_transformation().uid_hash == "ab" * 16
    assert stream.get_name() == "my map"


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.set_parallelism(0),
        lambda stream: stream.set_parallelism("2"),
        lambda stream: stream.set_max_parallelism(2**16),
        lambda stream: stream.name(""),
        lambda stream: stream.uid(5),
        lambda stream: stream.set_uid_hash("xyz"),
        lambda stream: stream.slot_sharing_group(""),
        lambda stream: stream.set_buffer_timeout(-2),
    ],
)
def test_impossible_settings_are_refused(env, call):
    with pytest.raises(InvalidProgramError):
        call(env.from_elements(1).map(lambda value: value))


def test_an_operator_without_a_parallelism_keeps_the_environments_of_when_it_was_defined(env, nodes):
    env.set_parallelism(8)
    stream = env.from_sequence(1, 2)
    named = stream.map(lambda value: value).name("four").set_parallelism(4)
    env.set_parallelism(3)
    named.map(lambda value: value).name("three").print().set_parallelism(2)
    env.set_parallelism(5)
    assert stream.get_parallelism() == 8
    by_name = nodes(env)
    names = ("Source: Sequence Source", "four", "three", "Sink: Print to Std. Out")
    assert [by_name[name].parallelism for name in names] == [8, 4, 3, 2]


def test_the_default_parallelism_takes_back_another_one(env, nodes):
    env.set_parallelism(3)
    default = ExecutionConfig.PARALLELISM_DEFAULT
    env.from_sequence(1, 2).map(lambda value: value).name("map").set_parallelism(4).set_parallelism(default).print()
    assert nodes(env)["map"].parallelism == 3
    assert env.set_parallelism(default).get_parallelism() == env.get_default_local_parallelism()


def test_force_non_parallel_is_for_good(env):
    stream = env.from_sequence(1, 2).map(lambda value: value).force_non_parallel()
    assert stream.get_parallelism() == 1
    with pytest.raises(InvalidProgramError, match="cannot run in parallel"):
        stream.set_parallelism(2)


@pytest.mark.parametrize(
    "make",
    [lambda s: s.rebalance(), lambda s: s.union(s), lambda s: s.process(Plain()).get_side_output(OutputTag("t"))],
)
@pytest.mark.parametrize("method", ["name", "uid"])
def test_settings_belong_behind_an_operator(env, make, method):
    with pytest.raises(InvalidProgramError, match="belongs after an operator"):
        getattr(make(env.from_elements(1)), method)("x")


def test_operators_chain_unless_told_otherwise(env, vertices):
    stream = env.from_sequence(1, 3).map(lambda value: value).filter(bool)
    stream.map(lambda value: value).name("own").disable_chaining().print()
    assert [name for name, _ in vertices(env)] == [
        "Source: Sequence Source -> Map -> Filter",
        "own",
        "Sink: Print to Std. Out",
    ]


# Partitioning


def test_every_distribution_delivers_every_record(running_env, collected):
    stream = running_env.from_sequence(1, 20)
    for spread in (
        stream.shuffle(),
        stream.rebalance(),
        stream.rescale(),
        stream.forward(),
        stream.global_(),
        getattr(stream, "global")(),
        stream.partition_custom(lambda key, channels: key % channels, lambda value: value),
    ):
        assert sorted(collected(spread.map(lambda value: value))) == list(range(1, 21))


def test_broadcast_delivers_every_record_to_every_subtask(running_env, collected):
    assert sorted(collected(running_env.from_elements(1, 2).broadcast().map(lambda value: value))) == [1, 1, 2, 2]


def test_a_partitioner_object_decides_where_a_record_goes(running_env, collected):
    class AllToSecond(Partitioner):
        def partition(self, key, num_partitions):
            return 1

    class Subtask(MapFunction):
        def map(self, value):
            return value, self.get_runtime_context().get_index_of_this_subtask()

    stream = running_env.from_sequence(1, 3).partition_custom(AllToSecond(), lambda value: value)
    assert sorted(collected(stream.map(Subtask()))) == [(1, 1), (2, 1), (3, 1)]


def test_the_last_partitioning_counts(env, nodes):
    env.from_sequence(1, 3).shuffle().rebalance().map(lambda value: value).name("next").print()
    (edge,) = nodes(env)["next"].inputs
    assert edge.partitioner.name == "REBALANCE"


# Several streams


def test_union_takes_all_records_of_all_streams(running_env, collected):
    one, two, three = (running_env.from_elements(value) for value in "abc")
    assert sorted(collected(one.union(two, three))) == ["a", "b", "c"]
    assert sorted(collected(one.union(one))) == ["a", "a"]


def test_union_needs_the_same_type(env):
    numbers, texts = env.from_collection([1], Types.INT()), env.from_collection(["a"], Types.STRING())
    with pytest.raises(InvalidProgramError, match="same type"):
        numbers.union(texts)
    assert numbers.union(env.from_elements(2)).get_type() == Types.INT()


def test_streams_of_different_environments_cannot_be_combined(env, executor):
    other = StreamExecutionEnvironment(executor=executor).from_elements(1)
    stream = env.from_elements(1)
    for call in (stream.union, stream.connect, stream.join, stream.co_group):
        with pytest.raises(InvalidProgramError, match="different environments"):
            call(other)


def test_side_outputs_are_streams_of_their_own(running_env, collected):
    even, large = OutputTag("even"), OutputTag("large", Types.INT())

    class Split(ProcessFunction):
        def process_element(self, value, ctx):
            if value % 2 == 0:
                yield even, value
            if value > 3:
                ctx.output(large, value)
            yield value

    main = running_env.from_sequence(1, 5).process(Split())
    assert sorted(collected(main)) == [1, 2, 3, 4, 5]
    assert sorted(collected(main.get_side_output(OutputTag("even")))) == [2, 4]
    assert sorted(collected(main.get_side_output(large))) == [4, 5]
    assert collected(main.get_side_output(OutputTag("never emitted"))) == []


def test_a_side_output_has_one_type(env):
    stream = env.from_elements(1).process(Plain())
    stream.get_side_output(OutputTag("t", Types.INT()))
    with pytest.raises(InvalidProgramError, match="two types"):
        stream.get_side_output(OutputTag("t", Types.STRING()))


def test_operators_that_cannot_emit_to_side_outputs_have_none(env):
    source = env.from_elements(1)
    for stream in (source, source.map(lambda value: value), source.filter(bool)):
        with pytest.raises(InvalidProgramError, match="no side output 't'"):
            stream.get_side_output(OutputTag("t"))


# Sinks


def test_print_shows_the_subtask_and_the_identifier(running_env, capsys):
    def lines(stream):
        running_env.execute()
        return sorted(capsys.readouterr().out.splitlines())

    assert lines(running_env.from_elements("a", "b").print()) == ["1> a", "2> b"]
    assert lines(running_env.from_elements("a", "b").print("out")) == ["out:1> a", "out:2> b"]
    assert lines(running_env.from_elements("a").print().set_parallelism(1)) == ["a"]
    assert lines(running_env.from_elements("a").print("out").set_parallelism(1)) == ["out> a"]
    typed = running_env.from_collection([("a", True)], Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))
    assert lines(typed.print().set_parallelism(1)) == ["(a,true)"]


def test_print_to_err(running_env, capsys):
    running_env.from_elements("a").print_to_err().set_parallelism(1)
    running_env.execute()
    assert capsys.readouterr() == ("", "a\n")


def test_sinks_can_be_named_and_configured(env):
    sink = env.from_elements(1).sink_to(DiscardingSink())
    assert sink.get_transformation().name == "Sink: DiscardingSink"
    sink.name("drain").uid("u").set_parallelism(3).set_description("d").disable_chaining().slot_sharing_group("g")
    t = sink.get_transformation()
    assert (t.name, t.uid, t.parallelism, t.description, t.slot_sharing_group) == ("Sink: drain", "u", 3, "d", "g")


def test_sink_functions_are_called_for_every_record(running_env):
    class Failing(SinkFunction):
        def invoke(self, value, context):
            raise ValueError(value, context.timestamp(), context.current_watermark())

    running_env.from_elements(1).add_sink(Failing()).name("failing")
    with pytest.raises(UserFunctionError, match=r"Sink: failing[\s\S]*invoke"):
        running_env.execute()


def test_a_sink_may_change_its_input_first(env, nodes):
    class Doubling(StreamTransformer):
        def apply(self, ds):
            return ds.map(lambda value: value * 2).name("doubling")

    class Preprocessed(DiscardingSink, SupportsPreprocessing):
        def get_transformer(self):
            return Doubling()

    env.from_elements(1).sink_to(Preprocessed())
    assert "doubling" in nodes(env)


def test_execute_and_collect_iterates_and_can_be_limited(running_env):
    stream = running_env.from_sequence(1, 1000).set_parallelism(1)
    with stream.execute_and_collect("named") as records:
        assert records.next() == 1
        assert next(records) == 2
    assert stream.execute_and_collect(limit=3) == [1, 2, 3]
    assert stream.execute_and_collect(limit=0) == []


def test_execute_and_collect_raises_the_users_error(running_env):
    with pytest.raises(UserFunctionError):
        list(running_env.from_elements(0).map(lambda value: 1 / value).execute_and_collect())


def test_collect_async_gives_the_records_of_the_next_job(running_env):
    squares = running_env.from_elements(1, 2, 3).map(lambda value: value**2).collect_async()
    texts = running_env.from_elements("a").collect_async()
    running_env.execute_async()
    assert sorted(squares) == [1, 4, 9]
    assert list(texts) == ["a"]


def test_a_cached_stream_can_be_read_by_several_jobs(running_env, env, collected):
    cached = running_env.from_elements(1, 2).map(lambda value: value + 1).cache()
    assert isinstance(cached, CachedDataStream)
    assert isinstance(cached, DataStream)
    assert sorted(collected(cached)) == [2, 3]
    cached.invalidate()
    assert sorted(collected(cached.map(lambda value: value * 10))) == [20, 30]
    with pytest.raises(InvalidProgramError):
        env.from_elements(1).rebalance().cache()


def test_user_functions_keep_their_constructor_parameters(running_env, collected):
    class AtLeast(FilterFunction):
        def __init__(self, threshold):
            self.threshold = threshold

        def filter(self, value):
            return value >= self.threshold

    assert sorted(collected(running_env.from_sequence(1, 5).filter(AtLeast(4)))) == [4, 5]


@pytest.mark.parametrize(
    "declare",
    [
        lambda env: env.from_collection([1], Types.INT),
        lambda env: env.from_collection([1]).map(Identity(), Types.INT),
        lambda env: env.from_collection([1]).key_by(lambda n: n, key_type=Types.INT),
        lambda env: OutputTag("late", Types.INT),
        lambda env: OutputTag("late", [Types.INT]),
        lambda env: ValueStateDescriptor("last", Types.INT),
        lambda env: ListStateDescriptor("all", Types.INT),
        lambda env: MapStateDescriptor("by name", Types.STRING(), Types.INT),
        lambda env: Types.LIST(Types.INT),
        lambda env: Types.MAP(Types.STRING, Types.INT()),
        lambda env: Types.TUPLE([Types.INT]),
    ],
)
def test_a_type_without_its_parentheses_is_refused_where_it_stands(declare):
    with pytest.raises(InvalidProgramError, match=r"must be a type such as Types\.INT\(\), got <function"):
        declare(StreamExecutionEnvironment())


def test_what_needs_keys_says_so():
    stream = StreamExecutionEnvironment().from_collection([1])
    with pytest.raises(AttributeError, match=r"^reduce\(\) needs keys: call key_by\(\) before it$"):
        stream.reduce(max)
    with pytest.raises(AttributeError, match=r"^count_window\(\) needs keys: .*, or count_window_all\(\)$"):
        stream.count_window(3)
    with pytest.raises(AttributeError, match="object has no attribute 'group_by'"):
        stream.group_by(0)
