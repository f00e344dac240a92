"""Whatever a source, a sink or a watermark strategy of the user raises: the error names it and his own line."""

import pytest
from support import BY_SECOND_FIELD, Script

from penstock.common import WatermarkStrategy
from penstock.common.errors import PenstockError
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.core.sink import Committer, Sink, SinkWriter
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator

pytestmark = pytest.mark.variants(executors=["warm"], parallelism=[1], modes=["STREAMING"])


def boom(*_args):
    raise ValueError("boom of the user")


def numbers(env):
    return env.from_collection([("a", 1), ("b", 2), ("a", 13)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)


class Writer(SinkWriter):
    def __init__(self, method):
        self.method = method

    def _call(self, method):
        if method == self.method:
            boom()

    def write_batch(self, values, timestamps):
        self._call("write")

    def flush(self, end_of_input):
        self._call("flush")

    def prepare_commit(self):
        self._call("prepare_commit")
        return [1]

    def close(self):
        self._call("close")


class FailingCommitter(Committer):
    def commit(self, committables, checkpoint_id):
        boom()


class FailingSink(Sink):
    def __init__(self, method):
        self.method = method

    def create_writer(self, context):
        if self.method == "create_writer":
            boom()
        return Writer(self.method)

    def create_committer(self):
        return FailingCommitter() if self.method == "commit" else None


class FailingSource(Source):
    def __init__(self, method):
        self.method = method

    def create_enumerator(self, parallelism):
        return FailingEnumerator(self.method)

    def create_reader(self):
        if self.method == "create_reader":
            boom()
        return FailingReader(self.method)

    def initial_offset(self, split):
        return 0


class FailingEnumerator(SplitEnumerator):
    def __init__(self, method):
        self.method = method

    def discover_splits(self):
        if self.method == "discover_splits":
            boom()
        return [SourceSplit("only")]

    def latest_offset(self, split, start_offset, max_records):
        if self.method == "latest_offset":
            boom()
        return 1

    def is_finished(self, split, offset):
        return offset == 1

    def prepare(self, split, start_offset, end_offset):
        if self.method == "prepare":
            boom()
        return split

    def commit(self, offsets):
        if self.method == "commit":
            boom()


class FailingReader(SourceReader):
    def __init__(self, method):
        self.method = method

    def open(self, runtime_context):
        if self.method == "open":
            boom()

    def read(self, split, start_offset, end_offset):
        if self.method == "read":
            boom()
        yield [1], None

    def close(self):
        if self.method == "close":
            boom()


class FailingGenerator(WatermarkGenerator):
    def __init__(self, method):
        self.method = method

    def on_event(self, event, event_timestamp, output):
        if self.method == "on_event":
            boom()

    def on_periodic_emit(self, output):
        if self.method == "on_periodic_emit":
            boom()


def from_failing(env, method):
    return env.from_source(FailingSource(method), WatermarkStrategy.no_watermarks(), "Broken")


CASES = {
    "timestamp assigner": lambda env: env.from_collection([1]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(boom)
    ),
    "on_event": lambda env: numbers(env).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_generator(lambda ctx: FailingGenerator("on_event"))
    ),
    "on_event of a split": lambda env: env.from_source(
        Script([1]), WatermarkStrategy.for_generator(lambda ctx: FailingGenerator("on_event")), "script"
    ),
    "on_periodic_emit": lambda env: numbers(env).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_generator(lambda ctx: FailingGenerator("on_periodic_emit"))
    ),
    **{
        f"source {method}": lambda env, method=method: from_failing(env, method)
        for method in (
            "discover_splits",
            "latest_offset",
            "prepare",
            "create_reader",
            "open",
            "read",
            "commit",
            "close",
        )
    },
}
SINKS = ["create_writer", "write", "flush", "prepare_commit", "commit", "close"]


@pytest.mark.parametrize("name", CASES)
def test_a_failing_source_or_strategy_is_named(env, name):
    stream = CASES[name](env)
    operator = stream.get_transformation().name
    stream.add_sink(lambda value: None)
    with pytest.raises(PenstockError) as caught:
        env.execute()
    text = str(caught.value)
    assert f"'{operator}'" in text
    assert "penstock/runtime" not in text
    assert "boom of the user" in text


@pytest.mark.parametrize("method", SINKS)
def test_a_failing_sink_is_named(env, method):
    numbers(env).sink_to(FailingSink(method))
    with pytest.raises(PenstockError, match="Sink: FailingSink") as caught:
        env.execute()
    assert "boom of the user" in str(caught.value)
