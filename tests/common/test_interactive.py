"""An error at a prompt is one message, and at the prompt only."""

import subprocess
import sys

import pytest

from penstock.common.errors import InvalidProgramError, UserFunctionError
from penstock.common.interactive import one_message, show_errors_as_messages

SESSION = """
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster
env = StreamExecutionEnvironment(executor=MiniCluster())
env.from_collection([1]).key_by(2.5)
env.from_collection([1, 0]).map(lambda value: 10 // value).print()
env.execute()
1 // 0
"""


def test_at_the_prompt_errors_have_no_frames_of_ours():
    done = subprocess.run(
        [sys.executable, "-i", "-q"], input=SESSION, capture_output=True, text=True, check=True, timeout=60
    )
    shown = [line for line in done.stderr.replace(">>> ", "").splitlines() if line.strip()]
    assert shown[0].startswith("InvalidProgramError: a key must be a function")
    assert shown[1].startswith("UserFunctionError: User function failed in operator 'Map'")
    assert "penstock" not in done.stderr
    assert len(shown) < 15
    assert shown[-1] == "ZeroDivisionError: integer division or modulo by zero"


def test_a_notebook_shows_the_message_and_the_line_of_the_cell():
    """IPython and Jupyter ask an error how it wants to be shown."""
    with pytest.raises(InvalidProgramError) as caught:
        raise InvalidProgramError("a key is missing")
    error = caught.value
    error.add_note("a note")
    assert error._render_traceback_()[:2] == ["InvalidProgramError: a key is missing", "a note"]
    assert error._render_traceback_()[2].endswith('raise InvalidProgramError("a key is missing")')


def test_an_error_without_frames_is_its_message():
    error = UserFunctionError("map-1", 0, "17", "ZeroDivisionError: division by zero", "map")
    assert one_message(error) == [f"UserFunctionError: {error}"]


def test_a_script_keeps_its_tracebacks():
    before = sys.excepthook
    show_errors_as_messages()
    assert sys.excepthook is before
