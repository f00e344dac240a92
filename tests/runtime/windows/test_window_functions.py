import pytest
from window_helpers import Sum, at, windows

from penstock.common.errors import KeySelectorError, UserFunctionError
from penstock.core.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.core.output_tag import OutputTag
from penstock.core.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.operators.rolling import RollingMax, RollingMaxBy, RollingMin, RollingMinBy, RollingSum

TEN = TumblingEventTimeWindows.of(10)


class SameAsDefault(EventTimeTrigger):
    """Unknown to the builder, so that the general operator is used."""


@pytest.fixture(
    params=[
        {"assigner": TEN},
        {"assigner": TEN, "trigger": SameAsDefault()},
        {"assigner": SlidingEventTimeWindows.of(10, 9)},
        {"assigner": EventTimeSessionWindows.with_gap(7)},
        {"assigner": EventTimeSessionWindows.with_gap(7), "trigger": SameAsDefault()},
    ],
    ids=["tumbling", "general", "sliding", "session", "merging"],
)
def window(request):
    """A window [.., 10) over elements at 1 and 3, whatever the operator; a sliding one begins with the epoch."""

    def make(*functions, **definition):
        return windows(request.param["assigner"], *functions, trigger=request.param.get("trigger"), **definition)

    return make


def run(driver):
    return driver.send(*at((1, 1), (4, 3))).advance(9).take()


def test_reduce_functions(window):
    class Larger(ReduceFunction):
        def reduce(self, value1, value2):
            return max(value1, value2)

    assert (("a", 4), 9) in run(window(reduce_function=Larger()))
    assert (("a", 4), 9) in run(window(reduce_function=max))


def test_aggregate_functions(window):
    assert (5, 9) in run(window(aggregate_function=Sum()))


def test_a_process_function_sees_key_window_and_clocks(window):
    class Process(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield (
                key,
                context.window().end,
                len(elements),
                context.current_watermark(),
                context.current_processing_time(),
            )

    assert (("a", 10, 2, 9, 0), 9) in run(window(Process()))


def test_the_older_window_function(window):
    class Apply(WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.end, len(inputs))]

    assert (("a", 10, 2), 9) in run(window(Apply()))


@pytest.mark.parametrize("functions", [{"aggregate_function": Sum()}, {"reduce_function": lambda a, b: a[1] + b[1]}])
def test_a_process_function_behind_an_incremental_one_gets_exactly_one_element(window, functions):
    class Process(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield list(elements), context.window().end

    assert (([5], 10), 9) in run(window(Process(), **functions))


def test_elements_can_be_read_more_than_once(window):
    class Twice(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield sum(value for _, value in elements) + sum(value for _, value in elements)

    assert (10, 9) in run(window(Twice()))


def test_side_outputs_by_context_and_by_tag(window):
    tag = OutputTag("late")

    class Process(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.output(tag, "by context")
            yield tag, "by tag"
            yield "main"

    driver = window(Process())
    assert ("main", 9) in run(driver)
    side = driver.side("late")
    assert ("by context", 9) in side
    assert ("by tag", 9) in side


def test_a_function_may_return_nothing(window):
    class Silent(ProcessWindowFunction):
        def process(self, key, context, elements):
            return None

    assert run(window(Silent())) == []


def test_functions_are_opened_and_closed(window):
    class Life(Sum):
        events = ()

        def open(self, runtime_context):
            self.events = (*self.events, runtime_context.get_index_of_this_subtask())

        def close(self):
            self.events = (*self.events, "closed")

    class Process(ProcessWindowFunction):
        events = ()
        open, close = Life.open, Life.close

        def process(self, key, context, elements):
            return []

    incremental, process = Life(), Process()
    driver = window(process, aggregate_function=incremental)
    driver.operator.close()
    assert incremental.events == process.events == (0, "closed")
    assert driver.operator.user_functions() == [incremental, process]


def test_windows_over_everything():
    class All(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().end, [value for _, value in elements], context.current_watermark()

    class Apply(AllWindowFunction):
        def apply(self, window, inputs):
            yield window.end, [value for _, value in inputs]

    records = [(("a", 1), 1), (("b", 2), 2), (("a", 3), 3)]
    assert windows(TEN, All(), all_window=True).send(*records).advance(9).results() == [(10, [1, 2, 3], 9)]
    assert windows(TEN, Apply(), all_window=True).send(*records).advance(9).results() == [(10, [1, 2, 3])]
    assert windows(TEN, aggregate_function=Sum(), all_window=True).send(*records).advance(9).results() == [6]


@pytest.mark.parametrize(
    ("aggregation", "result"),
    [
        (RollingSum(1), ("a", 6, "x")),
        (RollingMin(1), ("a", 1, "x")),
        (RollingMax(1), ("a", 3, "x")),
        (RollingMinBy(1), ("a", 1, "y")),
        (RollingMaxBy(1), ("a", 3, "z")),
    ],
)
def test_built_in_aggregations_of_a_field(aggregation, result):
    driver = windows(TEN, reduce_function=aggregation)
    driver.send((("a", 2, "x"), 1), (("a", 1, "y"), 2), (("a", 3, "z"), 3)).advance(9)
    assert driver.results() == [result]


def test_min_by_over_everything():
    driver = windows(TEN, reduce_function=RollingMinBy(1), all_window=True)
    assert driver.send((("a", 2), 1), (("b", 1), 2)).advance(9).results() == [("b", 1)]


def test_an_error_in_an_incremental_function_names_the_record(window):
    class Broken(Sum):
        def add(self, value, accumulator):
            return accumulator / 0

    with pytest.raises(UserFunctionError, match=r"(?s)operator 'windows'.*\('a', 1\).*ZeroDivisionError"):
        run(window(aggregate_function=Broken()))


def test_an_error_in_the_key_selector_is_blamed_on_it(window):
    driver = window(aggregate_function=Sum(), key_selector=lambda record: record[7])
    with pytest.raises(KeySelectorError, match="IndexError"):
        run(driver)
    driver = window(aggregate_function=Sum(), key_selector=lambda record: [record])
    with pytest.raises(KeySelectorError, match="cannot be a key"):
        run(driver)


def test_what_a_function_emits_and_then_changes_is_emitted_as_it_was(window):
    class Reuse(ProcessWindowFunction):
        def process(self, key, context, elements):
            row = {"n": 0}
            for _ in elements:
                row["n"] += 1
                yield row

    rows = [value for value, stamp in run(window(Reuse())) if stamp == 9]
    assert rows[-2:] == [{"n": 1}, {"n": 2}]
