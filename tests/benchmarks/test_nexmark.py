"""Every Nexmark query gives what SQL over the same events gives."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from benchmarks.harness.options import Workload
from benchmarks.harness.program import load_builder
from benchmarks.jobs.catalogue import JOBS, NEXMARK
from benchmarks.nexmark import generator
from benchmarks.nexmark.reference import answer, tables

from penstock.core.sink import Committer, Sink, SinkWriter
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import ManualClock, MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster

RECORDS = 4_000
EVENTS_PER_SECOND = 40  # 100 seconds of event time: many windows


@pytest.fixture(scope="module")
def events():
    return tables(RECORDS, EVENTS_PER_SECOND)


def run(query, parallelism, max_records, cluster=MiniCluster):
    env = StreamExecutionEnvironment(executor=cluster(max_records=max_records))
    env.set_parallelism(parallelism)
    load = Workload(RECORDS, 0, parallelism, EVENTS_PER_SECOND)
    with load_builder(JOBS[query], "penstock")(env, load).execute_and_collect() as results:
        return list(results)


def as_multiset(rows):
    # Averages: SQL adds in another order.
    return Counter(tuple(round(field, 6) if isinstance(field, float) else field for field in row) for row in rows)


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("query", [name for name in NEXMARK if name != "q12"])
def test_query_agrees_with_sql(query, parallelism, events):
    expected = as_multiset(answer(query.removesuffix("_co_group"), events))
    assert len(expected) > 4, "too few results to show anything"
    assert as_multiset(run(query, parallelism, max_records=500)) == expected


@pytest.mark.parametrize("query", [name for name in NEXMARK if name != "q12"])
def test_query_agrees_with_sql_in_the_continuous_mode(query, events):
    expected = as_multiset(answer(query.removesuffix("_co_group"), events))
    assert as_multiset(run(query, 2, 500, ContinuousCluster)) == expected


class Kept(Sink):
    """Keeps what a job wrote in the test's own list."""

    def __init__(self, rows):
        self.rows = rows

    def create_writer(self, context):
        return _Writer()

    def create_committer(self):
        rows = self.rows

        class Keep(Committer):
            def commit(self, committables, checkpoint_id):
                rows.extend(committables)

        return Keep()


class _Writer(SinkWriter):
    def __init__(self):
        self.rows = []

    def write(self, value, context):
        self.rows.append(value)

    def prepare_commit(self):
        rows, self.rows = self.rows, []
        return rows


@pytest.mark.parametrize("cluster", [MiniCluster, ContinuousCluster])
def test_q12_counts_bids_by_the_moment_they_arrive(cluster, events):
    """Batches of 200 events arrive 4 seconds apart; windows that are still open when the stream ends are dropped."""
    clock, rows = ManualClock(0), []
    env = StreamExecutionEnvironment(executor=cluster(clock=clock, max_records=200)).set_parallelism(1)
    load_builder(JOBS["q12"], "penstock")(env, Workload(RECORDS, 0, 1, EVENTS_PER_SECOND)).sink_to(Kept(rows))
    job = env._executor.start(list(env.sinks), env.job_settings("q12"))
    while not job.finished:
        assert job.run_batch()
        last = clock.now
        clock.advance(4_000)
    job.close()
    arrival = {"place": list(range(RECORDS)), "arrived": [place // 200 * 4_000 for place in range(RECORDS)]}
    expected = answer("q12", {**events, "arrival": pa.table(arrival)})
    assert len({row[1] for row in expected}) == 8
    assert as_multiset(rows) == as_multiset(row for row in expected if row[2] <= last)


def test_an_event_is_the_same_whoever_makes_it():
    assert generator.person(50, 100) == (1001, "Paul Walton", "Paul@Walton.com", "7988593791193335", "Kent", "AZ", 500)
    assert generator.auction(51, 100) == (1003, "item 1003", "lot 21944", 1799, 41149502, 510, 33335, 1000, 14)
    assert generator.draw(1, 2) == 5481441545463645266


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_are_bids():
    kinds = Counter(
        (generator.is_person(place), generator.is_auction(place), generator.is_bid(place)) for place in range(5_000)
    )
    assert kinds == {(True, False, False): 100, (False, True, False): 300, (False, False, True): 4_600}


def test_bids_and_auctions_name_only_those_who_came_before(events):
    began = {row["id"]: row["place"] for row in events["auction"].to_pylist()}
    came = {row["id"]: row["place"] for row in events["person"].to_pylist()}
    assert len(began) == 240
    assert len(came) == 80
    for row in events["bid"].to_pylist():
        assert began[row["auction"]] < row["place"]
        assert came[row["bidder"]] < row["place"]
    for row in events["auction"].to_pylist():
        assert came[row["seller"]] < row["place"]
        assert row["time"] < row["expires"]


def test_half_of_the_bids_go_to_hot_auctions_and_some_come_too_late(events):
    expires = {row["id"]: row["expires"] for row in events["auction"].to_pylist()}
    rows = events["bid"].to_pylist()
    hot = sum(row["auction"] % generator.HOT_EVERY == 0 for row in rows)
    late = sum(row["time"] > expires[row["auction"]] for row in rows)
    assert 0.45 < hot / len(rows) < 0.6
    assert 0.02 < late / len(rows) < 0.5
