"""E18 and E19: who gets a record, and how many there are."""

import distribution as program
import pytest

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_e18_negative_numbers_meet_in_task_0(results, variant):
    found = results(program.custom_partitioner)
    assert sorted(number for _, number in found) == sorted(program.NUMBERS)
    assert {task for task, number in found if number < 0} == {0}
    assert all(task < variant.parallelism for task, _ in found)


def test_e18_the_others_go_everywhere_and_always_to_the_same_task():
    partition = program.NegativeFirst().partition
    tasks = [partition(number, 4) for number in range(100)]
    assert set(tasks) == {0, 1, 2, 3}
    assert tasks == [partition(number, 4) for number in range(100)]


def test_e19_default_twice_the_default_and_two(results, variant):
    expected = [(number, variant.parallelism, 2 * variant.parallelism, 2) for number in (1, 2, 3, 4)]
    assert results(program.parallelism) == expected
