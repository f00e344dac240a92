import pytest

from penstock.common.errors import MissingTimestampError, TypeMismatchError, UserFunctionError
from penstock.common.time import Duration
from penstock.common.watermark import MAX_WATERMARK
from penstock.common.watermark_strategy import TimestampAssigner, Watermark, WatermarkGenerator, WatermarkStrategy
from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from penstock.testing import OneInputOperatorHarness


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def monotonous(assigner=lambda value, _: value[1]):
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)


def bounded(millis):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(millis))
    return strategy.with_timestamp_assigner(lambda value: value[1])


@pytest.fixture
def assign(drive):
    return lambda strategy, **options: drive(TimestampsAndWatermarksOperator(strategy), **options)


def test_timestamps_are_assigned_and_the_watermark_follows_at_the_end_of_the_batch(assign):
    driver = assign(monotonous())
    driver.send(("a", 3), ("b", 7))
    driver.end_batch()
    assert driver.output.take() == [(("a", 3), 3), (("b", 7), 7), 6]


def test_bounded_out_of_orderness_trails_the_largest_timestamp(assign):
    driver = assign(bounded(10))
    driver.send(("a", 100), ("b", 90))
    driver.end_batch()
    assert driver.output.take()[-1] == 89


def test_no_watermark_before_the_first_record(assign):
    driver = assign(bounded(10))
    driver.end_batch()
    assert driver.output.take() == []


def test_watermarks_never_go_back_or_repeat(assign):
    driver = assign(monotonous())
    for timestamp in (10, 10, 5, 12):
        driver.send(("a", timestamp))
        driver.end_batch()
    assert [event for event in driver.output.take() if isinstance(event, int)] == [9, 11]


def test_an_assigner_overwrites_timestamps_and_sees_the_old_ones(assign):
    seen = []

    class Shift(TimestampAssigner):
        def extract_timestamp(self, value, record_timestamp):
            seen.append(record_timestamp)
            return 1000

    driver = assign(monotonous(Shift()))
    driver.send("a", "b", at=[5, None])
    driver.send("c")
    assert driver.output.take() == [("a", 1000), ("b", 1000), ("c", 1000)]
    assert seen == [5, TimestampAssigner.NO_TIMESTAMP, TimestampAssigner.NO_TIMESTAMP]


def test_upstream_watermarks_and_idleness_end_here_except_the_last_watermark(assign):
    driver = assign(monotonous())
    driver.watermark(50)
    driver.operator.process_status(idle=True)
    driver.watermark(MAX_WATERMARK)
    driver.watermark(MAX_WATERMARK)
    assert driver.output.take() == [MAX_WATERMARK]


def test_without_an_assigner_the_timestamps_of_the_source_stay(assign):
    driver = assign(WatermarkStrategy.for_monotonous_timestamps())
    driver.send("a", at=5)
    driver.end_batch()
    assert driver.output.take() == [("a", 5), 4]


def test_ingestion_time_stamps_records_with_processing_time(assign):
    driver = assign(WatermarkStrategy.for_ingestion_time(), now=777)
    driver.send("a")
    assert driver.output.take() == [("a", 777)]


def test_no_watermarks_can_still_assign_timestamps(assign):
    driver = assign(WatermarkStrategy.no_watermarks().with_timestamp_assigner(Second()))
    driver.send(("a", 1))
    driver.end_batch()
    assert driver.output.take() == [(("a", 1), 1)]


def test_a_record_without_a_timestamp_does_not_move_the_watermark(assign):
    driver = assign(WatermarkStrategy.for_monotonous_timestamps())
    driver.send("a", "b", at=[5, None])
    driver.end_batch()
    assert driver.output.take() == [("a", 5), ("b", None), 4]


def test_a_record_for_which_the_assigner_returns_none_is_named(assign):
    with pytest.raises(MissingTimestampError, match=r"returned None.*'x', None"):
        assign(monotonous()).send(("x", None))


def test_a_timestamp_that_is_no_int_is_named(assign):
    with pytest.raises(TypeMismatchError, match=r"'12:00' of type str.*my operator.*record"):
        assign(monotonous()).send(("a", 1), ("x", "12:00"))
    assert assign(monotonous()).send(("a", 5.0)) == [("a", 5.0)]
    with pytest.raises(TypeMismatchError):
        assign(monotonous()).send(("a", 5.5))


def test_a_failing_assigner_names_the_record(assign):
    for assigner in (lambda value: value[1], lambda value, _: value[1], Second()):
        with pytest.raises(UserFunctionError) as caught:
            assign(monotonous(assigner)).send(("a", 1), ("b",))
        assert caught.value.record == "('b',)"
        assert caught.value.method == "extract_timestamp"


class OnFlush(WatermarkGenerator):
    """Punctuated: a record 'flush' carries the watermark."""

    def on_event(self, event, event_timestamp, output):
        if event[0] == "flush":
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


class EveryOther(WatermarkGenerator):
    """Periodic, with state of its own."""

    def __init__(self):
        self.count = 0

    def on_event(self, event, event_timestamp, output):
        self.count += 1

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.count))


def custom(generator):
    return WatermarkStrategy.for_generator(generator).with_timestamp_assigner(Second())


def test_a_punctuated_generator_cuts_the_batch_right_behind_the_record(assign):
    driver = assign(custom(OnFlush))
    driver.send(("a", 1), ("flush", 2), ("b", 3), ("flush", 1), ("c", 4), ("flush", 9))
    events = [event if isinstance(event, int) else event[0][0] for event in driver.output.take()]
    assert events == ["a", "flush", 2, "b", "flush", "c", "flush", 9]


def test_only_generators_of_the_users_own_are_stateful():
    assert TimestampsAndWatermarksOperator(custom(OnFlush)).stateful
    for strategy in (monotonous(), bounded(5), WatermarkStrategy.no_watermarks()):
        assert not TimestampsAndWatermarksOperator(strategy).stateful


def test_a_generator_of_the_users_own_is_kept_across_restores(assign):
    driver = assign(custom(EveryOther))
    driver.send(("a", 1), ("b", 2))
    driver.end_batch()
    again = driver.restored(TimestampsAndWatermarksOperator(custom(EveryOther)))
    again.send(("c", 3))
    again.end_batch()
    assert [e for e in driver.output.take() + again.output.take() if isinstance(e, int)] == [2, 3]


def test_a_generator_may_work_without_timestamps(assign):
    driver = assign(WatermarkStrategy.for_generator(EveryOther))
    driver.send("a")
    driver.end_batch()
    assert driver.output.take() == [("a", None), 1]


def test_a_periodic_generator_is_asked_again_though_no_record_comes(assign):
    driver = assign(custom(EveryOther), now=1000)
    driver.send(("a", 1))
    driver.end_batch()
    assert driver.operator.next_wakeup() == 1200
    driver.end_batch(now=1200)
    assert driver.operator.next_wakeup() > 1400
    driver.watermark(MAX_WATERMARK)
    assert driver.operator.next_wakeup() is None


def test_a_failing_generator_is_named(assign):
    class Fails(OnFlush):
        def on_event(self, event, event_timestamp, output):
            output.emit_watermark(event_timestamp)

    with pytest.raises(UserFunctionError, match=r"on_event[\s\S]*takes a Watermark"):
        assign(custom(Fails)).send(("a", 1))


def test_a_stream_without_records_for_more_than_the_timeout_becomes_idle_and_the_next_watermark_wakes_it(assign):
    driver = assign(monotonous().with_idleness(Duration.of_millis(100)), now=1000)
    driver.send(("a", 5))
    driver.end_batch()
    assert driver.operator.next_wakeup() == 1101
    driver.end_batch(now=1100)
    assert driver.output.take() == [(("a", 5), 5), 4]
    driver.end_batch(now=1101)
    driver.end_batch(now=5000)
    assert driver.output.take() == ["idle"]
    assert driver.operator.next_wakeup() is None
    driver.send(("b", 6))
    driver.end_batch()
    assert driver.output.take() == [(("b", 6), 6), "active", 5]


def test_records_behind_the_watermark_leave_an_idle_stream_idle(assign):
    driver = assign(monotonous().with_idleness(Duration.of_millis(100)), now=1000)
    driver.send(("a", 5))
    driver.end_batch()
    driver.end_batch(now=1101)
    driver.send(("b", 3))
    driver.end_batch()
    driver.end_batch(now=1200)
    assert driver.output.take() == [(("a", 5), 5), 4, "idle", (("b", 3), 3)]


def test_a_generator_that_calls_itself_idle_is_asked_again(assign):
    class Napping(WatermarkGenerator):
        asked = 0

        def on_event(self, event, event_timestamp, output):
            pass

        def on_periodic_emit(self, output):
            self.asked += 1
            if self.asked == 1:
                output.mark_idle()
            else:
                output.emit_watermark(Watermark(self.asked))

    driver = assign(custom(Napping), now=1000)
    driver.end_batch()
    assert driver.operator.next_wakeup() is not None
    driver.end_batch(now=2000)
    assert driver.output.take() == ["idle", "active", 2]


def test_a_batch_job_asks_no_generator():
    class Forbidden(WatermarkGenerator):
        def on_event(self, event, event_timestamp, output):
            raise AssertionError

        on_periodic_emit = on_event

    strategy = custom(Forbidden)
    harness = OneInputOperatorHarness(TimestampsAndWatermarksOperator(strategy), batch_execution=True)
    harness.process_element(("a", 5))
    harness.end_batch()
    harness.process_watermark(7)
    harness.process_watermark(MAX_WATERMARK)
    assert harness.extract_output() == [(("a", 5), 5), MAX_WATERMARK]


def test_idleness_counts_from_the_start_if_no_record_ever_comes(assign):
    driver = assign(monotonous().with_idleness(Duration.of_millis(100)), now=1000)
    driver.end_batch()
    driver.end_batch(now=1101)
    assert driver.output.take() == ["idle"]


def test_idleness_survives_a_restore(assign):
    strategy = monotonous().with_idleness(Duration.of_millis(100))
    driver = assign(strategy, now=1000)
    driver.send(("a", 5))
    driver.end_batch()
    again = driver.restored(TimestampsAndWatermarksOperator(strategy))
    again.end_batch(now=1101)
    assert again.output.take() == ["idle"]


def test_a_generator_can_declare_idleness_itself(assign):
    class Sleepy(OnFlush):
        def on_event(self, event, event_timestamp, output):
            if event[0] == "sleep":
                output.mark_idle()
            elif event[0] == "flush":
                output.emit_watermark(Watermark(event_timestamp))

    driver = assign(custom(Sleepy))
    driver.send(("sleep", 1))
    driver.send(("flush", 2))
    assert driver.output.take() == [(("sleep", 1), 1), "idle", (("flush", 2), 2), "active", 2]


def test_every_split_has_its_own_generator(assign):
    driver = assign(monotonous())
    driver.send(("a", 100))
    driver.end_batch()
    driver.operator.restart()
    driver.send(("b", 5))
    driver.end_batch()
    assert [event for event in driver.output.take() if isinstance(event, int)] == [99, 4]
