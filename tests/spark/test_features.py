"""Which modes run on the installed Spark, and what a job is told that wants another one. No JVM."""

import pytest

from penstock.cli import doctor
from penstock.common import Configuration
from penstock.common.errors import InvalidProgramError
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.spark import features
from penstock.spark.features import SparkMode, missing_for


@pytest.fixture
def old_spark(monkeypatch):
    """A Spark that has barrier stages and no data sources in Python."""
    needs = {**features._NEEDS}
    for mode in (SparkMode.MICRO_BATCH, SparkMode.BATCH):
        needs[mode] = [("data sources in Python", lambda: False)]
    monkeypatch.setattr(features, "_NEEDS", needs)


def test_the_spark_of_these_tests_runs_all_modes():
    assert [missing_for(mode) for mode in SparkMode] == [[], [], []]
    assert str(doctor._modes()).split()[:2] == ["ok", "modes"]


def test_doctor_says_which_modes_work(old_spark):
    found = doctor._modes()
    assert (found.state, found.text.partition(";")[0]) == ("note", "continuous")
    assert "micro-batch needs data sources in Python" in found.text


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        (RuntimeExecutionMode.STREAMING, r"micro-batch mode on Spark .*penstock\.execution\.mode: continuous"),
        (RuntimeExecutionMode.BATCH, r"batch mode on Spark .*as a streaming job"),
    ],
)
def test_a_mode_that_this_spark_cannot_run_is_rejected_before_anything_starts(old_spark, mode, advice):
    env = StreamExecutionEnvironment(Configuration.from_dict({"execution.checkpointing.dir": "/nowhere/at/all"}))
    env.set_runtime_mode(mode)
    env.from_collection([1]).print()
    with pytest.raises(InvalidProgramError, match=rf"job 'wants' cannot run in {advice}"):
        env.execute("wants")


def test_a_spark_without_any_of_it_is_a_finding(monkeypatch):
    monkeypatch.setattr(features, "_NEEDS", {key: [("barrier stages in Python", lambda: False)] for key in SparkMode})
    assert doctor._modes().state == "missing"


def test_a_feature_of_a_module_that_is_missing_is_missing():
    assert not features._has("pyspark.no_such_module", "anything")()
    assert not features._has("pyspark", "no_such_name")()
