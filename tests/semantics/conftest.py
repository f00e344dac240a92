"""What tests of semantics use: an environment of each variant, and a way to run several streams as one job."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def env(env_factory):
    return env_factory()


@pytest.fixture
def run(env):
    """Runs one job with all given streams; their records by name, or of the one stream as a list."""

    def run_streams(stream=None, **streams):
        iterators = {name: one.collect_async() for name, one in {"": stream, **streams}.items() if one is not None}
        env.execute("semantics")
        records = {name: list(iterator) for name, iterator in iterators.items()}
        return records[""] if stream is not None and not streams else records

    return run_streams
