"""Results do not depend on how the input is cut into micro-batches, nor on the parallelism (rules 1.1, 2.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.differential import programs

from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

pytestmark = pytest.mark.exhaustive

RECORDS = len(programs.READINGS)

# Between parallel tasks the order of records is free, and these programs look at it.
BY_ARRIVAL_ORDER = {
    "tumbling_count",
    "sliding_count",
    "count_trigger_on_time_window",
    "purging_count_trigger",
}
# Its timers read state that later records change: what they see depends on when the watermark comes.
DETERMINISTIC = [program for program in programs.PROGRAMS if program is not programs.timers_and_state]


def results(program: Callable[[Any], Any], parallelism: int, batches: int) -> Counter[str]:
    cluster = MiniCluster(max_records=-(-RECORDS // batches), cold=batches == 7)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
    with program(env).execute_and_collect() as records:
        return Counter(str(record) for record in records)


@pytest.mark.parametrize("program", DETERMINISTIC, ids=lambda program: program.__name__)
def test_results_do_not_depend_on_batch_cuts_or_parallelism(program: Callable[[Any], Any]) -> None:
    expected = results(program, parallelism=1, batches=1)
    assert expected
    for parallelism in (1, 2, 4):
        if parallelism > 1 and program.__name__ in BY_ARRIVAL_ORDER:
            continue
        for batches in (1, 7, 100):
            if (parallelism, batches) == (1, 1):
                continue
            assert results(program, parallelism, batches) == expected, (parallelism, batches)
