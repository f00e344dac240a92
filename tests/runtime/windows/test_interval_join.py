import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_driver import WindowDriver
from window_helpers import key_of

from penstock.common.errors import InvalidProgramError, MissingTimestampError, UserFunctionError
from penstock.core.functions import MapFunction, ProcessJoinFunction
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.interval_join import IntervalJoinOperator

HOUR, MINUTE = 3_600_000, 60_000
LEFT, RIGHT = OutputTag("late-left"), OutputTag("late-right")


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


def interval_join(lower, upper, function=None, **options):
    operator = IntervalJoinOperator(function or Pair(), key_of, key_of, lower, upper, **options)
    return WindowDriver(operator, tags=[LEFT.tag_id, RIGHT.tag_id, "extra"])


def test_the_books_bounds():
    driver = interval_join(-HOUR, 15 * MINUTE).send((("k", "A"), HOUR))
    times = {"on lower": 0, "below": -1, "on upper": 75 * MINUTE, "above": 75 * MINUTE + 1}
    driver.send2(*[(("k", name), time) for name, time in times.items()])
    assert driver.results() == [("A", "on lower"), ("A", "on upper")]


def test_exclusive_bounds():
    driver = interval_join(-5, 5, lower_inclusive=False, upper_inclusive=False).send((("k", "A"), 10))
    driver.send2(*[(("k", time), time) for time in (5, 6, 14, 15)])
    assert driver.results() == [("A", 6), ("A", 14)]


@pytest.mark.parametrize(("lower", "upper", "matches"), [(10, 20, [30, 40]), (-20, -10, [0, 10]), (0, 0, [20])])
def test_bounds_of_any_sign(lower, upper, matches):
    for left_first in (True, False):
        driver = interval_join(lower, upper)
        left, right = (("k", "A"), 20), [(("k", time), time) for time in range(0, 50, 10)]
        if left_first:
            driver.send(left).send2(*right)
        else:
            driver.send2(*right).send(left)
        assert driver.results() == [("A", time) for time in matches]


def test_pairs_go_out_at_once_with_the_larger_timestamp():
    driver = interval_join(-5, 5).send((("k", "A"), 10)).send2((("k", "B"), 7))
    assert driver.take() == [(("A", "B"), 10)]
    assert driver.send2((("k", "C"), 12)).take() == [(("A", "C"), 12)]


def test_only_equal_keys_join():
    assert interval_join(-5, 5).send((("k", "A"), 10)).send2((("x", "B"), 10)).results() == []


def test_the_context_knows_both_timestamps():
    class Times(ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            ctx.output(OutputTag("extra"), "side")
            yield ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()

    driver = interval_join(-5, 5, Times()).send((("k", "A"), 10)).send2((("k", "B"), 7))
    assert driver.take() == [((10, 7, 10), 10)]
    assert driver.side("extra") == [("side", 10)]


def test_elements_behind_the_watermark_are_dropped_and_counted():
    driver = interval_join(-5, 5).advance(10).send((("k", 1), 9), (("k", 2), 10)).send2((("k", 3), 9), (("k", 4), 10))
    assert driver.results() == [(2, 4)]
    assert driver.dropped == 2


def test_late_elements_of_each_side_have_a_side_output():
    driver = interval_join(-5, 5, left_late_tag=LEFT, right_late_tag=RIGHT).advance(10)
    driver.send((("k", 1), 9)).send2((("k", 2), 8))
    assert driver.side("late-left") == [(("k", 1), 9)]
    assert driver.side("late-right") == [(("k", 2), 8)]
    assert driver.dropped == 0


@pytest.mark.parametrize(
    ("lower", "upper", "left_until", "right_until"),
    [(-10, 20, 120, 110), (5, 20, 120, 96), (-20, -5, 96, 120), (0, 0, 100, 100)],
)
def test_each_side_is_kept_exactly_as_long_as_it_may_match(lower, upper, left_until, right_until):
    for send, until in (("send", left_until), ("send2", right_until)):
        driver = interval_join(lower, upper)
        getattr(driver, send)((("k", "A"), 100))
        assert driver.advance(until - 1).restart().stored_keys == 1
        assert driver.advance(until).stored_keys == 0


def test_buffers_survive_a_restart():
    driver = interval_join(-5, 5).send((("k", "A"), 10)).restart().send2((("k", "B"), 12)).restart()
    assert driver.send((("k", "C"), 12)).results() == [("A", "B"), ("C", "B")]


def test_plain_functions_do():
    driver = interval_join(-5, 5, lambda left, right, ctx: [left[1] + right[1]])
    assert driver.send((("k", 1), 1)).send2((("k", 2), 2)).results() == [3]


def test_records_need_timestamps():
    with pytest.raises(MissingTimestampError):
        interval_join(-5, 5).send_bare(("k", 1))


def test_errors_name_the_record():
    driver = interval_join(-5, 5, lambda left, right, ctx: 1 / 0).send((("k", 1), 1))
    with pytest.raises(UserFunctionError, match=r"(?s)process_element.*\('k', 2\).*ZeroDivisionError"):
        driver.send2((("k", 2), 2))


class Wrong(MapFunction):
    def map(self, value):
        return value


@pytest.mark.parametrize(
    "define",
    [
        lambda: interval_join(5, -5),
        lambda: interval_join(0, 0, lower_inclusive=False),
        lambda: interval_join(0, 1, lower_inclusive=False, upper_inclusive=False),
        lambda: interval_join(-5, 5, Wrong()),
        lambda: interval_join(-5, 5, 7),
    ],
)
def test_wrong_definitions_are_refused(define):
    with pytest.raises(InvalidProgramError):
        define()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["left", "right", "left", "right", "watermark", "restart"]),
        st.integers(0, 1),
        st.integers(0, 30),
    ),
    max_size=40,
)


@settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(st.integers(-12, 12), st.integers(0, 12), EVENTS)
def test_all_pairs_within_the_bounds_and_no_other(lower, width, events):
    """Against the definition: every pair that is in time, and whose first element was still needed."""
    upper = lower + width
    driver = interval_join(lower, upper)
    kept, expected, watermark, late = {"left": [], "right": []}, [], -(2**63), 0
    for number, (kind, key, time) in enumerate(events):
        if kind == "watermark":
            watermark = max(watermark, time)
            driver.advance(watermark)
            # Flink's rule: an element goes when the watermark reaches its time plus what the other side may lag.
            kept["left"] = [e for e in kept["left"] if e[2] + max(upper, 0) > watermark]
            kept["right"] = [e for e in kept["right"] if e[2] + max(-lower, 0) > watermark]
        elif kind == "restart":
            driver.restart()
        elif time < watermark:
            late += 1
            (driver.send if kind == "left" else driver.send2)(((key, number), time))
        else:
            (driver.send if kind == "left" else driver.send2)(((key, number), time))
            kept[kind].append((key, number, time))
            for other in kept["right" if kind == "left" else "left"]:
                left, right = ((key, number, time), other) if kind == "left" else (other, (key, number, time))
                if left[0] == right[0] and left[2] + lower <= right[2] <= left[2] + upper:
                    expected.append(((left[1], right[1]), max(left[2], right[2])))
    assert sorted(driver.take()) == sorted(expected)
    assert driver.dropped == late
    driver.advance(2**63 - 1)
    assert driver.stored_keys == 0
