"""The Kinesis source against an HTTP server: every record once, in order, from where it should begin."""

import time
from itertools import pairwise

import pytest
from crashing import CommittedSink, Crashing
from tests.connectors.kinesis_server import kinesis_server, shard_id

from penstock.common import SimpleStringSchema
from penstock.common.errors import InvalidProgramError, PenstockError, UnsupportedFeatureError
from penstock.connectors.kinesis import (
    FlinkKinesisConsumer,
    KinesisDeserializationSchema,
    KinesisError,
    fetcher,
)
from penstock.connectors.kinesis.settings import ConsumerSettings
from penstock.connectors.kinesis.shards import SHARD_END, ShardSplit
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

FAST = {
    "flink_stream_initpos": "TRIM_HORIZON",
    "flink_shard_getrecords_intervalmillis": 1,
    "flink_shard_discovery_intervalmillis": 0,
}
SEEN = []
TROUBLE = set()


@pytest.fixture(scope="module")
def server():
    with kinesis_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _clean():
    SEEN.clear()
    TROUBLE.clear()


def see(value):
    if value in TROUBLE:
        TROUBLE.remove(value)
        raise RuntimeError("crash")
    SEEN.append(value)
    return value


class Program:
    """A job that reads streams; what it has read is in SEEN."""

    def __init__(self, server, streams, *, parallelism=2, max_records=None, schema=None, **properties):
        self.server, self.streams, self.schema = server, streams, schema or SimpleStringSchema()
        self.cluster = MiniCluster(max_records=max_records)
        self.parallelism = parallelism
        self.properties = server.properties(**{**FAST, **properties})
        self.job = None

    def start(self, snapshot=None):
        env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(self.parallelism)
        env.add_source(FlinkKinesisConsumer(self.streams, self.schema, self.properties)).map(see).print()
        self.job = self.cluster.start(env.sinks, env.job_settings("job"), snapshot=snapshot)
        return self

    def until(self, count):
        """Run batches until so many records were seen; a few more would be noticed."""
        self.wait(lambda: len(SEEN) >= count)
        for _ in range(3):
            self.job.run_batch()
        return self

    def wait(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            if not self.job.run_batch():
                assert time.monotonic() < deadline, f"still waiting, with {SEEN}"
                time.sleep(0.001)
        return self

    def stop(self):
        snapshot = self.job.snapshot()
        self.job.close()
        return snapshot

    @property
    def position(self):
        return {split_id: at.offset for source in self.job.offset.splits.values() for split_id, at in source.items()}


def numbers(*bounds):
    return [str(number) for number in range(*bounds)]


# -- every record once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_records", [2, 1_000])
def test_every_record_of_every_shard_is_read_once_and_in_order(server, max_records):
    name = f"order{max_records}"
    server.create(name, shards=3)
    for shard in range(3):
        server.put(name, numbers(100 * shard, 100 * shard + 40), shard)
    program = Program(server, name, max_records=max_records).start().until(120)
    server.put(name, numbers(40, 60), 0)
    program.until(140).stop()
    for shard, high in enumerate((60, 140, 240)):
        assert [int(one) for one in SEEN if int(one) // 100 == shard] == list(range(100 * shard, high))


def test_every_record_counts_once_whatever_crashes(server, tmp_path):
    server.create("crashes")
    server.put("crashes", numbers(60))
    sink = CommittedSink("kinesis")
    properties = server.properties(**FAST)

    def build(env):
        env.add_source(FlinkKinesisConsumer("crashes", SimpleStringSchema(), properties)).map(see).sink_to(sink)

    crashing = Crashing(tmp_path, build, max_records=6, receiving=True)
    TROUBLE.update({"0", "17", "18", "59"})  # all at once: either shard may be the first to arrive
    for _ in range(5):
        job = crashing.start()
        try:
            while len(sink.records) < 60:
                before = job.offset
                crashing.step(job)
                crashing.snapshot = job.snapshot()
        except PenstockError:
            if job.offset != before:
                crashing.snapshot = job.snapshot()
        job.coordinator.close()
    assert sorted(map(int, sink.records)) == list(range(60))
    assert not TROUBLE


def test_a_batch_that_a_new_driver_repeats_is_read_from_kinesis_and_has_the_same_records(server):
    server.create("again", shards=1)
    server.put("again", numbers(50), 0)
    server.split("again", 0)
    source = FlinkKinesisConsumer("again", SimpleStringSchema(), server.properties(**FAST))
    split = ShardSplit.of(f"again/{shard_id(0)}")
    ahead = fetcher.ShardFetcher(server.client, split, "TRIM_HORIZON", ConsumerSettings(interval_ms=1))
    ends = ["TRIM_HORIZON"]
    while ends[-1] != SHARD_END:
        end = ahead.plan(20)
        ends += [end] if end != ends[-1] else []
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    enumerator.start()
    found = []
    for start, end in pairwise(ends):
        prepared = enumerator.prepare(split, start, end)
        assert prepared.records is None
        read = [value for values, _ in reader.read(prepared, start, end) for value in values]
        assert read == [record[3].decode() for record in ahead.records_between(start, end)]
        found += read
    assert found == numbers(50)
    with pytest.raises(KinesisError, match="ends before AFTER:999, which was read before"):
        list(reader.read(split, "TRIM_HORIZON", "AFTER:999"))
    reader.close()
    enumerator.close()
    ahead.stop()


def test_what_was_read_ahead_is_bounded_by_what_the_job_takes(server, monkeypatch):
    monkeypatch.setattr(fetcher, "_CAPACITY_BYTES", 1_000)
    server.create("slow", shards=1)
    server.put("slow", numbers(100), 0)
    settings = ConsumerSettings(interval_ms=1, max_records=5)
    ahead = fetcher.ShardFetcher(server.client, ShardSplit.of(f"slow/{shard_id(0)}"), "TRIM_HORIZON", settings)
    read = 0
    while read < 100:
        assert len(ahead.waiting) <= 15
        before = ahead.position
        end = ahead.plan(7)
        read += len(ahead.records_between(before, end) or [])
        ahead.commit(end)
    ahead.stop()
    ahead.join()
    assert not ahead._thread.is_alive()


# -- shards that are split and merged -------------------------------------------------------------------------------


@pytest.mark.parametrize("max_records", [3, 1_000])
def test_shards_that_were_split_or_merged_are_read_before_those_that_take_their_place(server, max_records):
    name = f"reshard{max_records}"
    server.create(name, shards=1)
    server.put(name, numbers(0, 20), 0)
    server.split(name, 0)
    server.put(name, numbers(20, 30), 1)
    server.put(name, numbers(30, 40), 2)
    server.merge(name, 1, 2)
    server.put(name, numbers(40, 50), 3)
    Program(server, name, max_records=max_records).start().until(50).stop()
    seen = [int(one) for one in SEEN]
    assert sorted(seen) == list(range(50))
    assert seen[:20] == list(range(20))
    assert sorted(seen[20:40]) == list(range(20, 40))
    assert seen[40:] == list(range(40, 50))


def test_a_running_job_notices_that_shards_are_split(server):
    server.create("live", shards=1)
    server.put("live", numbers(10), 0)
    program = Program(server, "live").start().until(10)
    server.split("live", 0)
    server.put("live", numbers(10, 20), 1)
    server.put("live", numbers(20, 30), 2)
    program.until(30)
    assert program.position[f"live/{shard_id(0)}"] == SHARD_END
    program.stop()
    assert sorted(map(int, SEEN)) == list(range(30))


def test_a_job_goes_on_in_the_middle_of_a_split(server):
    server.create("middle", shards=1)
    server.put("middle", numbers(10), 0)
    server.split("middle", 0)
    server.put("middle", numbers(10, 20), 1)
    snapshot = Program(server, "middle", max_records=4).start().wait(lambda: len(SEEN) >= 4).stop()
    server.put("middle", numbers(20, 30), 2)
    program = Program(server, "middle", max_records=4).start(snapshot).until(30)
    snapshot = program.stop()
    assert sorted(map(int, SEEN)) == list(range(30))
    server.put("middle", numbers(30, 33), 2)
    Program(server, "middle").start(snapshot).until(33).stop()
    assert sorted(map(int, SEEN)) == list(range(33))


def test_a_shard_that_is_gone_since_the_checkpoint_ends_there_and_holds_nothing_back(server):
    server.create("gone", shards=1)
    server.put("gone", numbers(5), 0)
    snapshot = Program(server, "gone").start().until(5).stop()
    server.client.delete_stream(StreamName="gone")
    server.create("gone", shards=2)
    server.client.split_shard(StreamName="gone", ShardToSplit=shard_id(1), NewStartingHashKey=str((1 << 128) - 9))
    program = Program(server, ["gone", "gone"]).start(snapshot)
    enumerator = program.job.coordinator.sources[0].enumerator
    shards = enumerator._list_shards("gone")
    enumerator._list_shards = lambda stream: [shard for shard in shards if shard.shard_id != shard_id(0)]
    server.put("gone", numbers(5, 10), 2)
    program.until(10)
    assert program.position[f"gone/{shard_id(0)}"] == SHARD_END
    program.stop()


# -- where to begin -------------------------------------------------------------------------------------------------


def test_latest_begins_with_what_comes_also_in_shards_that_were_split_before(server):
    server.create("latest", shards=1)
    server.put("latest", ["old"], 0)
    server.split("latest", 0)
    server.put("latest", ["old too"], 1)
    time.sleep(0.01)  # records have times in milliseconds
    program = Program(server, "latest", flink_stream_initpos="LATEST").start()
    program.wait(lambda: len(program.position) == 4)  # three shards, and when it was
    server.put("latest", ["new"], 1)
    server.put("latest", ["new too"], 2)
    program.until(2).stop()
    assert sorted(SEEN) == ["new", "new too"]


def test_latest_is_when_the_job_was_started_first_though_nothing_came_before_it_ended(server):
    server.create("later", shards=1)
    server.put("later", ["old"], 0)
    time.sleep(0.01)
    program = Program(server, "later", flink_stream_initpos="LATEST").start()
    snapshot = program.wait(lambda: len(program.position) == 2).stop()
    server.put("later", ["while it was away"], 0)
    server.split("later", 0)
    server.put("later", ["in a new shard"], 1)
    Program(server, "later", flink_stream_initpos="LATEST").start(snapshot).until(2).stop()
    assert SEEN == ["while it was away", "in a new shard"]


@pytest.mark.parametrize("form", ["seconds", "date", "pattern"])
def test_a_timestamp_begins_with_the_first_record_that_is_not_older(server, form):
    name = f"timestamp-{form}"
    server.create(name, shards=1)
    server.put(name, ["old"], 0)
    time.sleep(0.01)
    moment = time.time()
    time.sleep(0.01)
    server.put(name, ["new"], 0)
    date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03}"
    written, pattern = {
        "seconds": (f"{moment:.3f}", {}),
        "date": (date + "+00:00", {}),
        "pattern": (date.replace("T", " "), {"flink_stream_initpos_timestamp_format": "yyyy-MM-dd HH:mm:ss.SSS"}),
    }[form]
    program = Program(
        server, name, flink_stream_initpos="AT_TIMESTAMP", flink_stream_initpos_timestamp=written, **pattern
    )
    program.start().until(1).stop()
    assert SEEN == ["new"]


def test_several_streams_are_read_and_one_may_be_named_by_its_arn(server):
    server.create("first", shards=1)
    server.create("second", shards=1)
    server.put("first", ["a"])
    server.put("second", ["b"])
    arn = server.client.describe_stream_summary(StreamName="second")["StreamDescriptionSummary"]["StreamARN"]
    Program(server, ["first", arn]).start().until(2).stop()
    assert sorted(SEEN) == ["a", "b"]


# -- trouble --------------------------------------------------------------------------------------------------------


def test_a_busy_service_is_waited_for_and_expired_iterators_are_renewed(server, monkeypatch):
    monkeypatch.setattr(fetcher, "_FIRST_PAUSE_SECONDS", 0.001)
    server.create("busy", shards=1)
    program = Program(server, "busy").start()
    for low in range(0, 30, 10):
        server.faults.busy["get_records"] = 4
        server.faults.expired = 2
        server.put("busy", numbers(low, low + 10), 0)
        program.until(low + 10)
    server.faults.busy["list_shards"] = 3
    program.wait(lambda: server.faults.busy["list_shards"] == 0)
    program.stop()
    assert list(SEEN) == numbers(30)


@pytest.mark.parametrize("away", ["stream", "service"])
def test_a_stream_or_a_service_that_is_not_there_fails_the_job_with_the_reason(server, away):
    properties = {"aws_endpoint": "http://127.0.0.1:9"} if away == "service" else {}
    program = Program(server, "no-such-stream", **properties).start()
    with pytest.raises(PenstockError, match="cannot list the shards of no-such-stream: ") as error:
        program.until(1)
    assert ("ResourceNotFoundException" in str(error.value)) == (away == "stream")
    program.job.coordinator.close()


def test_a_stream_that_is_deleted_while_it_is_read_fails_the_job_with_the_reason(server):
    server.create("deleted", shards=1)
    server.put("deleted", ["a"])
    program = Program(server, "deleted", flink_shard_discovery_intervalmillis=1_000_000).start().until(1)
    server.client.delete_stream(StreamName="deleted")
    with pytest.raises(PenstockError, match=r"cannot read shard shardId-000000000000 of stream 'deleted': .*NotFound"):
        program.until(2)
    program.job.coordinator.close()


class Everything(KinesisDeserializationSchema):
    def open(self):
        self.opened = True

    def deserialize(self, record_value, partition_key, seq_num, approx_arrival_timestamp, stream, shard_id):
        assert self.opened
        if record_value == b"poison":
            raise ValueError("cannot read this")
        if record_value == b"nothing":
            return None
        return record_value, partition_key, seq_num, approx_arrival_timestamp, stream, shard_id


def test_a_schema_of_kinesis_gets_all_that_is_known_about_a_record(server):
    server.create("everything", shards=1)
    before = int(time.time() * 1000)
    server.put("everything", ["nothing", "a"], 0)
    program = Program(server, "everything", schema=Everything()).start().until(1)
    ((value, key, number, arrival, stream, shard),) = SEEN
    assert (value, key, number, stream, shard) == (b"a", "a", "2", "everything", shard_id(0))
    assert before <= arrival <= int(time.time() * 1000)
    server.put("everything", ["poison"], 0)
    with pytest.raises(KinesisError, match="record 3 of shard shardId-000000000000 of stream 'everything'"):
        program.until(2)
    program.job.coordinator.close()


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"aws.endpoint": None, "aws.region": None}, "needs the property aws.region"),
        ({"flink.stream.initpos": "EARLIEST"}, "must be one of LATEST, TRIM_HORIZON, AT_TIMESTAMP, not 'EARLIEST'"),
        ({"flink.stream.initpos": "AT_TIMESTAMP"}, "the property flink.stream.initpos.timestamp is needed"),
        (
            {"flink.stream.initpos": "AT_TIMESTAMP", "flink.stream.initpos.timestamp": "yesterday"},
            "'yesterday' is neither a date nor seconds",
        ),
        ({"flink.stream.recordpublisher": "EFO"}, "enhanced fan-out"),
        ({"flink.shard.getrecords.maxrecordcount": "20000"}, "must be from 1 to 10000"),
        ({"flink.shard.discovery.intervalmillis": "soon"}, "must be an integer, not 'soon'"),
        ({"flink.shard.getrecords.intervalmillis": "-1"}, "must not be negative"),
        ({"aws.credentials.provider": "MAGIC"}, "must be one of AUTO, BASIC"),
        ({"aws.credentials.provider": "ASSUME_ROLE"}, "provider.role.arn is needed"),
    ],
)
def test_a_wrong_property_is_named(server, properties, reason):
    given = {**server.properties(), **properties}
    given = {key: value for key, value in given.items() if value is not None}
    with pytest.raises((InvalidProgramError, UnsupportedFeatureError), match=reason):
        FlinkKinesisConsumer("stream", SimpleStringSchema(), given)


def test_streams_and_schemas_are_checked_where_the_job_is_written(server):
    with pytest.raises(InvalidProgramError, match="needs names of streams"):
        FlinkKinesisConsumer([], SimpleStringSchema(), server.properties())
    with pytest.raises(InvalidProgramError, match="a DeserializationSchema or a KinesisDeserializationSchema"):
        FlinkKinesisConsumer("stream", len, server.properties())
