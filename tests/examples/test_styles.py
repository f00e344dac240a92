"""The three programs of the guide in both styles are the same job, and the guide shows them."""

import ast
import re
from pathlib import Path

import pytest

from penstock.common import Configuration
from penstock.datastream.execution_defaults import ExecutionDefaults, execution_defaults
from penstock.graph.job_graph import translate
from penstock.testing import MiniCluster
from styles import flink_names, short_forms

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = """\
running average> ('attic', 20.0)
running average> ('attic', 21.0)
running average> ('cellar', 10.0)
running average> ('attic', 22.0)
average> ('attic', 21.0)
average> ('cellar', 10.0)
average> ('attic', 24.0)
alert> cellar is silent
alert> attic is silent
"""


class TakingExecutor:
    """Takes the job and does not run it."""

    def submit(self, sinks, settings):
        self.graph = translate(sinks, settings)

    def close(self):
        """Nothing to close."""


def job_graph(main):
    executor = TakingExecutor()
    with execution_defaults(ExecutionDefaults(Configuration(), executor=executor)), pytest.raises(AttributeError):
        main()  # there is no client to wait for
    return executor.graph


def described(graph):
    """Everything that a savepoint and a plan see of a graph."""
    vertices = [
        (
            vertex.name,
            vertex.parallelism,
            vertex.max_parallelism,
            [(o.operator_id, o.name, type(o.operator)) for o in vertex.operators],
        )
        for vertex in graph.vertices
    ]
    return vertices, [(edge.source, edge.target, type(edge.partitioner)) for edge in graph.edges]


def test_both_styles_are_the_same_job_graph():
    one, other = described(job_graph(short_forms.main)), described(job_graph(flink_names.main))
    assert one == other
    assert len(one[0]) > 3
    assert len(one[1]) > 2


@pytest.mark.parametrize("style", [short_forms, flink_names])
def test_both_styles_give_the_same_results(style, capsys):
    with execution_defaults(ExecutionDefaults(Configuration(), executor=MiniCluster())):
        style.main()
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(OUTPUT.splitlines())


@pytest.mark.parametrize("name", ["short_forms", "flink_names"])
def test_the_guide_shows_them(name):
    path = ROOT / "examples" / "styles" / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    wanted = [
        node
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name != "main"
    ]
    page = re.sub(r"\s+", " ", (ROOT / "docs" / "short-forms.md").read_text(encoding="utf-8"))
    assert len(wanted) > 5
    for node in wanted:
        assert re.sub(r"\s+", " ", ast.get_source_segment(text, node)) in page, node.name
