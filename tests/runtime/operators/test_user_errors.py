"""From an exception in user code to an error that shows the record and the user's own frames."""

import traceback
from types import SimpleNamespace

from penstock.common.errors import InvalidProgramError, UserFunctionError
from penstock.runtime.operators.user_errors import user_error, user_traceback

CONTEXT = SimpleNamespace(operator_name="my operator", subtask=3)


def fail():
    raise ValueError("broken")


def caught(function):
    try:
        function()
    except Exception as error:
        return error


def test_the_error_names_operator_subtask_and_method():
    error = user_error(CONTEXT, caught(fail), "map")
    assert isinstance(error, UserFunctionError)
    assert (error.operator_name, error.subtask, error.method) == ("my operator", 3, "map")
    assert "in fail" in error.user_traceback
    assert error.user_traceback.rstrip().endswith("ValueError: broken")


def test_errors_of_our_own_are_passed_on_as_they_are():
    own = InvalidProgramError("wrong")
    assert user_error(CONTEXT, own, "map") is own


def test_frames_of_the_runtime_are_left_out():
    from penstock.runtime.operators.udf import method_of

    text = user_traceback(caught(method_of(fail, "map")))
    assert "in fail" in text
    assert "penstock/runtime" not in text
    # What the interpreter would show has more.
    assert "Traceback" in text


def test_causes_are_shown_without_frames_of_the_runtime():
    def wrap():
        try:
            fail()
        except ValueError as error:
            raise RuntimeError("outer") from error

    text = user_traceback(caught(wrap))
    assert "ValueError: broken" in text
    assert "RuntimeError: outer" in text
    assert text.index("ValueError: broken") < text.index("RuntimeError: outer")


def test_the_traceback_of_the_exception_itself_is_not_changed():
    error = caught(fail)
    before = traceback.format_exception(error)
    user_traceback(error)
    assert traceback.format_exception(error) == before
