"""Harnesses: one operator, fed and watched by hand."""

from penstock.common import Types
from penstock.datastream import KeyedCoProcessFunction, KeyedProcessFunction, OutputTag, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.operators.keyed_co_process import KeyedCoProcessOperator
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.runtime.operators.stateless import FilterOperator, MapOperator
from penstock.testing import (
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
    OneInputOperatorHarness,
    TwoInputOperatorHarness,
)

SIDE = OutputTag("side")


class Alarm(KeyedProcessFunction):
    """Counts; alarms in both times."""

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT(), 0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        ctx.timer_service().register_event_time_timer(value[1])
        ctx.timer_service().register_processing_time_timer(value[1] * 10)
        ctx.output(SIDE, value[0])
        yield value[0], self.count.value()

    def on_timer(self, timestamp, ctx):
        yield ctx.time_domain().name, ctx.get_current_key(), timestamp, self.count.value()


class Sum(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT(), 0))

    def process_element1(self, value, ctx):
        self.sum.update(self.sum.value() + value)
        yield self.sum.value(), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx):
        return self.process_element1(-value, ctx)


def alarm(snapshot=None):
    return KeyedOneInputOperatorHarness(KeyedProcessOperator(Alarm(), lambda value: value[0]), snapshot=snapshot)


def test_elements_watermarks_and_timestamps_in_order():
    harness = OneInputOperatorHarness(FilterOperator(lambda value: value > 1))
    harness.process_elements([1, 2, 3], [10, 20, 30])
    harness.process_watermark(25)
    harness.process_element(4)
    assert harness.extract_output() == [(2, 20), (3, 30), 25, (4, None)]
    assert harness.extract_output() == []


def test_timers_in_both_domains_and_side_outputs():
    harness = alarm()
    harness.process_element(("a", 5), 1)
    harness.process_element(("b", 7), 2)
    assert harness.extract_values() == [("a", 1), ("b", 1)]
    assert harness.extract_side_output(SIDE) == [("a", 1), ("b", 2)]
    assert harness.extract_side_output(SIDE) == []
    assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (2, 2)
    harness.process_watermark(6)
    assert harness.extract_output() == [(("EVENT_TIME", "a", 5, 1), 5), 6]
    harness.set_processing_time(70)
    assert harness.extract_output() == [
        (("PROCESSING_TIME", "a", 50, 1), None),
        (("PROCESSING_TIME", "b", 70, 1), None),
    ]
    assert harness.num_keyed_state_entries() == 2


def test_a_new_harness_continues_from_a_snapshot():
    harness = alarm()
    harness.process_element(("a", 5), 1)
    harness.process_watermark(3)
    harness.set_processing_time(20)
    snapshot = harness.snapshot()
    for _ in range(2):  # the same snapshot, twice
        again = alarm(snapshot)
        again.process_element(("a", 9), 4)
        assert again.extract_values() == [("a", 2)]
        again.process_watermark(5)
        assert again.extract_values() == [("EVENT_TIME", "a", 5, 2)]
        assert again.clock.now == 20


def test_two_inputs_combine_their_watermarks():
    operator = KeyedCoProcessOperator(Sum(), lambda value: 0, lambda value: 0)
    harness = KeyedTwoInputOperatorHarness(operator)
    harness.process_element1(10)
    harness.process_watermark1(7)
    harness.process_element2(3)
    harness.process_watermark2(5)
    harness.process_element1(1)
    assert harness.extract_output() == [((10, -(2**63)), None), ((7, -(2**63)), None), 5, ((8, 5), None)]
    assert isinstance(harness, TwoInputOperatorHarness)


def test_the_watermark_of_each_input_is_part_of_a_snapshot():
    def summing(snapshot=None):
        return KeyedTwoInputOperatorHarness(
            KeyedCoProcessOperator(Sum(), lambda value: 0, lambda value: 0), snapshot=snapshot
        )

    before = summing()
    before.process_watermark1(7)
    before.process_watermark2(5)
    again = summing(before.snapshot())
    again.process_watermark2(6)
    assert again.extract_output() == [6]
    again.process_watermark1(4)  # an input never goes back
    again.process_watermark2(9)
    assert again.extract_output() == [7]


def test_parallelism_and_subtask_are_what_the_function_sees():
    class Where(Alarm):
        def open(self, runtime_context):
            super().open(runtime_context)
            self.place = runtime_context.get_task_name_with_subtasks()

        def process_element(self, value, ctx):
            yield self.place

    operator = KeyedProcessOperator(Where(), lambda value: value)
    harness = KeyedOneInputOperatorHarness(operator, subtask=2, parallelism=4, name="where")
    harness.process_element("x")
    assert harness.extract_values() == ["where (3/4)"]


def test_end_of_batch_and_end_of_input_reach_the_operator():
    calls = []

    class Noting(MapOperator):
        def end_batch(self):
            calls.append("end of batch")

        def end_input(self):
            calls.append("end of input")

        def close(self):
            calls.append("close")

    harness = OneInputOperatorHarness(Noting(str))
    harness.end_batch()
    harness.end_input()
    harness.close()
    assert calls == ["end of batch", "end of input", "close"]


def test_the_status_of_the_input_is_passed_on_when_it_changes():
    harness = OneInputOperatorHarness(MapOperator(lambda value: value))
    harness.process_status(idle=False)  # as it is
    harness.process_status(idle=True)
    harness.process_status(idle=True)
    harness.process_status(idle=False)
    assert harness.extract_output() == [True, False]


def test_an_idle_input_holds_back_neither_event_time_nor_the_status():
    harness = KeyedTwoInputOperatorHarness(
        KeyedCoProcessOperator(Sum(), lambda value: value[0], lambda value: value[0])
    )
    harness.process_watermark1(10)
    harness.process_status2(idle=True)  # the first input decides alone
    assert harness.extract_output() == [10]
    harness.process_status1(idle=True)
    assert harness.extract_output() == [True]
    harness.process_status2(idle=False)
    assert harness.extract_output() == [False]
    harness.process_watermark2(5)  # behind: event time stays
    harness.process_watermark2(20)  # the first is still idle
    assert harness.extract_output() == [20]
