import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_driver import WindowDriver
from window_helpers import key_of

from penstock.common.errors import InvalidProgramError, MissingTimestampError, UserFunctionError
from penstock.core.functions import MapFunction, ProcessJoinFunction
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.interval_join import IntervalJoinOperator
from penstock.testing import KeyedTwoInputOperatorHarness

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


def buffered(driver, slot):
    """The timestamps that one side holds for the key."""
    backend = driver.operator.backend
    backend.set_current_key("k")
    side = backend.entry[slot]
    backend.clear_current_key()
    return [] if side is None else list(side[0])


@pytest.mark.parametrize(
    ("lower", "upper", "inclusive", "left", "right"),
    [
        (-1, 0, True, [[2, 3, 4, 5], [5], []], [[1, 2, 3, 4, 5], [4, 5], []]),
        (-2, 1, False, [[2, 3, 4, 5], [5], []], [[1, 2, 3, 4, 5], [4, 5], []]),
        (0, 1, True, [[1, 2, 3, 4, 5], [4, 5], []], [[2, 3, 4, 5], [5], []]),
        (-1, 2, False, [[1, 2, 3, 4, 5], [4, 5], []], [[2, 3, 4, 5], [5], []]),
    ],
)
def test_a_watermark_removes_what_nothing_can_match_any_more(lower, upper, inclusive, left, right):
    driver = interval_join(lower, upper, lower_inclusive=inclusive, upper_inclusive=inclusive)
    elements = [(("k", time), time) for time in range(1, 6)]
    driver.send(*elements).send2(*elements)
    operator = driver.operator
    for step, watermark in enumerate((1, 4, 6)):
        driver.advance(watermark)
        assert buffered(driver, operator._left) == left[step]
        assert buffered(driver, operator._right) == right[step]


def test_a_late_element_is_not_joined_again():
    driver = interval_join(-1, 1)
    for time in (1, 2, 3):
        driver.send((("k", time), time)).send2((("k", time), time))
    driver.advance(3).send((("k", 1), 1))
    for time in (4, 5):
        driver.send((("k", time), time)).send2((("k", time), time))
    near = [(left, right) for left in range(1, 6) for right in range(1, 6) if abs(left - right) <= 1]
    assert sorted(driver.results()) == near
    assert driver.dropped == 1


@pytest.mark.parametrize("side", ["left", "right"])
def test_records_of_either_side_need_timestamps(side):
    harness = KeyedTwoInputOperatorHarness(IntervalJoinOperator(Pair(), key_of, key_of, 0, 0))
    process = harness.process_element1 if side == "left" else harness.process_element2
    with pytest.raises(MissingTimestampError):
        process(("k", 1))
