"""Edges of a job's life on Spark; most rules are tested in this process, in tests/runtime/test_running_job.py."""

import threading

import pytest
from support import Script
from test_jobs import Count, FailFirst, Kept, all_counts, expected_counts
from test_savepoints import COUNT, KEYS, Commits, counting, environment

from penstock.cli.command_line import RunCommand
from penstock.cli.job_server import JobServer
from penstock.cli.main import main
from penstock.common import JobStatus, RestartStrategies, WatermarkStrategy
from penstock.common.errors import JobCancelledError, SavepointError
from penstock.datastream import RuntimeExecutionMode
from penstock.datastream.queryable_state import QueryableStateClient
from penstock.runtime.savepoint.manifest import verify

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

RECORDS = 1_200
QUERYABLE = {"queryable-state.enable": "true", "queryable-state.proxy.ports": "0"}


def parallelism_of(savepoint):
    return {operator.parallelism for operator in verify(savepoint).operators.values() if operator.is_keyed}


@pytest.mark.parametrize("checkpointed", [True, False], ids=["with a checkpoint directory", "without"])
def test_what_is_asked_for_while_a_job_is_rescaled_is_done_by_the_rescaled_job(
    checkpointed, spark, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    commits, saved_in = Commits(), str(tmp_path / "saved")
    env = environment(spark, **QUERYABLE)
    if checkpointed:
        env.get_checkpoint_config().set_checkpoint_storage((tmp_path / "checkpoint").as_uri())
    client = counting(env, commits, records=RECORDS)
    server, job_id = JobServer(RunCommand("job.py", [], [], "/")), str(client.get_job_id())
    server.follow(client)
    commits.wait_for(2)
    stopped, go_on, successor = threading.Event(), threading.Event(), client.job._successor

    def held_up(*arguments):
        stopped.set()
        assert go_on.wait(200)
        return successor(*arguments)

    client.job._successor = held_up
    rescaled = client.rescale(3)
    assert stopped.wait(200)
    client.job._successor = successor
    assert main(["status", job_id]) == 0
    assert "status    RESTARTING\n" in capsys.readouterr().out
    with QueryableStateClient("127.0.0.1", client.job.query_port) as queries:
        asked = queries.get_kv_state(client.get_job_id(), "count", 3, None, COUNT, uid="count")
        saved = client.trigger_savepoint(saved_in)
        again = client.rescale(1)
        codes = []
        command = threading.Thread(target=lambda: codes.append(main(["savepoint", job_id, saved_in])))
        command.start()
        while len(client.job.life.savepoints.names) < 3:  # until the command has asked, too
            command.join(0.01)
        assert not any(future.done() for future in (rescaled, asked, saved, again))
        go_on.set()
        rescaled.result(200)
        again.result(200)
        assert asked.result(200).value() >= 1
    command.join(200)
    assert codes == [0]
    commanded = capsys.readouterr().out.split("Path: ")[1].strip()
    assert [parallelism_of(path) for path in (saved.result(200), commanded)] == [{3}, {1}]
    client.get_job_execution_result().result(200)
    main(["cancel", job_id])
    assert "FINISHED" in "".join(capsys.readouterr())  # whether that is written down already or not
    server.close()
    assert all_counts(commits) == expected_counts(RECORDS, KEYS)


@pytest.mark.parametrize("patience", [3.0, 0.0], ids=["the batch is waited for", "the batch is not waited for"])
def test_a_job_that_is_cancelled_in_its_last_batch_has_finished_if_that_is_durable(
    patience, spark, tmp_path, monkeypatch
):
    monkeypatch.setattr("penstock.spark.job_query._CANCEL_SECONDS", patience)
    commits, held, go_on = Commits(), threading.Event(), threading.Event()

    def on_commit(checkpoint_id):
        Commits.on_commit(commits, checkpoint_id)
        if client.job._master.checkpoints.batch.end.is_last and not go_on.is_set():
            held.set()
            assert go_on.wait(200)

    commits.on_commit = on_commit
    env = environment(spark)
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    client = counting(env, commits, records=100)
    assert held.wait(200)
    cancelled = client.cancel()
    assert client.get_job_status().result() is JobStatus.CANCELLING
    go_on.set()
    cancelled.result(200)
    durable = client.job._master.checkpoints.storage.last_checkpoint() == max(commits)
    if durable:
        client.get_job_execution_result().result(200)
        assert client.get_job_status().result() is JobStatus.FINISHED
    else:
        assert patience == 0
        with pytest.raises(JobCancelledError):
            client.get_job_execution_result().result(200)
        assert client.get_job_status().result() is JobStatus.CANCELED
    env = environment(spark)
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    client = counting(env, commits, records=100)
    client.get_job_execution_result().result(200)
    assert all_counts(commits) == expected_counts(100, KEYS)


@pytest.mark.parametrize("patience", [3.0, 0.0], ids=["the batch is waited for", "the batch is not waited for"])
def test_a_job_that_is_cancelled_while_it_stops_with_a_savepoint_has_done_both_or_neither(
    patience, spark, tmp_path, monkeypatch
):
    monkeypatch.setattr("penstock.spark.job_query._CANCEL_SECONDS", patience)
    commits, held, go_on = Commits(), threading.Event(), threading.Event()

    def on_commit(checkpoint_id):
        Commits.on_commit(commits, checkpoint_id)
        if client.job._master.checkpoints.batch.header.savepoint is not None:
            held.set()
            assert go_on.wait(200)

    commits.on_commit = on_commit
    env = environment(spark)
    env.get_checkpoint_config().set_checkpoint_storage((tmp_path / "checkpoint").as_uri())
    client = counting(env, commits, records=RECORDS)
    commits.wait_for(1)
    stopped = client.stop_with_savepoint(False, str(tmp_path / "saved"))
    assert held.wait(200)
    client.cancel()
    go_on.set()
    result = client.get_job_execution_result()
    result.exception(200)
    if client.get_job_status().result() is JobStatus.FINISHED:
        assert result.exception() is None
        assert verify(stopped.result(200)).checkpoint_id == max(commits)
        assert client.job._master.checkpoints.storage.last_checkpoint() == max(commits)
    else:
        assert patience == 0
        assert isinstance(result.exception(), JobCancelledError)
        with pytest.raises(SavepointError, match=r"before its last batch was committed|has ended .CANCELED"):
            stopped.result(200)
        assert list((tmp_path / "saved").iterdir()) == []


def test_a_batch_job_that_is_cancelled_when_its_results_are_committed_has_finished(spark):
    commits, env = {}, environment(spark).set_runtime_mode(RuntimeExecutionMode.BATCH)
    client = None
    submitted = threading.Event()

    def on_commit(checkpoint_id):
        assert submitted.wait(200)
        client.cancel()

    env.from_sequence(1, 10).sink_to(Kept(commits, on_commit))
    client = env.execute_async("batch")
    submitted.set()
    client.get_job_execution_result().result(200)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert commits == {1: list(range(1, 11))}


def test_a_savepoint_that_is_asked_for_while_a_job_restarts_is_taken_when_it_runs_again(spark, tmp_path, job_states):
    commits, env, asked = Commits(), environment(spark), []
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    numbers = env.from_sequence(1, 400).uid("numbers").map(FailFirst(55, attempts=1))
    numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count").sink_to(Kept(commits, commits.on_commit))
    known = threading.Event()

    def ask(state):
        if state == "RESTARTING":
            assert known.wait(200)
            asked.append(client.trigger_savepoint(str(tmp_path)))

    job_states.on_change = ask
    client = commits.of(env.execute_async("restarted"))
    known.set()
    client.get_job_execution_result().result(200)
    (saved,) = asked
    verify(saved.result(200))
    assert job_states == ["INITIALIZING", "CREATED", "RUNNING", "RESTARTING", "RUNNING", "FINISHED"]
    assert all_counts(commits) == expected_counts(400, KEYS)


def test_an_idle_job_is_drained_once(spark, tmp_path):
    commits, env = Commits(), environment(spark)
    numbers = env.from_source(Script(range(40), bounded=False), WatermarkStrategy.no_watermarks(), "script")
    numbers.key_by(lambda n: n % KEYS).process(Count()).sink_to(Kept(commits, commits.on_commit))
    client = commits.of(env.execute_async("idle"))
    commits.wait_for(1)
    both = [client.stop_with_savepoint(True, str(tmp_path)) for _ in range(2)]
    path = both[0].result(200)
    assert verify(path).drained
    with pytest.raises(SavepointError, match=f"it was stopped with the savepoint {path}"):
        both[1].result(200)
    assert client.get_job_status().result() is JobStatus.FINISHED
