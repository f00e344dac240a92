"""GROUP BY on a harness: what comes out for what goes in, and against a model that works row by row."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.table import column_fields
from penstock.runtime.table.aggregates.numeric import AvgAggregate, CountAggregate, ExtremeAggregate, SumAggregate
from penstock.runtime.table.operators.group_agg import AggregateCall, GroupAggFunction
from penstock.testing.table_harness import TableOperatorHarness

INPUT = pa.schema([("k", pa.string()), ("v", pa.int64())])
LONG = pa.int64()


def group_by(calls, keys=(0,), **options):
    fields = [INPUT.field(index) for index in keys]
    fields += [pa.field(f"a{number}", call.aggregate.result_type) for number, call in enumerate(calls)]
    return GroupAggFunction(list(keys), calls, pa.schema(fields), **options)


def count(**options):
    return AggregateCall(CountAggregate(), [], **options)


def total(type_=LONG):
    return AggregateCall(SumAggregate(type_, type_), [1])


def harness(*calls, snapshot=None, batch_execution=False, **options):
    operator = group_by(list(calls), **options)
    return TableOperatorHarness(operator, INPUT, snapshot=snapshot, batch_execution=batch_execution)


def test_t50_the_first_row_inserts_and_later_ones_update():
    job = harness(total())
    job.process(("+I", "x", 2), ("+I", "y", 7), ("+I", "x", 5))
    assert job.take() == [("+I", "x", 2), ("+I", "y", 7), ("-U", "x", 2), ("+U", "x", 7)]


def test_t11_update_before_is_left_out_if_nothing_needs_it():
    job = harness(total(), emits_update_before=False)
    job.process(("+I", "x", 2), ("+I", "x", 5))
    assert job.take() == [("+I", "x", 2), ("+U", "x", 7)]


def test_t51_nothing_is_emitted_if_the_result_is_unchanged():
    job = harness(AggregateCall(ExtremeAggregate(LONG, largest=True), [1]))
    job.process(("+I", "p", 6), ("+I", "p", 2), ("+I", "p", None), ("+I", "q", None), ("+I", "p", 7))
    assert job.take() == [("+I", "p", 6), ("+I", "q", None), ("-U", "p", 6), ("+U", "p", 7)]


def test_t51_with_state_ttl_the_unchanged_pair_is_emitted():
    job = harness(AggregateCall(ExtremeAggregate(LONG, largest=True), [1]), always_emits=True)
    job.process(("+I", "p", 6), ("+I", "p", 2))
    assert job.take() == [("+I", "p", 6), ("-U", "p", 6), ("+U", "p", 6)]


@pytest.mark.parametrize("together", [True, False])
def test_t52_a_group_without_rows_is_deleted_and_begins_anew(together):
    job = harness(count(), total())
    rows = [("+I", "m", 1), ("-D", "m", 1), ("+I", "m", 4), ("+I", "m", 2)]
    for part in [rows] if together else [[row] for row in rows]:
        job.process(*part)
    assert job.take() == [
        ("+I", "m", 1, 1),
        ("-D", "m", 1, 1),
        ("+I", "m", 1, 4),
        ("-U", "m", 1, 4),
        ("+U", "m", 2, 6),
    ]


def test_t52_a_group_without_rows_has_no_state():
    job = harness(count())
    job.process(("+I", "m", 1), ("-D", "m", 1), ("+I", "n", 1))
    job.snapshot()
    assert list(job.context.keyed_backend.keys()) == ["n"]


def test_a_retraction_from_a_group_without_rows_is_ignored():
    job = harness(total())
    job.process(("-U", "m", 5), ("+U", "m", 7), ("-D", "n", 1))
    assert job.take() == [("+I", "m", 7)]


def test_t53_a_global_aggregate_is_deleted_with_its_last_row():
    job = harness(count(), keys=())
    job.process(("+I", "m", 1), ("-U", "m", 1), ("+U", "n", 1), ("-D", "n", 1))
    assert job.take() == [("+I", 1), ("-D", 1), ("+I", 1), ("-D", 1)]


def test_t54_aggregates_ignore_null():
    calls = [AggregateCall(CountAggregate(), [1]), total(), AggregateCall(AvgAggregate(LONG, LONG), [1])]
    job = harness(*calls)
    job.process(("+I", "k", None), ("+I", "k", 3), ("+I", "k", 4))
    last = job.take()[-1]
    assert last == ("+U", "k", 2, 7, 3)


def test_t54_sum_and_average_of_nothing_but_null_are_null():
    job = harness(AggregateCall(CountAggregate(), [1]), total(), AggregateCall(AvgAggregate(LONG, LONG), [1]))
    job.process(("+I", "k", None))
    assert job.take() == [("+I", "k", 0, None, None)]


def test_t30_sums_wrap_and_averages_are_cut_towards_zero():
    job = harness(total(), AggregateCall(AvgAggregate(LONG, LONG), [1]))
    job.process(("+I", "k", 2**63 - 1), ("+I", "k", 1), ("+I", "j", -4), ("+I", "j", -3))
    assert [row[2] for row in job.take() if row[:2] == ("+U", "k")] == [-(2**63)]
    job.process(("+I", "j", 0))
    assert job.take()[-1] == ("+U", "j", -7, -2)


def test_t18_mini_batch_emits_one_change_for_each_key_and_batch():
    job = harness(count(), total(), mini_batch=True)
    job.process(("+I", "x", 2), ("+I", "y", 7), ("+I", "x", 5))
    assert job.take() == [("+I", "x", 2, 7), ("+I", "y", 1, 7)]
    job.process(("-D", "x", 2), ("-D", "x", 5), ("+I", "x", 9), ("-D", "y", 7))
    assert job.take() == [("-U", "x", 2, 7), ("+U", "x", 1, 9), ("-D", "y", 1, 7)]


def test_t140_a_batch_job_emits_final_results_only():
    job = harness(count(), total(), batch_execution=True)
    job.process(("+I", "x", 2), ("+I", "y", 7))
    job.process(("+I", "x", 5))
    assert job.take() == []
    job.end_input()
    assert sorted(job.take()) == [("+I", "x", 2, 7), ("+I", "y", 1, 7)]


# -- against a model ------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", None])
VALUES = st.one_of(st.none(), st.integers(-5, 5))


class Model:
    """Row by row, with a list of values for each key."""

    def __init__(self):
        self.groups = {}

    @staticmethod
    def result(values):
        known = [value for value in values if value is not None]
        average = int(sum(known) / len(known)) if known else None
        return (len(values), len(known), sum(known) if known else None, average)

    def apply(self, kind, key, value):
        values = self.groups.get(key, [])
        old = self.result(values) if values else None
        if kind in ("+I", "+U"):
            values = [*values, value]
        elif value in values:
            values = list(values)
            values.remove(value)
        self.groups[key] = values
        new = self.result(values) if values else None
        if old is None:
            return [] if new is None else [("+I", key, *new)]
        if new is None:
            return [("-D", key, *old)]
        return [] if new == old else [("-U", key, *old), ("+U", key, *new)]


@st.composite
def changelogs(draw):
    """Rows that come, and some of them that go again."""
    held, rows = [], []
    for _ in range(draw(st.integers(0, 40))):
        if held and draw(st.integers(0, 2)) == 0:
            key, value = held.pop(draw(st.integers(0, len(held) - 1)))
            rows.append((draw(st.sampled_from(["-U", "-D"])), key, value))
        else:
            key, value = draw(KEYS), draw(VALUES)
            held.append((key, value))
            rows.append((draw(st.sampled_from(["+I", "+U"])), key, value))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@given(changelogs(), st.booleans())
def test_the_changelog_is_that_of_one_row_after_the_other(parts, with_numpy):
    calls = [count(), AggregateCall(CountAggregate(), [1]), total(), AggregateCall(AvgAggregate(LONG, LONG), [1])]
    model, snapshot = Model(), None
    with pytest.MonkeyPatch.context() as patch:
        if not with_numpy:
            patch.setattr(column_fields, "np", None)
        for rows in parts:
            job = harness(*calls, snapshot=snapshot)
            if rows:
                job.process(*rows)
            assert job.take() == [change for row in rows for change in model.apply(*row)]
            snapshot = job.snapshot()
