"""GROUP BY in columns, end to end: exchange, pages, commits, savepoints, another parallelism."""

import queue

import pytest
from tests.runtime.table.table_jobs import final_table, sums_by_key

from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import ManualClock, MiniCluster

ROWS = [(f"key {n * n % 37}", n) for n in range(300)]


def expected(rows):
    sums = {}
    for key, value in rows:
        total, count = sums.get(key, (0, 0))
        sums[key] = (total + value, count + 1)
    return sorted((key, *sums[key]) for key in sums)


def collected(sink):
    rows = []
    while True:
        try:
            rows += sink.records.get_nowait()
        except (queue.Empty, TypeError):
            return rows


@pytest.mark.variants(modes=("STREAMING", "BATCH"))
@pytest.mark.on_spark((2, "STREAMING"), (2, "BATCH"))
def test_sums_by_key_on_every_executor(env_factory, variant):
    env = env_factory()
    sink = sums_by_key(env, ROWS)
    env.execute()
    changelog = collected(sink)
    assert final_table(changelog) == expected(ROWS)
    changes = len(expected(ROWS)) if variant.is_batch else 2 * len(ROWS) - len(expected(ROWS))
    assert len(changelog) == changes


@pytest.mark.parametrize("parallelism", [1, 3, 4])
def test_state_goes_on_from_a_savepoint_at_another_parallelism(tmp_path, parallelism):
    cluster = MiniCluster(clock=ManualClock(0), max_records=100)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
    sink = sums_by_key(env, ROWS)
    job = cluster.start(list(env.sinks), env.job_settings(None))
    job.run_batch()
    path = job.stop_with_savepoint(str(tmp_path))
    changelog = collected(sink)
    assert len(changelog) < 2 * len(ROWS) - 37

    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
    sink = sums_by_key(env, ROWS)
    job = cluster.start(list(env.sinks), env.job_settings(None), savepoint=path)
    job.run()
    changelog += collected(sink)
    assert final_table(changelog) == expected(ROWS)
