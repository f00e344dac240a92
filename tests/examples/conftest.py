"""What tests of the examples use: the programs by name, and their results on the executors without a JVM."""

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
for directory in (EXAMPLES, EXAMPLES / "book", EXAMPLES / "taxi", EXAMPLES / "cep"):
    sys.path.insert(0, str(directory))

from showcase import Example, collect, first_field  # noqa: E402

from penstock.datastream import StreamExecutionEnvironment  # noqa: E402
from penstock.testing import MiniCluster  # noqa: E402
from penstock.testing.continuous_cluster import ContinuousCluster  # noqa: E402


def results_of(build, env):
    """The results of an example; of several, by name. Records of a key are together, and in the order they came."""
    found = {
        name: sorted(records, key=first_field) for name, records in collect(env, [Example("", "", build)])[""].items()
    }
    return found.get("", found)


@pytest.fixture
def results(env_factory):
    """Runs an example on every executor, in one batch and in many, with one task and with four."""
    return lambda build: results_of(build, env_factory())


@pytest.fixture(params=[MiniCluster, ContinuousCluster])
def paced(request, monkeypatch):
    """Runs an example whose records come live, one step in each batch, with a clock that ticks once a batch."""

    def steps_of(env, steps, per_second):
        return env.from_collection(steps).flat_map(lambda step: step).set_parallelism(1)

    def run(module, build, tick):
        monkeypatch.setattr(module, "live", steps_of)
        cluster = request.param(clock=TickingClock(tick), max_records=1)
        return results_of(build, StreamExecutionEnvironment(executor=cluster).set_parallelism(2))

    return run


class TickingClock:
    """The n-th time it is asked, n ticks have passed."""

    def __init__(self, tick):
        self.tick = tick
        self.now = 0

    def __call__(self):
        self.now += self.tick
        return self.now
