"""``penstock replay`` of a job that ran on Spark: plan and state come from its checkpoint directory."""

import pytest

from penstock.cli.job_records import JobRecords
from penstock.cli.main import main

pytestmark = pytest.mark.spark

JOB = """
import sys
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()

env = StreamExecutionEnvironment.get_execution_environment()
env.get_checkpoint_config().set_checkpoint_storage(sys.argv[1])
counts = env.from_sequence(1, 100).key_by(lambda n: n % 3).process(Count()).uid("count").name("counting")
counts.key_by(lambda pair: pair[1] % 2).map(lambda pair: pair).name("two").uid("two").print()
env.execute("counts")
"""


@pytest.fixture
def job(spark, tmp_path, monkeypatch, capsys):
    """A job that has ended, with checkpoints of 20 records each."""
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    program = tmp_path / "job.py"
    program.write_text(JOB)
    line = ["run", "-p", "2", "-D", "penstock.batch.max-records=20", str(program), (tmp_path / "checkpoint").as_uri()]
    assert main(line) == 0
    capsys.readouterr()
    (record,) = JobRecords().all()
    return record.job_id[:8]


def test_a_checkpoint_is_replayed_with_its_records_and_its_state(job, capsys):
    assert main(["replay", job, "3", "--operator", "count", "--key", "0"]) == 0
    shown = capsys.readouterr().out
    assert "checkpoint 3 of job 'counts' (committed)" in shown
    lines = [line.split() for line in shown.splitlines()]
    before, after = (int(line[-1]) for line in lines if line[0] in {"before", "after"})
    results = [line[-1].rstrip(")") for line in lines if line[0] == "out"]
    assert [int(result) for result in results] == list(range(before + 1, after + 1))
    assert 5 < after - before < 9
    assert before > 0
    assert main(["replay", job, "99"]) == 1
    assert "checkpoint 99 is not kept" in capsys.readouterr().err
