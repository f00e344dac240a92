"""Streams, environments and jobs have an HTML representation; a job's follows it until it is over."""

import sys
import threading
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from penstock.common import Types
from penstock.common.errors import PenstockError
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster


def texts(html):
    """All texts of well-formed HTML."""
    return [text.strip() for text in ET.fromstring(f"<html>{html}</html>").itertext() if text.strip()]


def test_a_stream_shows_the_operators_that_make_it(running_env):
    numbers = running_env.from_collection([1, 2], Types.INT()).map(lambda n: n, Types.INT()).name("<double>")
    found = " ".join(texts(numbers._repr_html_()))
    assert "DataStream of" in found
    assert "<double>" in found
    assert "(no sink yet)" in found
    assert "KeyedStream" in " ".join(texts(numbers.key_by(lambda n: n)._repr_html_()))
    assert running_env.sinks == []


def test_an_environment_shows_the_job_that_would_run(running_env):
    assert "no sinks yet" in texts(running_env._repr_html_())
    running_env.from_collection([1]).print()
    assert "Print to Std. Out" in " ".join(texts(running_env._repr_html_()))


def test_a_program_in_the_making_shows_what_is_wrong(running_env):
    wrong = running_env.from_sequence(1, 5).rebalance().map(lambda n: n).set_parallelism(3).forward().map(lambda n: n)
    assert "needs the same parallelism" in " ".join(texts(wrong.set_parallelism(2)._repr_html_()))


def test_a_job_shows_what_it_has_done(running_env):
    running_env.from_collection([1, 2, 3]).add_sink(lambda n: None)
    client = running_env.execute_async("three <numbers>")
    client.get_job_execution_result().result()
    found = texts(client._repr_html_())
    assert found[0] == "three <numbers>"
    assert dict(zip(found[2::2], found[3::2], strict=True)) | {"state": ""} == {
        "status": "FINISHED",
        "records read": "3",
        "event time": "at its end",
        "late records": "0",
        "state": "",
        "checkpoint": "1",
    }


class Notebook(ModuleType):
    """Stands for IPython.display: keeps what is displayed."""

    def __init__(self):
        super().__init__("IPython.display")
        self.shown = []
        self.finished = threading.Event()

    def HTML(self, html):
        return html

    def display(self, html, *, display_id):
        assert display_id
        self.update(html)
        return self

    def update(self, html):
        self.shown.append(html)
        if "FINISHED" in html or "FAILED" in html:
            self.finished.set()


@pytest.mark.parametrize("fails", [False, True])
def test_a_running_job_is_followed_until_it_is_over(monkeypatch, fails):
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    goes_on = threading.Event()
    monkeypatch.setattr(sys.modules[__name__], "gate", goes_on, raising=False)
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=1)).set_parallelism(1)
    env.from_collection([1, 2]).map(wait_at_the_gate).map(lambda n: 1 / (n - 2 if fails else n)).add_sink(
        lambda n: None
    )
    client = env.execute_async()
    client._ipython_display_()
    assert "FINISHED" not in notebook.shown[0]
    goes_on.set()
    assert notebook.finished.wait(60)
    assert ("FAILED" if fails else "FINISHED") in notebook.shown[-1]
    if fails:
        with pytest.raises(PenstockError):
            client.get_job_execution_result().result()


def wait_at_the_gate(number):
    sys.modules[__name__].gate.wait(60)
    return number
