"""The pytest fixtures of Penstock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.testing.function_harness import FunctionHarness
    from penstock.testing.mini_cluster import MiniCluster

__all__ = ["harness", "mini_cluster"]


@pytest.fixture
def mini_cluster() -> Iterator[MiniCluster]:
    """A cluster in this process. Every environment that the test or the tested program creates runs its jobs there."""
    from penstock.common import Configuration
    from penstock.datastream.execution_defaults import ExecutionDefaults, execution_defaults
    from penstock.testing.mini_cluster import MiniCluster

    cluster = MiniCluster()
    with execution_defaults(ExecutionDefaults(Configuration(), executor=cluster)):
        yield cluster


@pytest.fixture
def harness() -> Iterator[Callable[..., FunctionHarness]]:
    """Creates a :class:`FunctionHarness`, and closes it after the test."""
    from penstock.testing.function_harness import FunctionHarness

    made: list[FunctionHarness] = []

    def make(function: Any, **options: Any) -> FunctionHarness:
        made.append(FunctionHarness(function, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
