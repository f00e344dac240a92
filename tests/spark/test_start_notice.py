"""What a terminal shows while Spark starts."""

import io
import sys

import pytest

from penstock.cli.progress import ProgressLine
from penstock.spark.start_notice import start_notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def test_a_terminal_says_that_spark_starts_and_how_long_it_took(monkeypatch):
    shown = terminal(monkeypatch)
    with start_notice("local[2]"):
        assert shown.getvalue() == "Starting Spark (local[2]), some seconds ..."
    line, _, rest = shown.getvalue().partition("\n")
    assert line.endswith(" 0 s; the first batch also starts Python workers")
    assert rest == ""


def test_an_error_begins_on_a_line_of_its_own(monkeypatch):
    shown = terminal(monkeypatch)
    with pytest.raises(RuntimeError), start_notice("local[2]"):
        raise RuntimeError("no Java")
    assert shown.getvalue() == "Starting Spark (local[2]), some seconds ...\n"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_line_of_the_command_or_its_absence_is_enough(monkeypatch, enabled):
    shown = terminal(monkeypatch)
    with ProgressLine(shown, enabled=enabled), start_notice("local[2]"):
        pass
    assert shown.getvalue() == ""


def test_what_is_no_terminal_stays_quiet(monkeypatch):
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with start_notice("local[2]"):
            pass
        assert stream is None or stream.getvalue() == ""
