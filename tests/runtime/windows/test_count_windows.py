import pytest
from window_helpers import Contents, Sum, at, windows

from penstock.common.errors import InvalidProgramError
from penstock.core.functions import AggregateFunction, ProcessWindowFunction
from penstock.core.window import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from penstock.runtime.windows.builder import count_window_parts


def count_window(size, slide=0, **definition):
    assigner, trigger, evictor = count_window_parts(size, slide)
    return windows(assigner, definition.pop("function", Contents()), trigger=trigger, evictor=evictor, **definition)


def numbers(count):
    return at(*[(number, number) for number in range(1, count + 1)])


def test_tumbling_count_windows_fire_when_they_are_full():
    driver = count_window(4).send(*numbers(6)).restart().send(*numbers(3)).advance(1000)
    assert driver.results() == [[1, 2, 3, 4], [5, 6, 1, 2]]


def test_sliding_count_windows_fire_every_slide_with_the_last_elements():
    driver = count_window(4, 3).send(*numbers(7)).restart().send(*numbers(2))
    assert driver.results() == [[1, 2, 3], [3, 4, 5, 6], [6, 7, 1, 2]]


class Listed(AggregateFunction):
    """Accumulators that change in place, and show the order of elements."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        acc_a.extend(acc_b)
        return acc_a


class CannotMerge(Listed):
    def merge(self, acc_a, acc_b):
        raise NotImplementedError


def joined(left, right):
    return left[0], left[1] + right[1]


class OneResult(ProcessWindowFunction):
    def process(self, key, context, elements):
        (result,) = elements
        yield key, result


FUNCTIONS = {
    "process": (lambda: {"function": Contents()}, lambda found: found),
    "aggregate": (lambda: {"function": None, "aggregate_function": Listed()}, lambda found: found),
    "aggregate without merge": (lambda: {"function": None, "aggregate_function": CannotMerge()}, lambda found: found),
    "aggregate and process": (
        lambda: {"function": OneResult(), "aggregate_function": Listed()},
        lambda found: found[1],
    ),
    "reduce": (lambda: {"function": None, "reduce_function": joined}, lambda found: list(found[1])),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize(("size", "slide"), [(1, 1), (4, 1), (4, 2), (4, 3), (4, 4), (5, 2), (9, 6), (2, 5), (12, 5)])
def test_sliding_count_windows_have_the_last_elements_whatever_the_function(kind, size, slide):
    definition, shown = FUNCTIONS[kind]
    driver = count_window(size, slide, **definition())
    sent = [(number,) if kind == "reduce" else number for number in range(1, 41)]
    for position, number in enumerate(sent):
        driver.send((("a", number), 0), (("b", number), 0))
        if position in (3, 4, 17):
            driver.restart()
    numbers = list(range(1, 41))
    expected = [numbers[max(0, end - size) : end] for end in range(slide, 41, slide)]
    assert [shown(found) for found in driver.results()] == [found for found in expected for _ in "ab"]


def test_what_is_kept_of_sliding_count_windows_does_not_grow():
    for definition in ({"function": None, "aggregate_function": Sum()}, {"function": Contents()}):
        driver = count_window(10, 2, **definition)
        sizes = set()
        for _ in range(20):
            driver.send(*numbers(50)).restart()
            sizes.add(sum(map(len, driver.store.blobs.values())) // 32)
        assert len(sizes) <= 2


def test_each_key_counts_for_itself():
    driver = count_window(2).send((("red", 1), 0), (("blue", 2), 0), (("red", 3), 0), (("blue", 4), 0))
    assert driver.results() == [[1, 3], [2, 4]]


def test_incremental_functions_on_count_windows():
    assert count_window(3, aggregate_function=Sum(), function=None).send(*numbers(7)).results() == [6, 15]
    assert count_window(3, 2, aggregate_function=Sum(), function=None).send(*numbers(6)).results() == [3, 9, 15]


def test_results_of_count_windows_are_at_the_end_of_time():
    assert count_window(1).send(*numbers(1)).take() == [([1], 2**63 - 1)]


def test_pyflinks_tumbling_assigner_keeps_nothing_of_full_windows():
    driver = windows(CountTumblingWindowAssigner.of(2), Contents()).send(*numbers(5))
    assert driver.results() == [[1, 2], [3, 4]]
    assert driver.restart().send(*numbers(1)).results() == [[5, 1]]
    assert len(driver.backend.entries["a"][driver.operator.slot] or ()) == 0


def test_pyflinks_sliding_assigner_computes_full_windows_only():
    driver = windows(CountSlidingWindowAssigner.of(4, 3), Contents()).send(*numbers(9))
    assert driver.results() == [[1, 2, 3, 4], [4, 5, 6, 7]]


@pytest.mark.parametrize("arguments", [(0,), (-1,), (2, -1), (1.5,), (2, 0.5)])
def test_wrong_counts_are_refused(arguments):
    with pytest.raises(InvalidProgramError):
        count_window_parts(*arguments)
