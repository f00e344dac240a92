"""Whether a failed job is run again, in streaming and in batch mode alike; on Spark: test_restarts.py."""

import pytest

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.restart_strategy import RestartStrategies
from penstock.spark.restarts import Restarts
from penstock.spark.session import SparkEndedError
from penstock.spark.start_failures import WorkerStartError


def test_without_a_strategy_a_job_ends_with_its_first_failure():
    failure = JobExecutionError("broken")
    assert Restarts(None).pause_after(failure, committed=3) is None
    assert not hasattr(failure, "__notes__")


def test_the_last_failure_says_how_often_the_job_was_restarted():
    restarts = Restarts(RestartStrategies.fixed_delay_restart(2, 250))
    assert [restarts.pause_after(JobExecutionError("broken"), committed=None) for _ in range(2)] == [0.25, 0.25]
    last = JobExecutionError("broken")
    assert restarts.pause_after(last, committed=None) is None
    assert restarts.attempt == 2
    assert last.__notes__ == [
        "The job was restarted 2 times before. Restart with fixed delay (250 ms). #2 restart attempts."
    ]


@pytest.mark.parametrize("failure", [InvalidProgramError("wrong"), SparkEndedError("gone")], ids=repr)
def test_what_another_attempt_cannot_mend_is_not_tried_again(failure):
    restarts = Restarts(RestartStrategies.fixed_delay_restart(5, 0))
    assert restarts.pause_after(failure, committed=None) is None
    assert restarts.attempt == 0


def test_a_process_that_did_not_start_in_time_does_not_use_up_the_strategy():
    restarts = Restarts(RestartStrategies.fixed_delay_restart(1, 500))
    assert restarts.pause_after(WorkerStartError("too slow"), committed=1) == 1
    assert restarts.pause_after(JobExecutionError("broken"), committed=1) == 0.5
    assert restarts.attempt == 2


def test_a_machine_on_which_processes_do_not_start_is_left_alone_longer_and_longer():
    """Jobs that all start processes again and again would keep each other from ever getting there."""
    restarts = Restarts(RestartStrategies.fixed_delay_restart(10, 20))
    pauses = [restarts.pause_after(WorkerStartError("too slow"), committed=1) for _ in range(8)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert restarts.pause_after(WorkerStartError("too slow"), committed=2) == 1
