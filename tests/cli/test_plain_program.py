"""`python job.py` without any command of ours."""

import json
import os
import subprocess
import sys

import pytest

from penstock.cli.job_records import JobRecords

PROGRAM = """
import json, sys
from penstock.cli.job_records import JobRecords
from penstock.common import Configuration
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
settings = Configuration().set_string("metrics.reporters", "log")
settings.set_string("metrics.reporter.log.factory.class", "log")
env = StreamExecutionEnvironment.get_execution_environment(settings)
env.set_parallelism(1)
env.from_sequence(1, 10).map(lambda n: n).sink_to(DiscardingSink())
client = env.execute_async("a plain program")
print(json.dumps([record.name for record in JobRecords().all()]))
client.get_job_execution_result().result()
"""


@pytest.mark.spark
def test_o11_a_plain_python_program_is_listed_and_archived(tmp_path):
    program = tmp_path / "job.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "PENSTOCK_JOBS": str(tmp_path / "jobs"), "PENSTOCK_LISTED": "true"}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout.splitlines()[-1]) == ["a plain program"]
    records = JobRecords(tmp_path / "jobs")
    (record,) = records.all()
    assert (record.status, record.program) == ("FINISHED", str(program))
    assert (records.archive / record.job_id).exists()
