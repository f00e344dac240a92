import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import JobGraphGenerator
from penstock.graph.stream_graph import StreamGraphGenerator
from penstock.testing import MiniCluster


class RecordingExecutor:
    """Takes jobs and runs none of them."""

    def __init__(self):
        self.jobs = []
        self.closed = False

    def submit(self, sinks, settings):
        self.jobs.append((sinks, settings))

    def close(self):
        self.closed = True


@pytest.fixture
def executor():
    return RecordingExecutor()


@pytest.fixture
def env(executor):
    """Builds graphs; nothing is executed."""
    return StreamExecutionEnvironment(executor=executor).set_parallelism(2)


@pytest.fixture
def running_env():
    """Executes in this process."""
    return StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(2)


@pytest.fixture
def nodes():
    """The operators of an environment's job, by name."""

    def build(env):
        settings = env.job_settings(None)
        return {node.name: node for node in StreamGraphGenerator(env.sinks, settings).generate().nodes}

    return build


@pytest.fixture
def vertices():
    """The tasks of an environment's job: (name, parallelism)."""

    def build(env):
        settings = env.job_settings(None)
        graph = JobGraphGenerator(StreamGraphGenerator(env.sinks, settings).generate(), settings).generate()
        return [(vertex.name, vertex.parallelism) for vertex in graph.vertices]

    return build


@pytest.fixture
def collected():
    """The records of a stream."""
    return lambda stream: list(stream.execute_and_collect())
