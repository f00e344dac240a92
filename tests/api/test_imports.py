"""Where PyFlink's names can be imported from."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import pytest

import penstock
import penstock.datastream.connectors as connectors_package
from penstock.common.unsupported import missing_names
from penstock.datastream import ExternalizedCheckpointCleanup, ExternalizedCheckpointRetention
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.pyflink_imports import IMPORTED

SOURCES = Path(penstock.__file__).parent


def modules_below(package):
    return [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


def test_nothing_is_called_unsupported_that_exists():
    connectors = modules_below(connectors_package)
    wrong = []
    for module, name in missing_names():
        if not name:
            path = SOURCES.joinpath(*module.split(".")[1:])
            wrong += [module] * (path.is_dir() or path.with_suffix(".py").is_file())
        elif module == connectors_package.__name__:
            wrong += [f"{found.__name__}.{name}" for found in connectors if name in vars(found)]
        else:
            wrong += [f"{module}.{name}"] * (name in vars(importlib.import_module(module)))
    assert wrong == []


@pytest.mark.parametrize("module", ["file_system", "kafka", "dynamic_kafka", "jdbc", "rabbitmq"])
def test_connectors_are_exported_by_their_package_as_in_pyflink(module):
    home = importlib.import_module(f"penstock.datastream.connectors.{module}")
    exported = connectors_package._MODULES[module].split()
    assert {name: getattr(connectors_package, name) for name in exported} == {n: getattr(home, n) for n in exported}
    assert set(exported) <= set(dir(connectors_package))


def test_importing_the_package_of_connectors_loads_none_of_their_clients():
    program = """
import sys
import penstock.datastream.connectors
print(*[name for name in sys.modules if name.startswith("penstock.datastream.connectors.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[3] for name in done.stdout.split()}
    assert not loaded & {"kafka", "dynamic_kafka", "jdbc", "rabbitmq"}


@pytest.mark.parametrize("module", IMPORTED)
def test_names_that_a_module_of_pyflink_imports_can_be_taken_from_it(module):
    for origin, names in IMPORTED[module].items():
        for name in names.split():
            assert getattr(importlib.import_module(module), name) is getattr(importlib.import_module(origin), name)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("penstock.datastream.functions", "W W2 IN IN1 IN2 OUT KEY"),
        ("penstock.datastream.state", "T K V IN OUT"),
        ("penstock.datastream.window", "T W W2 IN OUT KEY"),
    ],
)
def test_modules_have_pyflinks_type_variables(module, names):
    assert all(isinstance(getattr(importlib.import_module(module), name), TypeVar) for name in names.split())


def test_small_modules_of_pyflink():
    from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
    from penstock.version import __version__

    assert (MIN_LONG_VALUE, MAX_LONG_VALUE, __version__) == (-(2**63), 2**63 - 1, penstock.__version__)


def test_the_names_of_retention_in_flink_1():
    assert ExternalizedCheckpointCleanup is ExternalizedCheckpointRetention
    config = CheckpointConfig()
    assert config.get_externalized_checkpoint_cleanup() is ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    for method in (config.enable_externalized_checkpoints, config.set_externalized_checkpoint_cleanup):
        method(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
        assert config.chosen_retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


def test_a_retention_that_was_not_chosen_is_none_and_says_so_as_in_flink():
    config = CheckpointConfig()
    assert config.get_externalized_checkpoint_retention() is ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    assert not config.is_externalized_checkpoints_enabled()
    assert config.chosen_retention is None  # so the job keeps its directory
