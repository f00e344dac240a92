import inspect
import pickle

import pytest

from penstock.common.errors import InvalidProgramError
from penstock.core import functions
from penstock.core.functions import (
    AggregateFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CheckpointListener,
    CoGroupFunction,
    CoProcessFunction,
    DistributedCache,
    FilterFunctionWrapper,
    FlatJoinFunction,
    FlatMapFunctionWrapper,
    Function,
    FunctionWrapper,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelectorFunctionWrapper,
    MapFunction,
    MapFunctionWrapper,
    NullByteKeySelector,
    ParallelSourceFunction,
    PartitionerFunctionWrapper,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunctionWrapper,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    WindowFunction,
)
from penstock.metrics import MetricGroup


class Context(RuntimeContext):
    """A runtime context without state."""

    metrics = MetricGroup()

    def get_task_name(self):
        return "map"

    def get_number_of_parallel_subtasks(self):
        return 4

    def get_max_number_of_parallel_subtasks(self):
        return 128

    def get_index_of_this_subtask(self):
        return 0

    def get_attempt_number(self):
        return 0

    def get_job_parameter(self, key, default_value):
        return default_value

    def get_metrics_group(self):
        return self.metrics

    def get_state(self, state_descriptor):
        raise NotImplementedError

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


class Increment(MapFunction):
    def __init__(self, by):
        self.by = by

    def map(self, value):
        return value + self.by


def test_runtime_context_before_open_is_a_clear_error():
    with pytest.raises(InvalidProgramError, match=r"Increment has no runtime context yet.*open\(\)"):
        Increment(1).get_runtime_context()


def test_runtime_context_is_there_once_set_without_calling_super_init():
    function, context = Increment(1), Context()
    function.set_runtime_context(context)
    assert function.get_runtime_context() is context
    assert Function._runtime_context is None


def test_open_and_close_may_be_left_out():
    function = Increment(1)
    function.open(Context())
    function.close()
    assert function.map(1) == 2


def test_functions_keep_their_constructor_arguments_when_shipped():
    assert pickle.loads(pickle.dumps(Increment(5))).map(1) == 6


def test_runtime_context_names_the_subtask_from_one():
    assert Context().get_task_name_with_subtasks() == "map (1/4)"


def test_both_names_of_the_metric_group_are_the_same():
    assert Context().get_metric_group() is Context().get_metrics_group()


def test_distributed_cache_gives_paths_and_names_what_it_knows():
    assert Context().get_distributed_cache().get_file is not None
    cache = DistributedCache({"cities": "/data/cities.csv"})
    assert cache.get_file("cities") == "/data/cities.csv"
    with pytest.raises(InvalidProgramError, match=r"'towns'.*known: cities"):
        cache.get_file("towns")


@pytest.mark.parametrize(
    ("wrapper", "call", "expected"),
    [
        (MapFunctionWrapper(abs), lambda f: f.map(-1), 1),
        (FlatMapFunctionWrapper(str.split), lambda f: f.flat_map("a b"), ["a", "b"]),
        (FilterFunctionWrapper(bool), lambda f: f.filter(0), False),
        (ReduceFunctionWrapper(max), lambda f: f.reduce(1, 2), 2),
        (KeySelectorFunctionWrapper(len), lambda f: f.get_key("abc"), 3),
        (PartitionerFunctionWrapper(divmod), lambda f: f.partition(7, 4), (1, 3)),
    ],
)
def test_plain_callables_act_as_functions(wrapper, call, expected):
    assert call(wrapper) == expected
    assert isinstance(wrapper, FunctionWrapper)
    assert wrapper.func is wrapper._func
    assert call(pickle.loads(pickle.dumps(wrapper))) == expected
    assert wrapper.func.__name__ in repr(wrapper)


def test_the_null_key_is_the_same_for_all_records():
    assert NullByteKeySelector().get_key("a") == NullByteKeySelector().get_key(5)


ABSTRACT = [
    cls
    for name, cls in vars(functions).items()
    if inspect.isclass(cls) and inspect.isabstract(cls) and name in functions.__all__
]


@pytest.mark.parametrize("cls", ABSTRACT, ids=lambda cls: cls.__name__)
def test_a_subclass_that_forgets_a_method_is_refused_when_made(cls):
    with pytest.raises(TypeError, match="abstract"):
        type("Unfinished", (cls,), {})()


CONTEXTS = [
    ProcessFunction.Context,
    KeyedProcessFunction.Context,
    KeyedProcessFunction.OnTimerContext,
    CoProcessFunction.Context,
    KeyedCoProcessFunction.Context,
    KeyedCoProcessFunction.OnTimerContext,
    BroadcastProcessFunction.Context,
    BroadcastProcessFunction.ReadOnlyContext,
    KeyedBroadcastProcessFunction.Context,
    KeyedBroadcastProcessFunction.ReadOnlyContext,
    KeyedBroadcastProcessFunction.OnTimerContext,
    ProcessWindowFunction.Context,
    ProcessAllWindowFunction.Context,
    ProcessJoinFunction.Context,
]


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.__qualname__)
def test_every_context_can_write_side_outputs(context):
    assert "output" in context.__abstractmethods__


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.__qualname__)
def test_contexts_leave_room_for_slots(context):
    made = type("Made", (context,), {"__slots__": (), **dict.fromkeys(context.__abstractmethods__)})()
    assert not hasattr(made, "__dict__")


@pytest.mark.parametrize("cls", [KeyedProcessFunction, KeyedCoProcessFunction, KeyedBroadcastProcessFunction])
def test_on_timer_may_be_left_out(cls):
    made = type("Made", (cls,), {name: lambda *args: None for name in cls.__abstractmethods__})()
    assert made.on_timer(5, None) is None


@pytest.mark.parametrize("cls", [ProcessWindowFunction, ProcessAllWindowFunction])
def test_clear_of_window_functions_may_be_left_out(cls):
    made = type("Made", (cls,), {"process": lambda *args: []})()
    assert made.clear(None) is None


def test_generic_functions_can_be_given_their_types():
    class Count(ProcessWindowFunction[str, int, str, object]):
        def process(self, key, context, elements):
            yield len(list(elements))

    class First(WindowFunction[str, str, str, object]):
        def apply(self, key, window, inputs):
            return [next(iter(inputs))]

    assert list(Count().process("k", None, "abc")) == [3]
    assert First().apply("k", None, "abc") == ["a"]


def test_aggregate_function_goes_from_accumulator_to_result():
    class Average(AggregateFunction):
        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + value, accumulator[1] + 1

        def get_result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, acc_a, acc_b):
            return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]

    average = Average()
    left, right = average.add(1, average.create_accumulator()), average.add(4, average.create_accumulator())
    assert average.get_result(average.merge(left, right)) == 2.5


def test_join_functions_are_contracts_of_one_method():
    names = {
        JoinFunction: {"join"},
        FlatJoinFunction: {"join"},
        CoGroupFunction: {"co_group"},
        ProcessJoinFunction: {"process_element"},
        SinkFunction: {"invoke"},
        SourceFunction: {"run", "cancel"},
        ParallelSourceFunction: {"run", "cancel"},
        CheckpointedFunction: {"initialize_state", "snapshot_state"},
        CheckpointListener: {"notify_checkpoint_complete"},
    }
    assert {cls: set(cls.__abstractmethods__) for cls in names} == names


def test_aborted_checkpoints_may_be_ignored():
    class Listener(CheckpointListener):
        def notify_checkpoint_complete(self, checkpoint_id):
            self.last = checkpoint_id

    assert Listener().notify_checkpoint_aborted(5) is None
