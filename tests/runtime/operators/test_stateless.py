import pytest

from penstock.common.errors import UserFunctionError
from penstock.core.functions import CheckpointedFunction, FilterFunction, FlatMapFunction, MapFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import ListStateDescriptor
from penstock.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator

TAG = OutputTag("odd")


def test_map_emits_exactly_one_record_for_each_and_keeps_timestamps(drive):
    driver = drive(MapOperator(lambda value: None if value == 2 else value * 10))
    driver.send(1, 2, 3, at=[7, 8, 9])
    assert driver.output.take() == [(10, 7), (None, 8), (30, 9)]


def test_map_function_objects_are_opened_and_closed_once(drive):
    calls = []

    class Tracked(MapFunction):
        def open(self, runtime_context):
            calls.append(("open", runtime_context.get_task_name()))

        def map(self, value):
            return value + self.get_runtime_context().get_number_of_parallel_subtasks()

        def close(self):
            calls.append("close")

    driver = drive(MapOperator(Tracked()))
    assert driver.send(1, 2) == [2, 3]
    driver.operator.close()
    assert calls == [("open", "my operator"), "close"]


def test_map_does_not_treat_a_tagged_pair_as_a_side_output(drive):
    driver = drive(MapOperator(lambda value: (TAG, value)), sides=["odd"])
    assert driver.send(1) == [(TAG, 1)]


def test_map_function_that_changes_an_emitted_record_later_does_not_change_what_was_emitted(drive):
    class Running(MapFunction):
        def __init__(self):
            self.seen = []

        def map(self, value):
            self.seen.append(value)
            return self.seen

    assert drive(MapOperator(Running())).send(1, 2) == [[1], [1, 2]]


def test_filter_keeps_the_true_ones_with_their_timestamps(drive):
    class Even(FilterFunction):
        def filter(self, value):
            return value % 2 == 0

    driver = drive(FilterOperator(Even()))
    driver.send(1, 2, 3, 4, at=[1, 2, 3, 4])
    driver.send(5, 6)
    assert driver.output.take() == [(2, 2), (4, 4), (6, None)]


def test_filter_emits_nothing_for_an_empty_result(drive):
    driver = drive(FilterOperator(lambda _: False))
    driver.send(1, 2)
    assert driver.output.take() == []


@pytest.mark.parametrize("at", [None, [5, 6, 7]])
def test_flat_map_takes_none_lists_and_generators(drive, at):
    def split(value):
        if value == "":
            return None
        return value.split() if "," not in value else (part for part in value.split(","))

    driver = drive(FlatMapOperator(split))
    driver.send("a b", "", "c,d", at=at)
    stamps = [None] * 4 if at is None else [5, 5, 7, 7]
    assert driver.output.take() == list(zip("abcd", stamps, strict=True))


@pytest.mark.parametrize("at", [None, [5, 6]])
def test_flat_map_yields_to_side_outputs(drive, at):
    class Odd(FlatMapFunction):
        def flat_map(self, value):
            yield value
            if value % 2:
                yield TAG, value

    for function in (Odd(), Odd().flat_map):
        driver = drive(FlatMapOperator(function), sides=["odd"])
        driver.send(1, 2, at=at)
        assert driver.output.values == [1, 2]
        assert driver.sides["odd"].take() == [(1, None if at is None else 5)]


def test_flat_map_that_changes_a_yielded_record_later_does_not_change_what_was_emitted(drive):
    class Growing(FlatMapFunction):
        def flat_map(self, value):
            row = []
            for part in value:
                row.append(part)
                yield row

    assert drive(FlatMapOperator(Growing())).send("ab") == [["a"], ["a", "b"]]


@pytest.mark.parametrize("operator", [MapOperator, FilterOperator, FlatMapOperator])
@pytest.mark.parametrize("at", [None, 5])
def test_a_failing_function_names_operator_method_and_record(drive, operator, at):
    def fail_on_two(value):
        if value == 2:
            raise ValueError("two is bad")
        return [value]

    with pytest.raises(UserFunctionError) as caught:
        drive(operator(fail_on_two)).send(1, 2, 3, at=at)
    message = str(caught.value)
    assert caught.value.record == "2"
    assert caught.value.method == operator.method
    assert "my operator" in message
    assert "two is bad" in message
    assert "fail_on_two" in message
    assert "operators/stateless.py" not in message


def test_a_stop_iteration_in_a_map_is_an_error_and_not_the_end_of_the_batch(drive):
    def stop(value):
        raise StopIteration

    with pytest.raises(UserFunctionError):
        drive(MapOperator(stop)).send(1)


def test_watermarks_and_statuses_pass_through(drive):
    driver = drive(MapOperator(lambda value: value), sides=["odd"])
    driver.watermark(10)
    driver.operator.process_status(idle=True)
    assert driver.output.take() == [10, "idle"] == driver.sides["odd"].take()


def test_a_checkpointed_function_keeps_its_list_state(drive):
    class CountAll(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.restored = context.is_restored()
            self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("count"))
            self.count = sum(self.state.get())

        def snapshot_state(self, context):
            self.state.update([self.count])

        def map(self, value):
            self.count += 1
            return self.count

    operator = MapOperator(CountAll())
    assert operator.stateful
    driver = drive(operator)
    assert driver.send("a", "b") == [1, 2]
    again = driver.restored(MapOperator(CountAll()))
    assert again.operator.function.restored
    assert again.send("c") == [3]
