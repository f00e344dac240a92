"""A JVM that is starved, and one that is gone: without a JVM, any process will do."""

import logging
import signal
import subprocess
import sys
from collections import deque
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from penstock.common.errors import JobExecutionError
from penstock.spark import gateway, session
from penstock.spark.gateway import JvmProcess, is_starved
from penstock.spark.session import SparkEndedError, failure_of


@pytest.fixture
def jvm():
    made = JvmProcess.__new__(JvmProcess)
    made.output_tail = deque(["the last word"])
    made._drain = None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as made._process:
        yield made
        made._process.kill()


def test_a_jvm_that_was_killed_says_so_without_the_words_of_its_orphans(jvm, monkeypatch):
    monkeypatch.setattr(gateway, "_DYING_SECONDS", 0.01)
    assert jvm.running
    assert jvm.end_of() is None
    jvm._process.kill()
    jvm._process.wait()
    assert not jvm.running
    assert jvm.end_of() == "Spark's JVM was killed (SIGKILL), as the system does when memory runs out."


def test_a_jvm_that_has_ended_by_itself_says_with_which_code(jvm):
    jvm._process.communicate(b"\n")
    assert jvm.end_of() == "Spark's JVM has ended, with code 0. Its last output:\nthe last word"


@pytest.mark.parametrize("debug", ["", "1"])
def test_of_an_error_of_the_jvm_its_message_is_shown_and_on_request_its_frames(jvm, monkeypatch, debug):
    monkeypatch.setenv("PENSTOCK_DEBUG", debug)
    frames = ["\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)", "\t... 3 more"]
    jvm.output_tail = deque(
        ["WARNING: Using incubator modules: jdk.incubator.vector", "SparkException: no such master", *frames]
    )
    jvm._process.communicate(b"\n")
    _, _, words = jvm.end_of().partition("Its last output:\n")
    assert words.splitlines() == (list(jvm.output_tail) if debug else ["SparkException: no such master"])


@pytest.fixture
def ours(monkeypatch, jvm):
    """A session of ours, as much of it as is looked at."""
    spark = SimpleNamespace(sparkContext=object())
    monkeypatch.setattr(session, "_embedded", SimpleNamespace(session=spark, jvm=jvm))
    monkeypatch.setattr(gateway, "_DYING_SECONDS", 0.01)
    return spark


def test_a_call_that_fails_because_the_jvm_is_gone_is_no_failure_of_the_job(ours, jvm):
    broken = Py4JError("An error occurred while calling o41.isActive")
    assert not isinstance(failure_of(ours, broken), SparkEndedError)
    jvm._process.send_signal(signal.SIGTERM)
    jvm._process.wait()
    failure = failure_of(ours, broken)
    assert isinstance(failure, SparkEndedError)
    assert "by SIGTERM" in str(failure)
    assert "resumes from its last checkpoint" in str(failure)


def test_somebody_elses_spark_that_does_not_answer_is_gone_as_well(ours):
    other = SimpleNamespace(sparkContext=object())
    for error in (Py4JNetworkError("connection refused"), ConnectionRefusedError(111, "connection refused")):
        failure = failure_of(other, error)
        assert isinstance(failure, SparkEndedError)
        assert "does not respond" in str(failure)
    failure = failure_of(other, PySparkException("Python worker exited unexpectedly (crashed)"))
    assert isinstance(failure, JobExecutionError)
    assert not isinstance(failure, SparkEndedError)


def test_a_broken_call_is_logged_by_nobody_since_it_is_raised(caplog):
    for _ in range(2):
        session._hush_py4j()
    logging.getLogger().error("Exception while sending command.")
    logging.getLogger().error("something else")
    assert [record.message for record in caplog.records] == ["something else"]
    assert logging.getLogger().filters.count(session._is_no_broken_call) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
def test_a_process_that_got_no_turn_is_starved_and_one_that_is_gone_is_not(jvm):
    assert is_starved(jvm.pid)
    jvm._process.kill()
    jvm._process.wait()
    assert not is_starved(jvm.pid)
