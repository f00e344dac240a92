"""E07: a job continues from its last checkpoint, and every number counts once."""

import fault_tolerance as program
import pytest

from penstock.common.errors import PenstockError
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster


def test_e07_a_job_continues_from_the_checkpoint_at_five():
    cluster = MiniCluster(max_records=5)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
    collected = program.even_odd_sums(env.from_collection(range(1, 11))).collect_async()
    sinks, settings = list(env.sinks), env.job_settings(None)

    crashed = cluster.start(sinks, settings)
    crashed.run_batch()
    checkpoint = crashed.snapshot()
    (at,) = [at for splits in crashed.offset.splits.values() for at in splits.values()]
    first = _taken(collected)
    assert at.offset == 5
    assert max(first["even"]) == (4, 6)
    assert max(first["odd"]) == (5, 9)

    recovered = cluster.start(sinks, settings, snapshot=checkpoint)
    recovered.run_to_end()
    assert _taken(collected) == {"even": [(6, 12), (8, 20), (10, 30)], "odd": [(7, 16), (9, 25)]}


def _taken(collected):
    """What was committed since the last time: number and sum, by key."""
    found = {"even": [], "odd": []}
    while not collected._records.empty():
        for key, number, total in collected._records.get():
            found[key].append((number, total))
    return found


def test_e07_the_crash_is_one():
    env = StreamExecutionEnvironment(executor=MiniCluster())
    program.even_odd_with_crash(env).print()
    with pytest.raises(PenstockError, match="crash at 7, as planned"):
        env.execute()
