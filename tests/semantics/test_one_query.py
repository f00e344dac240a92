"""Three sources, two key_bys in sequence, a side output, a union, a broadcast stream and three sinks: one query."""

import json

import pytest

from penstock.common import Types
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
LARGE = OutputTag("large orders")


class RunningTotal(KeyedProcessFunction):
    """The total of a customer so far; large orders to the side."""

    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT(), 0))

    def process_element(self, value, ctx):
        customer, country, amount = value
        if amount >= 100:
            ctx.output(LARGE, customer)
        self.total.update(self.total.value() + amount)
        yield country, customer, self.total.value()


class OverLimit(KeyedBroadcastProcessFunction):
    """Remembers the best customer of a country, and the limits that were broadcast."""

    def open(self, runtime_context: RuntimeContext):
        self.best = runtime_context.get_state(ValueStateDescriptor("best", Types.INT(), 0))

    def process_element(self, value, ctx):
        country, _, total = value
        self.best.update(max(self.best.value(), total))
        yield country, self.best.value()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LIMITS).put(*value)


class FileSink(Sink):
    """Writes one file for every checkpoint, when it is committed."""

    def __init__(self, directory):
        self.directory = directory

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        return _FileCommitter(self.directory)


class _FileCommitter(Committer):
    def __init__(self, directory):
        self.directory = directory

    def commit(self, committables, checkpoint_id):
        (self.directory / f"{checkpoint_id}.json").write_text(json.dumps(committables))


def build(env, directory):
    """The job; returns its collected streams."""
    shop = env.from_collection([("ann", "fr", 10), ("bob", "de", 150), ("ann", "fr", 200)])
    web = env.from_sequence(1, 12).map(lambda n: (f"user {n % 3}", "de" if n % 3 else "fr", n))
    limits = env.from_collection([("fr", 50), ("de", 500)])
    totals = shop.union(web).key_by(0).process(RunningTotal()).name("totals").uid("totals")
    best = totals.key_by(0).connect(limits.broadcast(LIMITS)).process(OverLimit()).name("best").uid("best")
    large = totals.get_side_output(LARGE)
    large.sink_to(FileSink(directory)).name("files")
    totals.print().name("printed")
    return best


@pytest.mark.on_spark((4, "STREAMING"), (1, "BATCH"))
def test_it_runs(env, run, tmp_path, capsys, variant):
    best = run(build(env, tmp_path))
    assert {country: max(total for c, total in best if c == country) for country in ("fr", "de")} == {
        "fr": 210,
        "de": 150,
    }
    assert len(best) == 15
    files = sorted(tmp_path.glob("*.json"))
    assert sorted(customer for file in files for customer in json.loads(file.read_text())) == ["ann", "bob"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 15
    assert all(("> " in line) == (variant.parallelism > 1) for line in lines)


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_its_plan_can_be_printed(env, variant, tmp_path):
    build(env, tmp_path).print().name("best printed")
    plan = json.loads(env.get_execution_plan())
    nodes = {node["type"]: node for node in plan["nodes"]}
    by_pact = [node["pact"] for node in plan["nodes"]]
    assert by_pact.count("Data Source") == 3
    assert by_pact.count("Data Sink") == 3
    assert nodes["totals"]["parallelism"] == variant.parallelism
    assert nodes["totals"]["uid"] == "totals"
    assert [edge["ship_strategy"] for edge in nodes["totals"]["predecessors"]] == ["HASH", "HASH"]  # the union
    first, second = nodes["best"]["predecessors"]
    assert (first["ship_strategy"], first["side"]) == ("HASH", "first")
    assert (second["ship_strategy"], second["side"]) == ("BROADCAST", "second")
    (to_files,) = nodes["files: Writer"]["predecessors"]
    assert to_files["side_output"] == "large orders"
    assert to_files["id"] == nodes["totals"]["id"]
    # Sources -> totals -> best: two exchanges, so two stages behind the sources, all in one query.
    assert plan["stages"] == 2
    assert plan["channels"] == variant.parallelism
    assert {task["stage"] for task in plan["tasks"]} == {0, 1, 2}
    assert sum(len(task["inputs"]) for task in plan["tasks"]) >= 4


@pytest.mark.spark
def test_it_is_one_streaming_query_on_spark(spark, tmp_path):
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage((tmp_path / "checkpoint").as_uri())
    (tmp_path / "files").mkdir()
    build(env, tmp_path / "files").sink_to(FileSink(tmp_path / "files")).name("more files")
    env.execute("one query")
    # One query has one checkpoint: its offsets, its commits, and the state of its two stages.
    checkpoints = [path.parent for path in tmp_path.rglob("offsets")]
    assert len(checkpoints) == 1
    assert sorted(path.name for path in (checkpoints[0] / "state").iterdir() if path.name.isdigit()) == ["0", "1"]
    assert [path.name for path in (checkpoints[0] / "commits").iterdir() if path.name.isdigit()]
