"""A program with changed types on its own checkpoint directory: rejected with an error, or continued with its state.

Details of what fits are in tests/runtime/state.
"""

import json
import subprocess
import threading

import pytest
from counting_job import KEYS
from processes import start
from test_jobs import Count, Kept, all_counts, expected_counts

from penstock.common import Configuration, RestartStrategies, Types
from penstock.common.errors import InvalidProgramError, SavepointError
from penstock.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

RECORDS = 240


def program(spark, directory, commits, selector, key_type=None, *, uid="count", max_parallelism=None, on_commit=None):
    settings = Configuration.from_dict({"penstock.batch.max-records": "20"})
    env = StreamExecutionEnvironment(settings, spark=spark).set_parallelism(2)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000, 0))
    env.get_checkpoint_config().set_checkpoint_storage(directory.as_uri())
    counted = env.from_sequence(1, RECORDS).uid("numbers").key_by(selector, key_type=key_type).process(Count())
    if max_parallelism is not None:
        counted.set_max_parallelism(max_parallelism)
    counted.uid(uid).sink_to(Kept(commits, on_commit or (lambda checkpoint: None))).uid("kept")
    return env.execute_async("count")


def number(n):
    return n % 3


def text(n):
    return str(n % 3)


def test_a_checkpoint_is_not_continued_without_its_state(spark, tmp_path):
    commits, second = {}, threading.Event()
    client = program(
        spark, tmp_path, commits, number, Types.INT(), on_commit=lambda checkpoint: checkpoint >= 2 and second.set()
    )
    assert second.wait(200)
    client.cancel().result(200)
    before = dict(commits)

    def refused(error, message, selector, *more, **options):
        client = program(spark, tmp_path, commits, selector, *more, **options)
        with pytest.raises(error, match=message):
            client.get_job_execution_result().result(200)
        assert client.job.progress.restarts == 0
        assert commits == before

    refused(InvalidProgramError, "had another key type .*: INT cannot become STRING", text, Types.STRING())
    refused(InvalidProgramError, "a key of operator 'KeyedProcess' is a str, and was a number when", text)
    refused(SavepointError, "had max parallelism 128 .* this job sets 64.*set 128", number, max_parallelism=64)
    refused(InvalidProgramError, "has state of operator 'KeyedProcess' in stage 1, which this job", number, uid="other")
    program(spark, tmp_path, commits, number, Types.LONG()).get_job_execution_result().result(200)
    assert all_counts(commits) == expected_counts(RECORDS, 3)


@pytest.mark.timeout(1200)
def test_a_class_of_the_program_may_get_a_field_with_a_default_and_not_without(tmp_path):
    output = tmp_path / "output"
    output.mkdir()

    def run(version):
        process = start(
            "evolving_job.py", version, tmp_path / "checkpoint", output, 700,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        said, errors = process.communicate(timeout=350)
        return said.strip(), errors

    said, errors = run("first")
    assert said == "stopped", errors
    written = {path.name for path in output.iterdir()}
    said, errors = run("field without a default")
    assert said == ""
    assert "class Tally in the state of operator 'KeyedProcess' that do not fit the current class" in errors
    assert "it has the new field 'unit'. Give the field a default" in errors
    assert {path.name for path in output.iterdir()} == written
    said, errors = run("field added")
    assert said == "finished", errors
    found = [tuple(each) for path in output.iterdir() for each in json.loads(path.read_text())]
    assert sorted((key, count) for key, count, _ in found) == expected_counts(700, KEYS)
    newer = [
        tuple(each) for path in output.iterdir() if path.name not in written for each in json.loads(path.read_text())
    ]
    assert {unit for *_, unit in newer} == {"records"}
