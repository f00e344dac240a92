"""A directory with a lease."""

import pytest
from tests.runtime.lease.leases import Directory


@pytest.fixture
def directory(tmp_path):
    return Directory(tmp_path)
