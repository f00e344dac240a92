"""Every public name of PyFlink's functions, state and timers exists in ``penstock.core``, except the bridge to Java."""

import importlib
import json
from operator import attrgetter
from pathlib import Path

import pytest

NAMES = json.loads((Path(__file__).parent / "pyflink_names.json").read_text())

JAVA_ONLY = {"JavaFunctionWrapper", "get_java_function", "get_java_output_tag"}


def members():
    for module, classes in NAMES.items():
        for name, attributes in classes.items():
            if name not in JAVA_ONLY:
                yield pytest.param(module, name, attributes, id=f"{module}.{name}")


@pytest.mark.parametrize(("module", "name", "attributes"), list(members()))
def test_class_has_all_methods_of_pyflink(module, name, attributes):
    ours = importlib.import_module(module.replace("pyflink.datastream", "penstock.core"))
    cls = attrgetter(name)(ours)
    wanted = {attribute.rstrip("=") for attribute in attributes} - JAVA_ONLY
    assert {attribute for attribute in wanted if not hasattr(cls, attribute)} == set()
