"""The examples in docstrings run.

One test a module: collecting them with pytest would look at all of ``src`` and ``tests`` in every process.
"""

import doctest
import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF


def module_name(path):
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


WITH_EXAMPLES = [
    module_name(path) for path in sorted(SOURCES.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_in_docstrings_give_what_they_show(name):
    said = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    tests = doctest.DocTestFinder().find(importlib.import_module(name))
    for test in tests:
        runner.run(test, out=said.append)
    assert "".join(said) == ""
    assert any(test.examples for test in tests)
