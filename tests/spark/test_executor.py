"""What an embedded Spark is started with; no Spark is needed to see it."""

import os
import sys
from types import SimpleNamespace

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.spark import executor, session


@pytest.fixture
def asked(monkeypatch):
    """The settings that Spark was started with."""
    found = {}
    monkeypatch.setattr(executor, "running_session", lambda: None)
    monkeypatch.setattr(executor, "build_session", lambda **settings: found.update(settings))
    return found


def test_the_python_executable_of_the_environment_is_that_of_the_workers(asked, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "before")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "before")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable("/opt/python/bin/python3")
    executor.embedded_session(env.job_settings(None))
    assert asked["conf"]["spark.pyspark.python"] == "/opt/python/bin/python3"
    session._choose_python(asked["master"], asked["conf"])  # the rest of the start needs a JVM
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python/bin/python3"
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_workers_run_the_python_of_the_program_unless_told_otherwise(asked, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "of some other project")
    executor.embedded_session(StreamExecutionEnvironment.get_execution_environment().job_settings(None))
    session._choose_python(asked["master"], asked["conf"])
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_spark_that_was_killed_is_cleaned_up_before_the_next_one_starts(monkeypatch):
    ended, stopped = SimpleNamespace(session="a session", jvm=SimpleNamespace(running=False)), []

    def stop(spark):
        stopped.append(spark)
        session._embedded = None

    monkeypatch.setattr(session, "_embedded", ended)
    monkeypatch.setattr(session, "stop_session", stop)
    assert session.running_session() is None
    assert stopped == ["a session"]
    monkeypatch.setattr(session, "_embedded", SimpleNamespace(session="alive", jvm=SimpleNamespace(running=True)))
    assert session.running_session() == "alive"
