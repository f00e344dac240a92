"""Every public name of ``pyflink.datastream`` exists under ``penstock.datastream``, except the bridge to Java."""

import importlib
import json
from operator import attrgetter
from pathlib import Path

import pytest

import penstock.datastream

NAMES = json.loads((Path(__file__).parent / "pyflink_names.json").read_text())

JAVA_ONLY = {
    "JavaFunctionWrapper",
    "Min",  # a helper of PyFlink's own triggers
    "WindowOperationDescriptor",
    "convert_to_python_obj",
    "create_hadoop_configuration",
    "create_java_properties",
    "pickled_bytes_to_python_obj",
    "get_java_function",
    "get_java_memory_size",
    "get_java_object",
    "get_java_type_info",
    "get_java_output_tag",
    "get_java_slot_sharing_group",
}


def members():
    for module, classes in NAMES.items():
        for name, attributes in classes.items():
            if name not in JAVA_ONLY and name not in ("_re_exports", "_not_in___all__", "functions"):
                yield pytest.param(module, name, attributes, id=f"{module}.{name}")


def our_module(module):
    return importlib.import_module(module.replace("pyflink", "penstock", 1))


@pytest.mark.parametrize(("module", "name", "attributes"), list(members()))
def test_class_has_all_methods_of_pyflink(module, name, attributes):
    cls = attrgetter(name)(our_module(module))
    wanted = {attribute.rstrip("=") for attribute in attributes} - JAVA_ONLY
    assert {attribute for attribute in wanted if not hasattr(cls, attribute)} == set()


@pytest.mark.parametrize("module", [module for module, names in NAMES.items() if "functions" in names])
def test_module_has_all_functions_of_pyflink(module):
    ours = our_module(module)
    assert {name for name in NAMES[module]["functions"] if not hasattr(ours, name)} - JAVA_ONLY == set()


def test_the_package_exports_what_pyflink_exports_and_each_name_loads():
    missing = set(NAMES["pyflink.datastream"]["_re_exports"]) - set(penstock.datastream.__all__)
    assert missing == set()
    for name in penstock.datastream.__all__:
        assert getattr(penstock.datastream, name).__name__ == name
    assert set(penstock.datastream.__all__) <= set(dir(penstock.datastream))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        penstock.datastream.NoSuchThing  # noqa: B018
