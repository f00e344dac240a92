"""From a program to tasks: chains, exchanges, levels, ids (rules 2.1, 3.5, 3.10)."""

import pytest

from penstock.common import WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.datastream import (
    CheckpointedFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from penstock.graph.job_graph import operator_ids, translate
from penstock.graph.plan import plan_text
from penstock.graph.stream_graph import StreamGraphGenerator
from penstock.testing import MiniCluster

SIDE = OutputTag("side")


@pytest.fixture
def env():
    return StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(2)


@pytest.fixture
def graph(env):
    return lambda: translate(list(env.sinks), env.job_settings("test"))


@pytest.fixture
def tasks(graph):
    """Names of the tasks, with their level."""
    return lambda: [(vertex.name, vertex.level) for vertex in graph().vertices]


@pytest.fixture
def ids(env):
    def by_name():
        stream_graph = StreamGraphGenerator(list(env.sinks), env.job_settings("test")).generate()
        found = operator_ids(stream_graph)
        return {node.name: found[node.id] for node in stream_graph.nodes}

    return by_name


class Identity(MapFunction):
    def map(self, value):
        return value


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Unkeyed(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class TwoInputs(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class Checkpointed(Identity, CheckpointedFunction):
    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        pass


class TestChaining:
    """Same parallelism and a forward connection share a task (rule 3.5)."""

    def test_a_straight_program_is_one_task(self, env, tasks):
        env.from_sequence(1, 9).map(str).filter(len).print()
        assert tasks() == [("Source: Sequence Source -> Map -> Filter -> Sink: Print to Std. Out", 0)]

    def test_another_parallelism_breaks_the_chain(self, env, tasks):
        env.from_sequence(1, 9).map(str).set_parallelism(3).print().set_parallelism(3)
        assert tasks() == [("Source: Sequence Source", 0), ("Map -> Sink: Print to Std. Out", 1)]

    @pytest.mark.parametrize("way", ["rebalance", "rescale", "shuffle", "global_", "broadcast"])
    def test_any_redistribution_breaks_the_chain(self, env, tasks, way):
        getattr(env.from_sequence(1, 9), way)().map(str).print()
        assert tasks() == [("Source: Sequence Source", 0), ("Map -> Sink: Print to Std. Out", 1)]

    def test_forward_does_not(self, env, tasks):
        env.from_sequence(1, 9).forward().map(str).print()
        assert len(tasks()) == 1

    def test_keyed_operators_and_what_follows(self, env, tasks):
        env.from_sequence(1, 9).key_by(lambda n: n).process(Keyed()).map(str).key_by(len).reduce(max).print()
        assert tasks() == [
            ("Source: Sequence Source", 0),
            ("KeyedProcess -> Map", 1),
            ("Keyed Reduce -> Sink: Print to Std. Out", 2),
        ]

    def test_state_right_behind_a_source_gets_a_stage_of_its_own(self, env, tasks):
        env.from_sequence(1, 9).map(str).map(Checkpointed()).name("state").map(str).print()
        assert tasks() == [("Source: Sequence Source -> Map", 0), ("state -> Map -> Sink: Print to Std. Out", 1)]

    def test_a_clock_that_user_code_reads_is_not_made_in_the_source_stage(self, env, tasks):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n: n)
        timed = env.from_sequence(1, 9).assign_timestamps_and_watermarks(strategy)
        timed.process(Unkeyed()).print()
        assert tasks() == [
            ("Source: Sequence Source -> Timestamps/Watermarks", 0),
            ("Process -> Sink: Print to Std. Out", 1),
        ]

    def test_a_process_function_behind_a_source_without_watermarks_is_chained(self, env, tasks):
        env.from_sequence(1, 9).process(Unkeyed()).print()
        assert len(tasks()) == 1

    def test_start_new_chain_and_disable_chaining(self, env, tasks):
        first = env.from_sequence(1, 9).map(Identity()).name("a").map(Identity()).name("b").start_new_chain()
        first.map(Identity()).name("c").disable_chaining().map(Identity()).name("d").print()
        assert tasks() == [
            ("Source: Sequence Source -> a", 0),
            ("b", 1),
            ("c", 2),
            ("d -> Sink: Print to Std. Out", 3),
        ]

    def test_chaining_can_be_switched_off(self, env, tasks):
        env.disable_operator_chaining()
        env.from_sequence(1, 9).map(str).print()
        assert [name for name, _ in tasks()] == ["Source: Sequence Source", "Map", "Sink: Print to Std. Out"]

    def test_slot_sharing_groups_keep_operators_apart(self, env, tasks):
        env.from_sequence(1, 9).map(Identity()).name("a").slot_sharing_group("other").map(Identity()).name("b").print()
        assert tasks()[0] == ("Source: Sequence Source", 0)

    def test_branches_of_one_task_stay_in_it(self, env, graph):
        mapped = env.from_sequence(1, 9).map(Identity())
        mapped.filter(bool).print()
        mapped.flat_map(lambda n: [n]).get_side_output(SIDE).print()
        (vertex,) = graph().vertices
        assert [(link.position, link.tag_id) for link in vertex.operators[1].links] == [(2, None), (4, None)]
        assert [(link.position, link.tag_id) for link in vertex.operators[4].links] == [(5, "side")]


class TestLevels:
    """The level of a task is the largest number of exchanges before it."""

    def test_a_diamond_waits_for_its_longer_side(self, env, graph):
        source = env.from_sequence(1, 9)
        longer = source.rebalance().map(Identity()).name("1").rebalance().map(Identity()).name("2")
        longer.connect(source.rebalance()).process(TwoInputs()).name("both").print()
        job = graph()
        assert {vertex.name.split(" ")[0]: vertex.level for vertex in job.vertices} == {
            "Source:": 0,
            "1": 1,
            "2": 2,
            "both": 3,
        }
        assert sorted((edge.source, edge.target, edge.input_index, edge.target_level) for edge in job.edges) == [
            (0, 1, 0, 1),
            (0, 3, 1, 3),
            (1, 2, 0, 2),
            (2, 3, 0, 3),
        ]
        assert job.levels == 3

    def test_channels_are_the_largest_parallelism_behind_an_exchange(self, env, graph):
        env.from_sequence(1, 9).set_parallelism(8).rebalance().map(Identity()).set_parallelism(
            3
        ).print().set_parallelism(1)
        assert graph().channels == 3

    def test_a_job_of_one_task_has_no_stage_behind_the_sources(self, env, graph):
        env.from_sequence(1, 9).print()
        assert (graph().levels, graph().channels) == (0, 1)


class TestIds:
    """State is found by them: from the uid, else from the place in the graph (rule 3.10)."""

    def test_they_are_the_same_every_time(self, env, ids):
        env.from_sequence(1, 9).map(str).key_by(len).reduce(max).print()
        first = ids()
        other = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(7)
        other.from_sequence(1, 5).map(int).key_by(lambda n: n).reduce(min).print()
        env.sinks = other.sinks
        assert ids() == first

    def test_an_operator_upstream_changes_them_unless_there_is_a_uid(self, env, ids):
        env.from_sequence(1, 9).key_by(lambda n: n).reduce(max).uid("mine").key_by(lambda n: n).reduce(min).name(
            "r"
        ).print()
        before = ids()
        env.sinks.clear()
        longer = env.from_sequence(1, 9).map(Identity())
        longer.key_by(lambda n: n).reduce(max).uid("mine").key_by(lambda n: n).reduce(min).name("r").print()
        after = ids()
        assert after["Keyed Reduce"] == before["Keyed Reduce"]
        assert after["r"] == before["r"]  # it depends on the uid before it only
        env.sinks.clear()
        env.from_sequence(1, 9).map(Identity()).key_by(lambda n: n).reduce(max).print()
        assert ids()["Keyed Reduce"] not in before.values()

    def test_branches_of_the_same_shape_are_told_apart(self, env, ids):
        source = env.from_sequence(1, 9)
        source.key_by(lambda n: n).reduce(max).name("one").print()
        source.key_by(lambda n: n).reduce(max).name("two").print()
        found = ids()
        assert found["one"] != found["two"]

    def test_a_uid_twice_is_refused(self, env, graph):
        env.from_sequence(1, 9).map(Identity()).name("a").uid("x").map(Identity()).name("b").uid("x").print()
        with pytest.raises(InvalidProgramError, match="operators 'a' and 'b' have the same uid 'x'"):
            graph()


class TestRefusals:
    def test_forward_needs_the_same_parallelism(self, env, graph):
        env.from_sequence(1, 9).forward().map(Identity()).set_parallelism(3).print()
        with pytest.raises(
            InvalidProgramError, match=r"forward\(\) from 'Source: Sequence Source' \(parallelism 2\) to 'Map'"
        ):
            graph()

    def test_more_subtasks_than_key_groups(self, env, graph):
        env.from_sequence(1, 9).map(Identity()).set_max_parallelism(1).set_parallelism(2).print()
        with pytest.raises(InvalidProgramError, match="parallelism 2 is larger than max parallelism 1"):
            graph()


def test_only_what_a_sink_needs_is_part_of_the_job(env, graph):
    source = env.from_sequence(1, 9)
    source.map(Identity()).name("unused")
    source.map(Identity()).name("used").print()
    assert "unused" not in graph().vertices[0].name


def test_a_long_program_is_translated_without_recursion(env, graph):
    stream = env.from_sequence(1, 9)
    for _ in range(2000):
        stream = stream.map(Identity())
    stream.print()
    chains = [len(vertex.operators) for vertex in graph().vertices]
    assert sum(chains) == 2002
    assert max(chains) == chains[0] == 150  # a chain is calls within calls, and Python allows not that many


def test_union_and_partition_leave_no_task(env, graph):
    a, b = env.from_sequence(1, 5), env.from_sequence(6, 9)
    a.union(b, a.map(Identity())).rebalance().map(Identity()).name("after").print()
    job = graph()
    assert [vertex.name.split(" -> ")[0] for vertex in job.vertices] == [
        "Source: Sequence Source",
        "Source: Sequence Source",
        "after",
    ]
    assert len(job.edges) == 3


def test_the_plan_as_text(env, graph):
    env.from_sequence(1, 9).flat_map(lambda n: [n]).get_side_output(SIDE).key_by(lambda n: n).reduce(max).print()
    lines = plan_text(graph()).splitlines()
    assert lines == [
        "test: 2 tasks in 2 stages, 2 channels, micro-batch",
        "stage 0 (sources)",
        "  [0] Source: Sequence Source -> Flat Map  x2",
        "stage 1",
        "  [1] Keyed Reduce -> Sink: Print to Std. Out  x2",
        "        <- [0] side output 'side' hash",
    ]


class Lines(SourceFunction):
    def run(self, ctx):
        ctx.collect("a")

    def cancel(self):
        pass


def test_tasks_behind_a_received_source_of_one_task_read_their_parts_themselves(env, graph):
    env.add_source(Lines()).map(str).key_by(str).process(Keyed()).print()
    source, keyed, *_ = graph().vertices
    assert (source.spread, source.parallelism, source.source_parallelism) == (True, 2, 1)
    assert [operator.name for operator in source.operators] == ["Source: Custom Source", "Map"]
    assert keyed.level == 1


@pytest.mark.parametrize(
    "shape",
    [
        lambda lines: [lines.rebalance().map(str)],
        lambda lines: [lines.map(str), lines.map(str)],
        lambda lines: [lines.map(str).set_parallelism(1)],
        lambda lines: [lines.map(str).start_new_chain()],
        lambda lines: [lines.key_by(str).process(Keyed())],
        lambda lines: [lines.process(Unkeyed())],
        lambda lines: [lines.map(Checkpointed())],
    ],
    ids=["explicit rebalance", "two consumers", "one task", "new chain", "keyed", "reads the clock", "stateful"],
)
def test_a_received_source_is_not_spread_where_its_records_must_be_sent(env, graph, shape):
    for stream in shape(env.add_source(Lines())):
        stream.print()
    assert not graph().vertices[0].spread
