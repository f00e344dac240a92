"""``import penstock as ps``: the names of a program, loaded when they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps


@pytest.mark.parametrize("name", ps.__all__)
def test_every_name_can_be_used(name):
    assert getattr(ps, name) is not None
    assert name in dir(ps)


def test_type_checkers_see_the_names_that_programs_can_use():
    tree = ast.parse(Path(ps.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == ps._HOME  # the two lists cannot be one: a type checker reads only the imports
    assert sorted([*seen, "__version__"]) == sorted(ps.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Strem'"):
        ps.Strem  # noqa: B018


def test_neither_the_import_nor_a_program_loads_pyspark():
    program = (
        "import sys, penstock as ps\n"
        "assert not {name for name in sys.modules if name.startswith('penstock.')}\n"
        "ps.StreamExecutionEnvironment.get_execution_environment().from_sequence(1, 3).map(str).key_by(len)\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
