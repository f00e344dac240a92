"""Every public name of PyFlink's DataStream API works here, or says clearly that it does not."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import penstock.datastream
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors import NumberSequenceSource

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import pyflink_names as names  # noqa: E402

ALL = names.all_names()
INSIDE = [name for name in ALL if not name.is_outside]


def test_nine_of_ten_names_of_the_programming_model_work():
    counted = [name for name in INSIDE if name.status != names.JAVA]
    working = [name for name in counted if name.status == names.WORKS]
    assert len(working) / len(counted) >= 0.9, names.share(INSIDE)


def test_nine_of_ten_of_all_names_work():
    counted = [name for name in ALL if name.status != names.JAVA]
    working = [name for name in counted if name.status == names.WORKS]
    assert len(working) / len(counted) >= 0.9, names.share(counted)


def test_the_page_is_up_to_date():
    assert names.TABLE.read_text(encoding="utf-8") == names.render(ALL), "run: make names"


def test_every_name_is_there_or_is_refused_with_advice():
    silent = []
    for name in ALL:
        try:
            names.lookup(name.module, name.path)
        except UnsupportedFeatureError as error:
            if "is not supported: " not in str(error):
                silent.append((name.path, str(error)))
        except AttributeError as error:
            silent.append((name.module, name.path, str(error)))
    assert silent == [], "add them, or refuse them: see penstock.common.unsupported"


def test_no_remark_is_left_over():
    def matches(status, pattern):
        return any(names.fnmatchcase(name.path, pattern) for name in ALL)

    unused = [
        (s, pattern) for s, patterns in names.remarks().items() for pattern in patterns if not matches(s, pattern)
    ]
    assert unused == []


def test_what_works_is_code_of_its_own_and_no_method_that_only_refuses():
    """A method whose source does nothing but raise UnsupportedFeatureError must not be called working."""
    pretending = []
    for name in ALL:
        if name.status != names.WORKS:
            continue
        found = names.lookup(name.module, name.path)
        if not inspect.isfunction(found):
            continue
        body = [line.strip() for line in inspect.getsource(found).splitlines()]
        code = [line for line in body if line and not line.startswith(("def ", '"""', "@", "#"))]
        if code and code[0].startswith("raise UnsupportedFeatureError"):
            pretending.append(name.path)
    # A base class whose subclasses do it.
    assert sorted(set(pretending) - {"Trigger.on_merge"}) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from penstock.datastream.connectors.pulsar import PulsarSource",
        "from penstock.datastream.connectors import PulsarSource",
        "from penstock.datastream.functions import JavaFunctionWrapper",
        "import penstock.datastream.connectors.pulsar as pulsar; pulsar.StartCursor",
    ],
)
def test_using_a_name_that_is_not_here_says_so_in_a_fresh_process(statement):
    command = [sys.executable, "-c", statement]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT / "src")})
    assert "UnsupportedFeatureError: penstock.datastream" in done.stderr
    assert "is not supported: " in done.stderr


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("penstock.java_gateway", "get_gateway"),
        ("penstock.util.java_utils", "get_j_env_configuration"),
        ("penstock.common.typeinfo", "_from_java_type"),
        ("penstock.datastream.state_backend", "_from_j_state_backend"),
        ("penstock.datastream.utils", "create_hadoop_configuration"),
        ("penstock.table.types", "_to_java_data_type"),
    ],
)
def test_a_function_of_the_bridge_to_java_can_be_imported_and_refuses_when_it_is_called(module, name):
    function = getattr(importlib.import_module(module), name)
    with pytest.raises(UnsupportedFeatureError, match=rf"^{module}\.{name}\(\) is not supported: .*bridge to Java"):
        function(object())


def test_methods_of_the_bridge_to_java_say_that_there_is_none():
    for call in (OutputTag("late").get_java_output_tag, NumberSequenceSource(1, 2).get_java_function):
        with pytest.raises(UnsupportedFeatureError, match="has no Java object"):
            call()


def test_every_method_that_gives_a_java_object_refuses_with_a_reason():
    for name in ALL:
        if ".get_java_" not in name.path:
            continue
        try:
            method = names.lookup(name.module, name.path)
        except UnsupportedFeatureError:
            continue  # the class itself is refused
        with pytest.raises(UnsupportedFeatureError, match=r"ha(s|ve) no Java"):
            method(object())


MISSING = sorted({(name.module, name.path.partition(".")[0]) for name in ALL if name.status == names.UNSUPPORTED})


def test_a_missing_name_says_what_to_do_from_its_own_module_and_from_every_package_that_exports_it():
    for module, name in MISSING:
        exporters = [module] + [
            package
            for package, contents in names.json.loads(names.NAMES.read_text()).items()
            if name in contents.get("_re_exports", ()) and module.startswith(package)
        ]
        for exporter in exporters:
            with pytest.raises(UnsupportedFeatureError, match=rf"{name} is not supported: \w.{{10}}"):
                getattr(names.our_module(exporter), name)


PARAMETERS = [
    (module, path, wanted)
    for module, methods in names.json.loads((ROOT / "tests" / "api" / "pyflink_parameters.json").read_text()).items()
    for path, wanted in methods.items()
]


def test_every_parameter_has_pyflinks_name_so_that_it_can_be_given_by_keyword():
    different = []
    for module, path, wanted in PARAMETERS:
        try:
            parameters = inspect.signature(names.lookup(module, path)).parameters
        except UnsupportedFeatureError:
            continue
        if "kwargs" not in parameters and not set(wanted) <= set(parameters):  # a base class without one of its own
            different.append((path, wanted, list(parameters)))
    assert different == []
    assert len(PARAMETERS) > 300


def test_a_misspelt_name_stays_an_attribute_error():
    for module in ("penstock.datastream", "penstock.datastream.connectors", "penstock.datastream.functions"):
        with pytest.raises(AttributeError, match="NoSuchThing"):
            importlib.import_module(module).NoSuchThing  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("penstock.datastream.connectors.no_such_system")


@pytest.mark.parametrize("package", ["pyflink.datastream", "pyflink.common"])
def test_packages_export_what_pyflink_exports_and_each_name_loads(package):
    exported = names.json.loads(names.NAMES.read_text())[package]["_re_exports"]
    ours = names.our_module(package)
    assert set(exported) <= set(ours.__all__)
    assert all(getattr(ours, name) is not None for name in ours.__all__)
    assert set(penstock.datastream.__all__) <= set(dir(penstock.datastream))


# -- behaviour behind names that had none ----------------------------------------------------------------------------


def test_without_generated_uids_every_operator_needs_its_own():
    env = StreamExecutionEnvironment()
    env.get_config().disable_auto_generated_uids()
    numbers = env.from_collection([1]).uid("numbers").map(lambda x: x).name("unnamed")
    numbers.print().uid("output")
    with pytest.raises(InvalidProgramError, match="the operator 'unnamed' has none"):
        env.execute_async()
    numbers.uid("map")
    env._executor = Recorder()
    env.execute_async()


class Recorder:
    def submit(self, sinks, settings):
        return None
