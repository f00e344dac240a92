"""The life of a function: shipped to every subtask, opened once, closed once (rule 5.9)."""

import json
from collections import Counter

import pytest

from penstock.common import Configuration
from penstock.common.errors import PenstockError
from penstock.datastream import (
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
)


class Diary:
    """Notes the life of a function, one line a step, in a file: Spark's workers write it too."""

    def __init__(self, path, name):
        self.path, self.name = str(path), name
        self.state = "shipped"

    def note(self, **what):
        with open(self.path, "a", encoding="utf-8") as file:  # noqa: PTH123 - appended by several processes
            file.write(json.dumps({"name": self.name, **what}) + "\n")

    def open(self, runtime_context: RuntimeContext):
        assert self.state == "shipped"
        self.state = "open"
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.note(step="open", subtask=self.subtask, parallelism=runtime_context.get_number_of_parallel_subtasks())

    def close(self):
        assert self.state == "open"
        self.state = "closed"
        self.note(step="close", subtask=self.subtask)

    def touch(self, value):
        assert self.state == "open"
        return value


class DiaryMap(Diary, MapFunction):
    def map(self, value):
        return self.touch(value)


class DiaryFilter(Diary, FilterFunction):
    def filter(self, value):
        return self.touch(value) is not None


class DiaryFlatMap(Diary, FlatMapFunction):
    def flat_map(self, value):
        return [self.touch(value)]


class DiaryProcess(Diary, ProcessFunction):
    def process_element(self, value, ctx):
        yield self.touch(value)


class DiaryKeyed(Diary, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield self.touch(value)


class DiaryCoMap(Diary, CoMapFunction):
    def map1(self, value):
        return self.touch(value)

    def map2(self, value):
        return self.touch(value)


def life_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.variants(executors=["warm", "one"])  # a cold task is opened in every batch: that is what cold means
@pytest.mark.on_spark((4, "STREAMING"), (4, "BATCH"))
def test_every_function_is_opened_and_closed_once_in_every_subtask(env, variant, tmp_path):
    diary = tmp_path / "diary"
    source = env.from_sequence(1, 17)
    mapped = (
        source.map(DiaryMap(diary, "map")).filter(DiaryFilter(diary, "filter")).flat_map(DiaryFlatMap(diary, "flat"))
    )
    keyed = mapped.key_by(lambda n: n).process(DiaryKeyed(diary, "keyed"))
    keyed.connect(mapped).map(DiaryCoMap(diary, "co")).process(DiaryProcess(diary, "process")).print()
    env.execute()
    life = life_of(diary)
    names = ("map", "filter", "flat", "keyed", "co", "process")
    for step in ("open", "close"):
        assert Counter((entry["name"], entry["subtask"]) for entry in life if entry["step"] == step) == {
            (name, subtask): 1 for name in names for subtask in range(variant.parallelism)
        }, step
    assert {entry["parallelism"] for entry in life if entry["step"] == "open"} == {variant.parallelism}
    for name in names:
        steps = [entry["step"] for entry in life if entry["name"] == name and entry["subtask"] == 0]
        assert steps == ["open", "close"]


@pytest.mark.variants(modes=["STREAMING"], executors=["one"])
def test_functions_of_a_source_that_ended_early_are_closed_too(env, tmp_path):
    diary = tmp_path / "diary"
    env.from_collection([1]).map(DiaryMap(diary, "short")).set_parallelism(1).print()
    env.from_collection(range(5)).map(DiaryMap(diary, "long")).set_parallelism(1).print()
    env.execute()
    assert sorted((entry["name"], entry["step"]) for entry in life_of(diary)) == [
        ("long", "close"),
        ("long", "open"),
        ("short", "close"),
        ("short", "open"),
    ]


class WhereAmI(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.context = runtime_context

    def map(self, value):
        context = self.context
        return (
            context.get_task_name(),
            context.get_task_name_with_subtasks(),
            context.get_number_of_parallel_subtasks(),
            context.get_max_number_of_parallel_subtasks(),
            context.get_index_of_this_subtask(),
            context.get_attempt_number(),
            context.get_job_parameter("mode", "none"),
            context.get_job_parameter("other", "default"),
        )


@pytest.mark.on_spark((4, "STREAMING"))
def test_the_runtime_context_knows_the_task(env, run, variant):
    env.configure(Configuration.from_dict({"pipeline.global-job-parameters": "mode:test"}))
    env.set_max_parallelism(64)
    stream = env.from_sequence(1, 20).map(WhereAmI()).name("where")
    seen = set(run(stream))
    n = variant.parallelism
    assert seen == {("where", f"where ({i + 1}/{n})", n, 64, i, 0, "test", "default") for i in range(n)}


class PerSubtask(MapFunction):
    """Members that belong to one subtask only."""

    def __init__(self):
        self.count = 0

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        self.count += 1
        return self.subtask, self.count


@pytest.mark.variants(executors=["warm", "one"])
def test_every_subtask_has_its_own_copy_of_a_function(env, run, variant):
    n = variant.parallelism
    function = PerSubtask()
    results = run(
        chained=env.from_sequence(1, 4 * n).map(function), exchanged=env.from_sequence(1, 4 * n).global_().map(function)
    )
    assert sorted(results["chained"]) == [(subtask, count) for subtask in range(n) for count in (1, 2, 3, 4)]
    assert sorted(results["exchanged"]) == [(0, count) for count in range(1, 4 * n + 1)]
    assert function.count == 0  # the program's own object stays as it was


class ShowSubtask(FlatMapFunction):
    """Emits n if it is the subtask's turn (example E24)."""

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def flat_map(self, value):
        if value % 2 == self.subtask:
            yield self.subtask, value


def test_subtask_indexes_start_at_zero(env, run):
    stream = env.from_collection(range(10)).broadcast().flat_map(ShowSubtask()).set_parallelism(2)
    assert sorted(run(stream)) == [(0, n) for n in range(0, 10, 2)] + [(1, n) for n in range(1, 10, 2)]


class Counting(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.counter = runtime_context.get_metrics_group().counter("records")

    def map(self, value):
        self.counter.inc()
        return value


@pytest.mark.on_spark((4, "STREAMING"))
def test_counters_of_all_subtasks_add_up(env):
    env.from_sequence(1, 30).map(Counting()).name("count").key_by(lambda n: n).map(Counting()).name("again").print()
    result = env.execute()
    counters = {
        name: value for name, value in result.get_all_accumulator_results().items() if name.endswith(".records")
    }
    assert counters == {"count.records": 30, "again.records": 30}


CLOSED = []


class ClosesAfterFailure(MapFunction):
    def __init__(self, name):
        self.name = name

    def map(self, value):
        if self.name == "last":
            raise ValueError(value)
        return value

    def close(self):
        CLOSED.append(self.name)


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_close_is_called_after_a_failure_too(env):
    CLOSED.clear()
    beside_source = env.from_collection([1]).map(ClosesAfterFailure("first"))
    beside_source.key_by(lambda value: value).map(ClosesAfterFailure("second")).map(ClosesAfterFailure("last")).print()
    with pytest.raises(PenstockError, match="ValueError: 1"):
        env.execute()
    assert set(CLOSED) == {"first", "second", "last"}


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"], parallelism=[1])
def test_close_is_called_after_a_failure_beside_the_source(env):
    CLOSED.clear()
    env.from_collection([1]).map(ClosesAfterFailure("first")).map(ClosesAfterFailure("last")).print()
    with pytest.raises(PenstockError, match="ValueError: 1"):
        env.execute()
    assert CLOSED == ["first", "last"]


class Measures(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        group = runtime_context.get_metrics_group()
        self.sizes = group.distribution("sizes")
        group.gauge("seven", lambda: 7)

    def map(self, value):
        self.sizes.update(value)
        return value


@pytest.mark.variants(modes=["STREAMING"])
def test_gauges_and_distributions_do_not_depend_on_how_long_tasks_live(env, variant):
    """A cold task starts to count anew with every batch; what it measures goes on all the same."""
    env.from_collection(range(1, 13)).rebalance().map(Measures()).name("measure").print()
    metrics = env.execute().get_all_accumulator_results()
    found = {name.removeprefix("measure."): value for name, value in metrics.items() if name.startswith("measure.")}
    assert (found["sizes.count"], found["sizes.sum"], found["sizes.mean"]) == (12, 78, 6.5)
    assert found["seven"] == 7 * variant.parallelism
    if variant.executor == "warm":
        assert (found["sizes.min"], found["sizes.max"]) == (1, 12)
