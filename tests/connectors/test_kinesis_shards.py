"""Shards of a Kinesis consumer: subtasks, watermarks, event time that advances together; and packed records."""

import hashlib
import time

import pytest
from tests.connectors.kinesis_server import kinesis_server, shard_id

from penstock.common import Duration, SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors.kinesis import (
    FlinkKinesisConsumer,
    KinesisShard,
    KinesisShardAssigner,
    WatermarkTracker,
    alignment,
)
from penstock.connectors.kinesis.aggregation import unpack
from penstock.datastream import MapFunction, ProcessFunction, StreamExecutionEnvironment
from penstock.testing import MiniCluster

SEEN = []
HASH_KEYS = 1 << 128


@pytest.fixture(scope="module")
def server():
    with kinesis_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _clean():
    SEEN.clear()


def consumer(server, stream, **properties):
    fast = {
        "flink_stream_initpos": "TRIM_HORIZON",
        "flink_shard_getrecords_intervalmillis": 1,
        "flink_shard_discovery_intervalmillis": 0,
    }
    return FlinkKinesisConsumer(stream, SimpleStringSchema(), server.properties(**{**fast, **properties}))


def run(build, count, *, parallelism=1, max_records=None):
    """Run a job until so many things were seen; what each of its batches made visible."""
    cluster = MiniCluster(max_records=max_records)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
    build(env)
    job = cluster.start(env.sinks, env.job_settings("job"))
    deadline, batches = time.monotonic() + 60, []
    while len(SEEN) < count:
        before = len(SEEN)
        if not job.run_batch():
            assert time.monotonic() < deadline, f"still waiting, with {SEEN}"
            time.sleep(0.001)
        elif len(SEEN) > before:
            batches.append(SEEN[before:])
    job.close()
    return batches


# -- which subtask reads a shard ------------------------------------------------------------------------------------


class Place(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        SEEN.append((value, self.subtask))
        return value


def subtasks(server, stream, assigner, parallelism):
    source = consumer(server, stream).set_shard_assigner(assigner)
    run(lambda env: env.add_source(source).map(Place()).print(), 4, parallelism=parallelism)
    return [subtask for _, subtask in sorted(SEEN)]


@pytest.fixture(scope="module")
def four(server):
    """A stream of four shards, with the number of the shard in each."""
    server.create("four", shards=4)
    for shard in range(4):
        server.put("four", [str(shard)], shard)
    return "four"


def test_shards_are_spread_evenly_unless_told(server, four):
    assert sorted(subtasks(server, four, KinesisShardAssigner.default_shard_assigner(), 2)) == [0, 0, 1, 1]


def test_the_uniform_assigner_gives_every_subtask_an_equal_part_of_the_hash_keys(server, four):
    first, second, third, fourth = subtasks(server, four, KinesisShardAssigner.uniform_shard_assigner(), 2)
    assert first == second != third == fourth


def test_an_assigner_of_your_own_says_which_subtask_reads_a_shard(server, four):
    def last_first(shard, count):
        assert (shard.stream, count) == ("four", 3)
        return 3 - int(shard.shard_id[-1])

    assert subtasks(server, four, KinesisShardAssigner(last_first), 3) == [0, 2, 1, 0]  # modulo 3


def test_the_uniform_assigner_does_not_care_how_often_shards_were_split():
    assigner = KinesisShardAssigner.uniform_shard_assigner()
    parts = [KinesisShard("s", shard_id(n), n * HASH_KEYS // 16, (n + 1) * HASH_KEYS // 16 - 1) for n in range(16)]
    found = [assigner.assign(shard, 4) for shard in parts]
    assert [found.count(subtask) for subtask in sorted(set(found))] == [4, 4, 4, 4]


# -- event time -----------------------------------------------------------------------------------------------------


class Clock(ProcessFunction):
    def process_element(self, value, ctx):
        SEEN.append((value, ctx.timestamp(), ctx.timer_service().current_watermark()))


class Periodic:
    """Texts are timestamps; a watermark is the latest of them less 5."""

    def __init__(self):
        self.latest = None

    def extract_timestamp(self, element, previous_timestamp):
        self.latest = int(element) if self.latest is None else max(self.latest, int(element))
        return int(element)

    def get_current_watermark(self):
        return None if self.latest is None else self.latest - 5


@pytest.mark.parametrize(
    "assigner",
    [
        Periodic(),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(4)).with_timestamp_assigner(
            lambda value, _: int(value)
        ),
    ],
    ids=["assigner", "strategy"],
)
def test_a_watermark_assigner_gives_every_shard_a_watermark_and_the_least_counts(server, assigner):
    name = f"watermarks-{type(assigner).__name__}"
    server.create(name, shards=2)
    server.put(name, ["1000", "3000"], 0)
    server.put(name, ["2000"], 1)
    source = consumer(server, name).set_periodic_watermark_assigner(assigner)
    clocks = []

    def build(env):
        env.add_source(source).rebalance().process(Clock()).set_parallelism(1).print()

    cluster = MiniCluster()
    env = StreamExecutionEnvironment(executor=cluster)
    build(env)
    job = cluster.start(env.sinks, env.job_settings("job"))
    deadline = time.monotonic() + 60
    while not clocks or clocks[-1] != 1995:
        job.run_batch()
        server.put(name, ["0"], 1)  # late: the clock does not move for it
        clocks += [clock for _, _, clock in SEEN]
        assert time.monotonic() < deadline, clocks
    job.close()
    assert max(clocks) == 1995
    assert {(value, at) for value, at, _ in SEEN} >= {("1000", 1000), ("3000", 3000), ("2000", 2000), ("0", 0)}


def test_without_an_assigner_records_have_the_time_of_their_arrival(server):
    server.create("arrival", shards=1)
    before = int(time.time() * 1000)
    server.put("arrival", ["a"])
    run(lambda env: env.add_source(consumer(server, "arrival")).process(Clock()).print(), 1)
    assert before <= SEEN[0][1] <= int(time.time() * 1000)


def test_a_shard_without_records_holds_the_watermark_back_until_it_is_idle(server):
    server.create("idle", shards=2)
    server.put("idle", ["1000"], 0)
    source = consumer(server, "idle", flink_shard_idle_interval=20).set_periodic_watermark_assigner(Periodic())
    assert source.watermark_strategy.idle_timeout == 20
    cluster = MiniCluster()
    env = StreamExecutionEnvironment(executor=cluster)
    env.add_source(source).process(Clock()).print()
    job = cluster.start(env.sinks, env.job_settings("job"))
    deadline = time.monotonic() + 60
    while not SEEN or SEEN[-1][2] != 995:
        job.run_batch()
        server.put("idle", ["0"], 0)
        assert time.monotonic() < deadline, SEEN
    job.close()


def read(value):
    SEEN.append(int(value))
    return value


@pytest.mark.parametrize("aligned", [True, False])
def test_a_watermark_tracker_keeps_shards_together_in_event_time(server, aligned):
    name = f"aligned-{aligned}"
    server.create(name, shards=2)
    server.put(name, [str(1_000 * n) for n in range(50)], 0)
    server.put(name, [str(1_000 * n + 500) for n in range(50)], 1)
    source = consumer(server, name, flink_watermark_lookahead_millis=3_000).set_periodic_watermark_assigner(Periodic())
    if aligned:
        source.set_watermark_tracker(WatermarkTracker.job_manager_watermark_tracker(name))
    batches = run(lambda env: env.add_source(source).map(read).print(), 100)
    assert sorted(SEEN) == list(range(0, 50_000, 500))
    behind = [seen - min(set(range(0, 50_000, 500)) - set(SEEN[:at])) for at, seen in enumerate(SEEN)]
    # A batch is planned shard by shard: the first one does not know yet that the other one moves, too.
    assert (max(behind) <= 3_000 + max(len(batch) for batch in batches) * 500) if aligned else max(behind) > 40_000
    assert (len(batches) > 5) if aligned else (len(batches) < 5)
    assert not alignment._GROUPS


def test_sources_with_the_same_tracker_are_kept_together(server):
    sources = []
    for name, offset in (("together-a", 0), ("together-b", 500)):
        server.create(name, shards=1)
        server.put(name, [str(1_000 * n + offset) for n in range(40)], 0)
        source = consumer(server, name, flink_watermark_lookahead_millis=2_000)
        source.set_periodic_watermark_assigner(Periodic())
        sources.append(source.set_watermark_tracker(WatermarkTracker.job_manager_watermark_tracker("both", 1)))

    def build(env):
        env.add_source(sources[0]).union(env.add_source(sources[1])).map(read).print()

    batches = run(build, 80)
    assert sorted(SEEN) == list(range(0, 40_000, 500))
    assert len(batches) > 5
    assert all(max(batch) - min(batch) <= 4_500 for batch in batches)


def test_a_shard_that_has_no_records_holds_nobody_back(server):
    server.create("empty", shards=2)
    server.put("empty", [str(1_000 * n) for n in range(50)], 0)
    source = consumer(server, "empty", flink_watermark_lookahead_millis=5_000)
    source.set_periodic_watermark_assigner(Periodic())
    source.set_watermark_tracker(WatermarkTracker.job_manager_watermark_tracker("empty"))
    run(lambda env: env.add_source(source).map(read).print(), 50)
    assert list(range(0, 50_000, 1_000)) == SEEN


def test_what_is_not_an_assigner_or_a_tracker_is_refused(server):
    source = consumer(server, "stream")
    for call in (source.set_shard_assigner, source.set_watermark_tracker, source.set_periodic_watermark_assigner):
        with pytest.raises(InvalidProgramError, match="got 'this'"):
            call("this")
    with pytest.raises(InvalidProgramError, match="a shard assigner must be a function"):
        KinesisShardAssigner("this")
    with pytest.raises(InvalidProgramError, match="needs a name"):
        WatermarkTracker.job_manager_watermark_tracker("")
    source.set_watermark_tracker(WatermarkTracker.job_manager_watermark_tracker("name"))
    with pytest.raises(InvalidProgramError, match=r"call set_periodic_watermark_assigner\(\)"):
        source.create_enumerator(1)


# -- records that the Kinesis Producer Library has packed -----------------------------------------------------------


def varint(number):
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


def text(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def packed(pairs):
    """As AWS's document on the format of aggregated records has it."""
    keys = sorted({key for key, _ in pairs})
    records = [
        text(3, b"\x08" + varint(keys.index(key)) + b"\x10\x00" + text(3, data) + text(4, text(1, b"tag")))
        for key, data in pairs
    ]
    message = b"".join([*[text(1, key.encode()) for key in keys], text(2, b"12345"), *records])
    return b"\xf3\x89\x9a\xc2" + message + hashlib.md5(message).digest()


def test_packed_records_come_one_by_one_in_their_order(server):
    server.create("packed", shards=1)
    pairs = [("b", b"1"), ("a", b"2" * 300), ("b", b""), ("c", b"4")]
    put = server.client.put_record
    put(StreamName="packed", Data=packed(pairs), PartitionKey="x")
    put(StreamName="packed", Data=b"plain", PartitionKey="x")
    run(lambda env: env.add_source(consumer(server, "packed")).process(Clock()).print(), 5)
    assert [value for value, _, _ in SEEN] == ["1", "2" * 300, "", "4", "plain"]
    assert unpack("x", packed(pairs)) == pairs


def test_data_that_only_looks_packed_is_left_as_it_is():
    good = packed([("a", b"1")])
    for data in (good[:-1] + b"?", good[:10], b"\xf3\x89\x9a\xc2"):
        assert unpack("key", data) == [("key", data)]
