"""Errors on their way from a worker to the driver."""

import pytest

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.runtime.operators.black_box import note_of
from penstock.spark.failures import TaskFailureError, decode_failure, raise_encoded


def text_of(error):
    with pytest.raises(TaskFailureError) as failure:
        raise_encoded(error)
    return str(failure.value)


def test_a_reader_finds_the_message_first_and_the_driver_the_error_behind_it():
    text = text_of(InvalidProgramError("operator 'careful' cannot do that"))
    assert text.startswith("operator 'careful' cannot do that\n")
    jvm = f"SparkException: Task failed\nCaused by: {text}\n\tat org.apache.spark.Task.run(Task.java:1)"
    error = decode_failure(jvm)
    assert type(error) is InvalidProgramError
    assert str(error) == "operator 'careful' cannot do that"


def test_an_error_that_is_none_of_ours_arrives_with_its_name_and_without_java():
    error = decode_failure(text_of(KeyError("missing")))
    assert type(error) is JobExecutionError
    assert "KeyError: 'missing'" in str(error)
    assert "at org.apache" not in str(decode_failure("Boom\n\tat org.apache.spark.Task.run(Task.java:1)"))


DEATH = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): {notes}{crash}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1)
Caused by: java.io.EOFException
"""
CRASH = """Fatal Python error: Segmentation fault

Thread 0x00007e (most recent call first):
  File "/usr/lib/python3.11/socket.py", line 294 in accept

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/opt/jobs/job.py", line 27 in native
  File "/x/site-packages/penstock/runtime/operators/stateless.py", line 12 in process_batch
  File "/x/site-packages/pyspark/worker.py", line 12 in main
  File "/usr/lib/python3.11/threading.py", line 3 in run
"""


def test_a_process_that_died_is_said_to_have_run_its_operator():
    error = decode_failure(DEATH.format(notes=note_of("dangerous", 1, 2).decode(), crash=""))
    assert str(error).startswith(
        "a Python process died while it was running 'dangerous' (subtask 2 of 2). It was killed"
    )
    assert "os._exit" in str(error)


def test_a_native_crash_shows_the_users_frames():
    text = str(decode_failure(DEATH.format(notes=note_of("dangerous", 0, 1).decode(), crash=CRASH)))
    assert "'dangerous'. Python crashed (Segmentation fault)" in text
    assert 'File "/opt/jobs/job.py", line 27 in native' in text
    assert "accept" not in text
    assert "penstock" not in text
    assert "pyspark" not in text
    assert "java" not in text


def test_a_death_without_notes_is_told_without_java_frames():
    text = str(decode_failure("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"))
    assert text.startswith("a Python process died unexpectedly.")
