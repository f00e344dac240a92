"""Fixtures for all tests: one way to run a job on every executor.

A test that asks for ``env_factory`` (or for something built on it) runs once for every variant: executor, parallelism
and runtime mode. Executors without a JVM:

* ``warm``: tasks stay alive, the whole input in one batch;
* ``one``: a commit between any two records of a split;
* ``continuous``: the continuous mode with threads as tasks, steps of two records, every third of them a checkpoint;
* ``cold``: batches of three records, and all tasks forgotten after each of them: everything comes from the pages.

``@pytest.mark.variants(...)`` narrows the variants of a test. ``@pytest.mark.on_spark`` adds those on a real Spark,
which carry the marker ``spark``: all tests of a process share one session.
"""

import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.runtime.job.job_life import JobLife
from penstock.runtime.records.stored_classes import unregistered
from penstock.testing import MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster

# A shell makes programs in the background ignore Ctrl-C, and with them all that they start: some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Spark's workers import test modules under the name pytest gave them; helpers are imported by their own.
TESTS = Path(__file__).resolve().parent
HELPERS = (TESTS.parent, TESTS / "cep", TESTS / "differential", TESTS / "semantics", TESTS / "spark")
sys.path += [str(path) for path in HELPERS if str(path) not in sys.path]

# The same examples every time; make test-fast ARGS="--hypothesis-profile thorough" tries twenty times as many others.
for name, examples in {"penstock": 50, "thorough": 1_000}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
        derandomize=name == "penstock",
    )
settings.load_profile("penstock")


class JobStates(list):
    """The names of the states that a job has gone through."""

    def __init__(self):
        super().__init__(["INITIALIZING"])
        self.on_change = lambda name: None

    def note(self, method):
        def noted(life, *arguments):
            changed = method(life, *arguments)
            if life.status.name != self[-1]:
                self.append(life.status.name)
                self.on_change(self[-1])
            return changed

        return noted


@pytest.fixture
def job_states(monkeypatch):
    """All states that the one job of a test goes through; ``on_change`` is called with each."""
    seen = JobStates()
    for method in ("transition_to", "cancel"):
        monkeypatch.setattr(JobLife, method, seen.note(getattr(JobLife, method)))
    return seen


@pytest.fixture(autouse=True)
def _stored_classes_are_registered():
    """No test may find a class of ours in stored data whose path is not in `STORED_CLASSES`."""
    yield
    found = sorted(unregistered)
    unregistered.clear()
    assert not found, f"register these in runtime/stored_classes.py: {found}"


EXECUTORS = ("warm", "one", "cold", "continuous")
MODES = ("STREAMING", "BATCH")
PARALLELISMS = (1, 4)


def pytest_configure(config):
    config.addinivalue_line("markers", "variants(executors, parallelism, modes): the variants a test runs in")
    config.addinivalue_line("markers", "on_spark(*(parallelism, mode)): also run on Spark, (4, STREAMING) unless told")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """For several processes: a file stays in one of them, and so does all that needs a broker, so that there is one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FilesAndBroker(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "kafka" if "kafka" in file else file

    return FilesAndBroker(config, log)


@dataclass(frozen=True)
class Variant:
    """How a job is run."""

    executor: str
    parallelism: int
    mode: str

    def __str__(self):
        return f"{self.executor}-{self.parallelism}-{self.mode.lower()}"

    @property
    def is_batch(self):
        return self.mode == "BATCH"


def _variants(item):
    wanted = {"executors": EXECUTORS, "parallelism": PARALLELISMS, "modes": MODES}
    for mark in reversed(list(item.iter_markers("variants"))):  # the test's own mark comes after its module's
        wanted.update(mark.kwargs)
    found = [
        Variant(executor, parallelism, mode)
        for mode in wanted["modes"]
        for parallelism in wanted["parallelism"]
        for executor in wanted["executors"]
        # A batch job is one batch that nothing survives: only one way to run it.
        if mode == "STREAMING" or executor == wanted["executors"][0]
    ]
    parameters = [pytest.param(variant, id=str(variant)) for variant in found]
    spark = item.get_closest_marker("on_spark")
    if spark is not None:
        for parallelism, mode in spark.args or ((4, "STREAMING"),):
            variant = Variant("spark", parallelism, mode)
            parameters.append(pytest.param(variant, id=str(variant), marks=pytest.mark.spark))
    return parameters


def pytest_generate_tests(metafunc):
    if "variant" in metafunc.fixturenames:
        metafunc.parametrize("variant", _variants(metafunc.definition))


@pytest.fixture(autouse=True, scope="session")
def _jobs_of_tests(tmp_path_factory):
    """`penstock list` shows the jobs of the user who runs the tests, not those of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_JOBS", str(tmp_path_factory.mktemp("jobs")))
        patch.setenv("PENSTOCK_LISTED", "false")
        yield


@pytest.fixture
def spark():
    """The one Spark of this process."""
    from penstock.spark.session import build_session

    return build_session(master="local[2]", app_name="penstock-tests")


@pytest.fixture(scope="session")
def kafka():
    """Kafka, on a broker that all tests of this process share."""
    pytest.importorskip("confluent_kafka")
    from tests.kafka_support import Kafka

    from penstock.testing.kafka_broker import BrokerUnavailableError, KafkaBroker

    try:
        # What a broker does now and then, it does often here: tests wait for it.
        often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200", "log.cleaner.backoff.ms": "200"}
        # Records of 1970, as tests have them, are older than any time to keep them.
        for_good = {"log.retention.ms": "-1"}
        broker = KafkaBroker(properties={**often, **for_good}).start()
    except BrokerUnavailableError as error:
        pytest.skip(str(error))
    yield Kafka(broker)
    broker.stop()


@pytest.fixture
def env_factory(variant, request):
    """Makes environments of the variant."""
    session = request.getfixturevalue("spark") if variant.executor == "spark" else None

    def make(configuration=None):
        if session is not None:
            env = StreamExecutionEnvironment(configuration, spark=session)
        else:
            env = StreamExecutionEnvironment(configuration, executor=mini_cluster(variant.executor))
        return env.set_parallelism(variant.parallelism).set_runtime_mode(RuntimeExecutionMode[variant.mode])

    return make


def mini_cluster(name, clock=None):
    """The in-process executor of that name."""
    if name == "continuous":
        return ContinuousCluster(clock=clock, max_records=2)
    records = {"warm": None, "one": 1, "cold": 3}[name]
    return MiniCluster(clock=clock, max_records=records, cold=name == "cold")
