import pytest

from penstock.common.errors import InvalidProgramError, UserFunctionError
from penstock.core.functions import CoProcessFunction, ProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.co_process import CoProcessOperator
from penstock.runtime.operators.process import ProcessOperator

LATE = OutputTag("late")


class MarkLate(ProcessFunction):
    def process_element(self, value, ctx):
        clock = ctx.timer_service()
        if ctx.timestamp() is not None and ctx.timestamp() <= clock.current_watermark():
            ctx.output(LATE, value)
        else:
            yield value, ctx.timestamp(), clock.current_processing_time()


def test_process_reads_timestamp_and_both_clocks(drive):
    driver = drive(ProcessOperator(MarkLate()), now=500)
    driver.send("a")
    driver.send("b", at=7)
    assert driver.output.take() == [(("a", None, 500), None), (("b", 7, 500), 7)]


def test_late_records_can_go_to_a_side_output_with_their_timestamp(drive):
    driver = drive(ProcessOperator(MarkLate()), sides=["late"])
    driver.watermark(10)
    driver.send("late", "in time", at=[10, 11])
    assert driver.output.values == [("in time", 11, 0)]
    assert driver.sides["late"].take() == [10, ("late", 10)]


def test_both_forms_of_side_output_can_be_mixed_and_unread_ones_are_dropped(drive):
    class Both(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.output(LATE, f"call {value}")
            yield LATE, f"yield {value}"
            yield OutputTag("no one reads this"), value

    driver = drive(ProcessOperator(Both()), sides=["late"])
    assert driver.send(1) == []
    assert driver.sides["late"].values == ["call 1", "yield 1"]


def test_timers_need_a_key(drive):
    class SetsTimer(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

    with pytest.raises(InvalidProgramError, match=r"my operator.*key_by"):
        drive(ProcessOperator(SetsTimer())).send(1)


def test_the_current_watermark_survives_a_restore(drive):
    driver = drive(ProcessOperator(MarkLate()))
    driver.operator.restore_watermark(99)
    assert driver.operator.timer_service.current_watermark() == 99


def test_output_needs_an_output_tag(drive):
    class Wrong(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.output("late", value)

    with pytest.raises(InvalidProgramError, match="must be an OutputTag"):
        drive(ProcessOperator(Wrong())).send(1)


def test_a_failing_generator_names_the_record_it_was_made_for(drive):
    class Fails(ProcessFunction):
        def process_element(self, value, ctx):
            yield value
            raise KeyError(value)

    with pytest.raises(UserFunctionError) as caught:
        drive(ProcessOperator(Fails())).send("a", at=1)
    assert caught.value.record == "'a'"
    assert caught.value.method == "process_element"


class Sides(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value, ctx.timestamp(), ctx.timer_service().current_watermark() > 0

    def process_element2(self, value, ctx):
        yield LATE, value


def test_co_process_calls_the_method_of_the_input(drive):
    driver = drive(CoProcessOperator(Sides()), sides=["late"])
    driver.send("a", at=3)
    driver.send2("b", at=4)
    driver.watermark(5)
    driver.send("c")
    assert driver.output.take() == [((1, "a", 3, False), 3), 5, ((1, "c", None, True), None)]
    assert driver.sides["late"].take() == [("b", 4), 5]


def test_co_process_names_the_failing_method(drive):
    class Fails(Sides):
        def process_element2(self, value, ctx):
            raise ValueError(value)

    with pytest.raises(UserFunctionError, match="process_element2"):
        drive(CoProcessOperator(Fails())).send2("x")
