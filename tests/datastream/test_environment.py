import json
import os
import subprocess
import sys

import pytest

from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.common.errors import (
    EnvironmentStoppedError,
    InvalidProgramError,
    SerializationError,
    TypeMismatchError,
    UserFunctionError,
)
from penstock.connectors import NumberSequenceSource
from penstock.connectors.sinks import DiscardingSink
from penstock.datastream import FileSystemCheckpointStorage, StreamExecutionEnvironment


def test_nothing_runs_before_execute_and_a_job_is_executed_once(env, executor):
    env.from_elements(1).print()
    assert executor.jobs == []
    env.execute_async("first")
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        env.execute_async()
    env.from_elements(2).print()
    env.execute_async("second")
    assert [(len(sinks), settings.job_name) for sinks, settings in executor.jobs] == [(1, "first"), (1, "second")]


def test_a_stream_without_a_sink_is_no_job(env):
    env.from_elements(1).map(lambda value: value)
    with pytest.raises(InvalidProgramError, match="add a sink"):
        env.execute()


def test_a_closed_environment_refuses_everything(env, executor):
    stream = env.from_elements(1)
    mapped = stream.map(lambda value: value)
    env.close()
    env.close()
    assert executor.closed
    for call in (
        lambda: env.from_elements(1),
        lambda: env.from_sequence(1, 2),
        lambda: env.set_parallelism(1),
        lambda: env.configure(Configuration()),
        env.execute,
        env.execute_async,
        env.get_execution_plan,
        lambda: env.add_python_file("x"),
        lambda: stream.map(lambda value: value),
        lambda: stream.key_by(0),
        stream.rebalance,
        stream.print,
        lambda: stream.union(mapped),
        lambda: stream.connect(mapped),
        lambda: mapped.name("x"),
        lambda: mapped.set_parallelism(1),
        mapped.execute_and_collect,
    ):
        with pytest.raises(EnvironmentStoppedError, match="closed"):
            call()


def test_an_environment_is_a_context_manager(executor):
    with StreamExecutionEnvironment(executor=executor) as env:
        env.from_elements(1)
    assert executor.closed


def test_a_configuration_can_be_given_at_the_start():
    configuration = Configuration().set_integer("parallelism.default", 7)
    assert StreamExecutionEnvironment.get_execution_environment(configuration).get_parallelism() == 7
    assert StreamExecutionEnvironment.create_local_environment(3).get_parallelism() == 3


def test_executor_and_session_exclude_each_other(executor):
    with pytest.raises(InvalidProgramError):
        StreamExecutionEnvironment(executor=executor, spark=object())


def test_importing_the_api_does_not_load_spark():
    code = "import sys, penstock.datastream as d; d.StreamExecutionEnvironment(); print('pyspark' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert output.stdout.strip() == "False"


# Sources


def test_a_collection_is_read_by_one_task_in_order(running_env, collected):
    stream = running_env.from_collection([3, 1, 2])
    assert stream.get_parallelism() == 1
    with pytest.raises(InvalidProgramError, match="cannot run in parallel"):
        stream.set_parallelism(2)
    assert collected(stream) == [3, 1, 2]


def test_a_collection_is_taken_as_it_is_now(running_env, collected):
    elements = [[1], [2]]
    stream = running_env.from_collection(elements)
    elements[0].append("changed later")
    elements.append("added later")
    assert collected(stream) == [[1], [2]]


def test_elements_must_fit_the_declared_type(env):
    with pytest.raises(TypeMismatchError, match="element 1"):
        env.from_collection([1, "x"], Types.INT())
    assert env.from_collection([1, 2], Types.INT()).get_type() == Types.INT()
    assert env.from_elements(1, "x").get_type() == Types.PICKLED_BYTE_ARRAY()


@pytest.mark.parametrize("collection", ["text", b"bytes", 5, None])
def test_what_is_no_collection_is_refused(env, collection):
    with pytest.raises(InvalidProgramError):
        env.from_collection(collection)


def test_an_element_that_cannot_be_pickled_is_refused_at_once(env):
    with pytest.raises(SerializationError, match="collection"):
        env.from_collection([1, (number for number in [1])])


def test_other_sources_of_elements(running_env, collected):
    assert collected(running_env.from_elements(1, 2)) == [1, 2]
    assert collected(running_env.from_data("a")) == ["a"]
    assert collected(running_env.from_collection([])) == []
    assert sorted(collected(running_env.from_sequence(1, 5))) == [1, 2, 3, 4, 5]
    assert sorted(collected(running_env.from_parallel_collection(range(5)))) == [0, 1, 2, 3, 4]


def test_from_source_takes_a_source_and_a_strategy(env, running_env, collected):
    stream = running_env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers")
    assert stream.get_name() == "numbers"
    assert sorted(collected(stream)) == [1, 2, 3]
    with pytest.raises(InvalidProgramError, match="takes a Source"):
        env.from_source([1], WatermarkStrategy.no_watermarks(), "x")
    with pytest.raises(InvalidProgramError, match="WatermarkStrategy"):
        env.from_source(NumberSequenceSource(1, 3), "none", "x")


def test_settings_of_a_source_with_watermarks_apply_to_both_operators(env, nodes, vertices):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value)
    stream = env.from_source(NumberSequenceSource(1, 3), strategy, "numbers")
    stream.set_parallelism(5).uid("my-source").name("other").print()
    by_name = nodes(env)
    source, watermarks = by_name["Source: other"], by_name["Timestamps/Watermarks"]
    assert (source.parallelism, watermarks.parallelism) == (5, 5)
    assert (source.uid, watermarks.uid) == ("my-source", "my-source-watermarks")
    assert vertices(env)[0] == ("Source: other -> Timestamps/Watermarks", 5)


def test_from_dataframe_takes_a_dataframe(env):
    with pytest.raises(InvalidProgramError, match="Spark DataFrame"):
        env.from_dataframe([1, 2])


def test_add_source_takes_a_source_function(env):
    with pytest.raises(InvalidProgramError, match="SourceFunction"):
        env.add_source(lambda: 1)


# Execution


def test_execute_waits_for_the_result_and_raises_the_users_error(running_env, capsys):
    running_env.from_elements("a", "b").print()
    result = running_env.execute("my job")
    assert result.get_net_runtime() >= 0
    assert sorted(capsys.readouterr().out.splitlines()) == ["1> a", "2> b"]
    running_env.from_elements(0).map(lambda value: 1 / value).name("inverse").print()
    with pytest.raises(UserFunctionError, match="inverse"):
        running_env.execute()


def test_ctrl_c_cancels_the_job(executor, env):
    class Interrupted:
        cancelled = False

        def get_job_execution_result(self):
            return self

        def result(self):
            if not self.cancelled:
                raise KeyboardInterrupt

        def cancel(self):
            self.cancelled = True
            return self

    client = Interrupted()
    executor.submit = lambda sinks, settings: client
    env.from_elements(1).print()
    with pytest.raises(KeyboardInterrupt):
        env.execute()
    assert client.cancelled


def test_job_listeners_hear_of_every_job(running_env):
    clients = []
    running_env.register_job_listener(clients.append)
    running_env.from_elements(1).add_sink(lambda value: None)
    assert [running_env.execute_async()] == clients


def test_the_plan_is_json_and_leaves_the_job_as_it_is(env, executor):
    env.from_elements(1).map(lambda value: value).name("my map").print()
    plan = json.loads(env.get_execution_plan())
    assert any(node["type"] == "my map" for node in plan["nodes"])
    env.execute_async()
    assert len(executor.jobs) == 1
    with pytest.raises(InvalidProgramError, match="no job to plan"):
        env.get_execution_plan()


def test_the_plan_shows_the_writer_and_the_committer_of_a_sink(env):
    env.from_elements(1).print().name("out")
    env.from_elements(2).sink_to(DiscardingSink())
    env.from_elements(3).add_sink(lambda value: None).name("called")
    env.from_elements(4).add_sink(DiscardingSink()).name("added")
    nodes = json.loads(env.get_execution_plan())["nodes"]
    by_type = {node["type"]: node for node in nodes}
    assert {"out: Writer", "out: Committer", "Sink: Writer", "Sink: called", "Sink: added"} <= by_type.keys()
    assert "Sink: Committer" not in by_type
    (edge,) = by_type["out: Committer"]["predecessors"]
    assert (edge["id"], edge["ship_strategy"]) == (by_type["out: Writer"]["id"], "FORWARD")
    assert len({node["id"] for node in nodes}) == len(nodes)


def test_the_path_of_a_checkpoint_storage_has_no_slash_at_its_end():
    assert FileSystemCheckpointStorage("file:///var/checkpoints/").get_checkpoint_path() == "file:///var/checkpoints"


def test_a_source_needs_neither_a_strategy_nor_a_name(running_env, collected):
    stream = running_env.from_source(NumberSequenceSource(1, 3))
    assert stream.get_name() == "NumberSequenceSource"
    assert sorted(collected(stream)) == [1, 2, 3]


def test_the_name_of_a_source_is_the_one_it_was_given(env):
    numbers = NumberSequenceSource(1, 2)
    assert env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").get_name() == "numbers"
