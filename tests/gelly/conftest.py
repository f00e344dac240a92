"""Graphs in this process, in one partition and in several."""

import pytest

from penstock.gelly import ExecutionEnvironment


@pytest.fixture(params=[1, 3], ids=["one partition", "three partitions"])
def env(request):
    return ExecutionEnvironment.create_collections_environment(request.param)
