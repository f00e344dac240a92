"""How large batches become."""

from penstock.runtime.source.batch_sizer import (
    FIRST_BATCH_RECORDS,
    MAX_BATCH_RECORDS,
    MIN_BATCH_RECORDS,
    BatchSizer,
    StepSizer,
)


def test_a_fixed_size_stays():
    sizer = BatchSizer(10)
    for _ in range(5):
        sizer.observe(10, 0.01)
    assert sizer.limit == 10


def test_the_first_batches_teach_nothing():
    sizer = BatchSizer()
    sizer.observe(FIRST_BATCH_RECORDS, 60)
    sizer.observe(FIRST_BATCH_RECORDS, 60)
    assert sizer.limit == FIRST_BATCH_RECORDS


def test_sizes_stay_within_bounds():
    fast, slow = BatchSizer(), BatchSizer()
    for _ in range(40):
        fast.observe(fast.limit, 0.001)
        slow.observe(slow.limit, 100)
    assert fast.limit == MAX_BATCH_RECORDS
    assert slow.limit == MIN_BATCH_RECORDS


def test_a_batch_that_was_not_full_says_nothing():
    sizer = BatchSizer()
    for _ in range(5):
        sizer.observe(10, 30)
    assert sizer.limit == FIRST_BATCH_RECORDS


def run_batches(sizer, seconds_for, count=60):
    for _ in range(count):
        sizer.observe(sizer.limit, seconds_for(sizer.limit))
    return sizer.limit


def test_a_large_cost_per_batch_makes_batches_larger():
    assert run_batches(BatchSizer(), lambda size: 1.2 + size / 1_000_000) > 400_000


def test_a_size_that_brings_nothing_is_taken_back():
    # Twice the records, twice the time: nothing gained above the size that takes the target's time.
    assert run_batches(BatchSizer(), lambda size: size / 100_000) <= 200_000


def test_batches_that_take_far_too_long_become_smaller():
    sizer = BatchSizer()
    run_batches(sizer, lambda size: 0.1, 8)
    assert run_batches(sizer, lambda size: size / 20_000) <= 150_000


def test_steps_are_short_whether_a_record_takes_microseconds_or_milliseconds():
    for seconds_a_record in (1e-6, 1e-5, 1e-3, 5e-3):
        limit = run_batches(StepSizer(), lambda size, each=seconds_a_record: 0.002 + size * each)
        assert 0.02 < limit * seconds_a_record < 0.3
