"""Timers of keys: registered, counted, deleted, fired, restored, moved to other subtasks."""

import pytest

from penstock.common.types import Row
from penstock.core.functions import KeyedProcessFunction
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.testing import KeyedOneInputOperatorHarness


class Timers(KeyedProcessFunction):
    """Does with timers what a record says: (key, action, times...)."""

    def process_element(self, value, ctx):
        _, action, *times = value
        service = ctx.timer_service()
        for time in times:
            getattr(service, action)(time)
        if action == "times":
            yield service.current_watermark(), service.current_processing_time()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name


class Again(KeyedProcessFunction):
    """Every processing-time timer registers the next one."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_processing_time_timer(timestamp + 10)
        yield timestamp


def harness(function=None, **options):
    return KeyedOneInputOperatorHarness(KeyedProcessOperator(function or Timers(), lambda value: value[0]), **options)


DOMAINS = {
    "event": ("register_event_time_timer", "delete_event_time_timer", "EVENT_TIME"),
    "processing": ("register_processing_time_timer", "delete_processing_time_timer", "PROCESSING_TIME"),
}


@pytest.fixture(params=DOMAINS)
def domain(request):
    return request.param


def advance(driver, domain, time):
    (driver.process_watermark if domain == "event" else driver.set_processing_time)(time)


def count(driver, domain):
    return driver.num_event_time_timers() if domain == "event" else driver.num_processing_time_timers()


def test_timers_of_one_time_fire_once_for_each_key(domain):
    register, _, name = DOMAINS[domain]
    driver = harness()
    for key in ("a", "b"):
        driver.process_element((key, register, 10, 10))
    assert count(driver, domain) == 2
    advance(driver, domain, 9)
    assert driver.extract_values() == []
    advance(driver, domain, 10)
    assert sorted(driver.extract_values()) == [("a", 10, name), ("b", 10, name)]
    assert count(driver, domain) == 0


def test_a_deleted_timer_of_one_key_leaves_those_of_others(domain):
    register, delete, name = DOMAINS[domain]
    driver = harness()
    for key in ("a", "b"):
        driver.process_element((key, register, 10, 20))
    driver.process_element(("a", delete, 10))
    driver.process_element(("b", delete, 20))
    driver.process_element(("b", delete, 99))  # there is none
    assert count(driver, domain) == 2
    advance(driver, domain, 20)
    assert sorted(driver.extract_values()) == [("a", 20, name), ("b", 10, name)]


def test_the_two_domains_do_not_share_timers():
    driver = harness()
    driver.process_element(("a", "register_event_time_timer", 10))
    driver.process_element(("a", "delete_processing_time_timer", 10))
    driver.set_processing_time(10)
    assert driver.extract_values() == []
    assert (driver.num_event_time_timers(), driver.num_processing_time_timers()) == (1, 0)


def test_the_next_wakeup_is_the_earliest_processing_time_timer():
    driver = harness()
    driver.process_element(("a", "register_processing_time_timer", 20))
    assert driver.operator.next_wakeup() == 20
    driver.process_element(("b", "register_processing_time_timer", 10))  # an earlier one
    assert driver.operator.next_wakeup() == 10
    driver.set_processing_time(10)
    assert driver.operator.next_wakeup() == 20
    driver.set_processing_time(20)
    assert driver.operator.next_wakeup() is None
    driver.process_element(("a", "register_processing_time_timer", 40))
    assert driver.operator.next_wakeup() == 40


def test_a_timer_that_registers_the_next_one_leaves_one_timer():
    driver = harness(Again())
    driver.process_element(("a", 10))
    for time in (10, 20, 30):
        driver.set_processing_time(time)
        assert driver.extract_values() == [time]
        assert driver.num_processing_time_timers() == 1


def test_functions_see_both_clocks():
    driver = harness()
    driver.process_watermark(17)
    driver.set_processing_time(42)
    driver.process_element(("a", "times"))
    assert driver.extract_values() == [(17, 42)]


def test_timers_of_both_domains_survive_a_snapshot(domain):
    register, _, name = DOMAINS[domain]
    driver = harness()
    driver.process_element(("a", register, 10))
    driver.process_element(("b", register, 20))
    again = harness(snapshot=driver.snapshot())
    advance(again, domain, 10)
    assert again.extract_values() == [("a", 10, name)]
    advance(again, domain, 20)
    assert again.extract_values() == [("b", 20, name)]


def test_keys_of_any_kind_have_timers():
    driver = harness()
    for key in (None, 1, "1", (1, "x"), Row(a=1)):
        driver.process_element((key, "register_event_time_timer", 5))
    driver.process_watermark(5)
    assert len(driver.extract_values()) == 5
