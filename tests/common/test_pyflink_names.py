"""Every public name of ``pyflink.common`` and ``pyflink.metrics`` exists here, except the bridge to Java."""

import importlib
import json
from operator import attrgetter
from pathlib import Path

import pytest

NAMES = json.loads((Path(__file__).parent / "pyflink_names.json").read_text())

# Methods that hand out Java objects: there are none here.
JAVA_ONLY = {"get_java_object"}


def members():
    for module, classes in NAMES.items():
        for name, attributes in classes.items():
            if name != "_re_exports":
                yield pytest.param(module, name, attributes, id=f"{module}.{name}")


@pytest.mark.parametrize(("module", "name", "attributes"), list(members()))
def test_class_has_all_methods_of_pyflink(module, name, attributes):
    ours = importlib.import_module(module.replace("pyflink", "penstock"))
    cls = attrgetter(name)(ours)
    wanted = {attribute.rstrip("=") for attribute in attributes} - JAVA_ONLY
    assert {attribute for attribute in wanted if not hasattr(cls, attribute)} == set()


@pytest.mark.parametrize("module", [module for module, names in NAMES.items() if "_re_exports" in names])
def test_package_exports_all_names_of_pyflink(module):
    ours = importlib.import_module(module.replace("pyflink", "penstock"))
    assert set(NAMES[module]["_re_exports"]) <= set(ours.__all__)
    assert all(hasattr(ours, name) for name in ours.__all__)
