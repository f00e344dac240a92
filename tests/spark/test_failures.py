"""Errors on their way from a worker to the driver."""

import pytest

from penstock.common.errors import InvalidProgramError, JobExecutionError
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
