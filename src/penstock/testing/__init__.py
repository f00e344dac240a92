"""Run jobs and operators without a JVM, with full control over time.

`MiniCluster` runs whole jobs in this process, batch by batch. `given` feeds a part of a job step by step. The harnesses
run single operators or functions. pytest finds the fixtures `mini_cluster` and `harness` automatically. Names are
loaded on first use, because pytest imports this package in every test run.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.function_harness import FunctionHarness
    from penstock.testing.harness import (
        KeyedOneInputOperatorHarness,
        KeyedTwoInputOperatorHarness,
        OneInputOperatorHarness,
        TwoInputOperatorHarness,
    )
    from penstock.testing.mini_cluster import ManualClock, MiniCluster, MiniClusterJob
    from penstock.testing.scenario import Scenario, given

__all__ = [
    "FunctionHarness",
    "KeyedOneInputOperatorHarness",
    "KeyedTwoInputOperatorHarness",
    "ManualClock",
    "MiniCluster",
    "MiniClusterJob",
    "OneInputOperatorHarness",
    "Scenario",
    "TwoInputOperatorHarness",
    "given",
]

_MODULES = {
    "function_harness": "FunctionHarness",
    "harness": """
        KeyedOneInputOperatorHarness KeyedTwoInputOperatorHarness OneInputOperatorHarness TwoInputOperatorHarness
    """,
    "mini_cluster": "ManualClock MiniCluster MiniClusterJob",
    "scenario": "Scenario given",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"penstock.testing.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
