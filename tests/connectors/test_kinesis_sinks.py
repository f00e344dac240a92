"""The sinks into Kinesis data streams and Firehose, against an HTTP server: batches, retries, limits, at least once."""

import threading

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from crashing import TROUBLE, Crashing, troublesome, wait_until
from tests.connectors.kinesis_server import kinesis_server

from penstock.common import SimpleStringSchema
from penstock.common.errors import InvalidProgramError
from penstock.connectors.kinesis import (
    KinesisError,
    KinesisFirehoseSink,
    KinesisStreamsSink,
    PartitionKeyGenerator,
    buffering,
    client,
)
from penstock.core.sink import WriterInitContext
from penstock.datastream import StreamExecutionEnvironment
from penstock.metrics import MetricGroup
from penstock.testing import MiniCluster


@pytest.fixture(scope="module")
def running():
    with kinesis_server() as found:
        yield found


@pytest.fixture
def server(running, monkeypatch):
    monkeypatch.setattr(buffering, "_FIRST_PAUSE_SECONDS", 0.001)
    running.faults.__init__()
    return running


def streams(server, stream, **settings):
    builder = KinesisStreamsSink.builder().set_stream_name(stream).set_serialization_schema(SimpleStringSchema())
    builder.set_kinesis_client_properties(server.properties())
    builder.set_partition_key_generator(PartitionKeyGenerator(str))
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    return builder.build()


def firehose(server, stream, **settings):
    builder = KinesisFirehoseSink.builder().set_delivery_stream_name(stream)
    builder.set_serialization_schema(SimpleStringSchema()).set_firehose_client_properties(server.properties())
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    return builder.build()


def run(sink, values, parallelism=2):
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(parallelism)
    env.from_collection(values).rebalance().sink_to(sink)
    env.execute()


def writer(sink, metrics=None):
    return sink.create_writer(WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=1, metric_group=metrics))


# -- data streams ---------------------------------------------------------------------------------------------------


def test_every_record_arrives_under_its_partition_key(server):
    server.create("keys")
    run(streams(server, "keys"), list(range(50)))
    found = [pair for shard in server.contents("keys").values() for pair in shard]
    assert sorted(found) == sorted((str(n), str(n)) for n in range(50))


def test_a_fixed_key_is_the_index_of_the_task_and_random_keys_use_all_shards(server):
    server.create("fixed", shards=4)
    run(streams(server, "fixed", partition_key_generator=PartitionKeyGenerator.fixed()), list(range(40)), 2)
    found = server.contents("fixed")
    assert sorted(len(shard) for shard in found.values())[-2:] in ([20, 20], [0, 40])
    assert {key for shard in found.values() for key, _ in shard} == {"0", "1"}
    server.create("random", shards=4)
    run(streams(server, "random", partition_key_generator=PartitionKeyGenerator.random()), list(range(200)))
    found = server.contents("random")
    assert all(found.values())
    assert len({key for shard in found.values() for key, _ in shard}) == 200


def test_a_batch_that_is_repeated_after_a_crash_writes_at_least_once(server, tmp_path):
    server.create("crash")

    def build(env):
        env.from_sequence(0, 29).sink_to(streams(server, "crash"))
        env.from_sequence(0, 29).map(troublesome).print()

    TROUBLE[14] = True
    assert Crashing(tmp_path, build, max_records=5, parallelism=1).run() == 1
    found = [int(one) for one in server.data("crash")]
    assert set(found) == set(range(30))
    assert 30 <= len(found) < 60


# -- what is refused ------------------------------------------------------------------------------------------------


def test_records_that_are_refused_are_sent_again_and_the_others_are_not(server):
    server.create("refused")
    times = {}

    def refuse(record):
        key = record["PartitionKey"]
        times[key] = times.get(key, 0) + 1
        return int(key) % 3 == 0 and times[key] <= 2

    server.faults.refuse = refuse
    metrics = MetricGroup()
    sink = writer(streams(server, "refused", max_batch_size=10), metrics)
    sink.write_batch(list(range(30)), None)
    sink.flush(end_of_input=True)
    sink.close()
    assert sorted(map(int, server.data("refused"))) == list(range(30))
    assert metrics.snapshot()["numRecordsSendErrors"] == 20


def test_a_request_that_fails_as_a_whole_is_sent_again(server):
    server.create("whole")
    server.faults.busy["write"] = 3
    run(streams(server, "whole"), list(range(20)))
    assert sorted(map(int, server.data("whole"))) == list(range(20))


@pytest.mark.parametrize("kind", [streams, firehose])
def test_a_refused_record_fails_the_job_if_that_is_wanted(server, kind):
    name = f"strict-{kind.__name__}"
    server.create(name)
    deliver_to(server, name)
    server.faults.refuse = lambda record: True
    with pytest.raises(KinesisError, match=r"records were rejected by .*strict-\w+': Provisioned.*: slow down"):
        run(kind(server, name, fail_on_error=True), [1, 2, 3])


@pytest.mark.parametrize("kind", [streams, firehose])
def test_a_stream_that_is_not_there_fails_the_job_and_is_not_tried_for_ever(server, kind):
    with pytest.raises(KinesisError, match=r"cannot write to .*stream 'nowhere': ResourceNotFoundException"):
        run(kind(server, "nowhere"), [1])


def test_a_service_that_is_away_for_a_while_is_waited_for(server, monkeypatch):
    server.create("away")
    away = streams(server, "away")
    real, failures = client.new_client, []

    class Flaky:
        def __init__(self, service, properties):
            self.client = real(service, properties)

        def put_records(self, **arguments):
            if len(failures) < 3:
                failures.append(arguments)
                raise EndpointConnectionError(endpoint_url="http://away")
            return self.client.put_records(**arguments)

    monkeypatch.setattr("penstock.connectors.kinesis.streams_sink.new_client", Flaky)
    run(away, [1, 2, 3], parallelism=1)
    assert sorted(server.data("away")) == ["1", "2", "3"]
    assert len(failures) == 3


# -- batches --------------------------------------------------------------------------------------------------------


def test_requests_have_no_more_records_and_bytes_than_told(server):
    server.create("sizes")
    run(streams(server, "sizes", max_batch_size=7), list(range(40)), parallelism=1)
    assert max(map(len, server.faults.requests)) == 7
    server.faults.requests.clear()
    settings = {"max_batch_size_in_bytes": 100, "max_record_size_in_bytes": 100}
    run(streams(server, "sizes", **settings), ["x" * 10] * 40, parallelism=1)
    assert {len(request) for request in server.faults.requests} == {5}  # key and data have ten bytes each


def test_no_more_requests_are_under_way_than_told(server):
    server.create("flight")
    server.faults.hold = threading.Event()
    sink = writer(streams(server, "flight", max_in_flight_requests=3, max_batch_size=2))
    sink.write_batch(list(range(40)), None)
    wait_until(lambda: server.faults.together == 3)
    server.faults.hold.set()
    sink.flush(end_of_input=True)
    sink.close()
    assert server.faults.together == 3
    assert sorted(map(int, server.data("flight"))) == list(range(40))


def test_writing_waits_while_the_buffer_is_full(server):
    server.create("full")
    server.faults.hold = threading.Event()
    sink = writer(streams(server, "full", max_in_flight_requests=1, max_batch_size=4, max_buffered_requests=8))
    written = []

    def write():
        for number in range(30):
            sink.write_batch([number], None)
            written.append(number)
        sink.flush(end_of_input=True)

    thread = threading.Thread(target=write)
    thread.start()
    wait_until(lambda: len(written) == 12)  # one request under way, and what fits into the buffer
    thread.join(0.05)
    assert len(written) == 12
    server.faults.hold.set()
    thread.join()
    sink.close()
    assert sorted(map(int, server.data("full"))) == list(range(30))


def test_a_record_that_has_waited_long_enough_is_sent_though_the_batch_is_not_full(server):
    server.create("timer")
    sink = writer(streams(server, "timer", max_time_in_buffer_ms=20))
    for number in range(2):
        sink.write_batch([number], None)
        wait_until(lambda number=number: server.data("timer").count(str(number)) == 1)
    sink.close()


def test_a_record_that_is_too_large_fails_the_job_and_is_shown(server):
    server.create("large")
    with pytest.raises(KinesisError, match=r"a record of 22 bytes is larger than max_record_size_in_bytes, 20"):
        run(streams(server, "large", max_record_size_in_bytes=20), ["x" * 11])


def test_a_partition_key_that_kinesis_would_refuse_fails_the_job(server):
    server.create("long")
    for bad in ("", "k" * 257, 7):
        sink = streams(server, "long", partition_key_generator=PartitionKeyGenerator(lambda value, bad=bad: bad))
        with pytest.raises(KinesisError, match="a partition key must have 1 to 256 characters"):
            run(sink, ["x"])


# -- Firehose -------------------------------------------------------------------------------------------------------


def deliver_to(server, name):
    """A delivery stream into a bucket of the same name."""
    bucket = name.lower()
    place = {"LocationConstraint": "eu-west-1"}
    server.new_client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration=place)
    target = {"RoleARN": "arn:aws:iam::123456789012:role/any", "BucketARN": f"arn:aws:s3:::{bucket}"}
    server.new_client("firehose").create_delivery_stream(
        DeliveryStreamName=name, ExtendedS3DestinationConfiguration=target
    )


def delivered(server, name):
    s3 = server.new_client("s3")
    objects = s3.list_objects_v2(Bucket=name).get("Contents", [])
    return b"".join(s3.get_object(Bucket=name, Key=one["Key"])["Body"].read() for one in objects).decode()


def test_every_record_is_delivered_by_firehose_though_some_are_refused_first(server):
    deliver_to(server, "archive")
    refused = []

    def refuse(record):
        if len(refused) < 5 and record["Data"] not in refused:
            refused.append(record["Data"])
            return True
        return False

    server.faults.refuse = refuse
    run(firehose(server, "archive", max_batch_size=6), [f"<{n}>" for n in range(25)], parallelism=1)
    assert sorted(delivered(server, "archive")[1:-1].split("><"), key=int) == [str(n) for n in range(25)]
    assert len(refused) == 5
    assert max(map(len, server.faults.requests)) == 6


# -- settings -------------------------------------------------------------------------------------------------------


def test_a_builder_says_what_is_missing(server):
    builder = KinesisStreamsSink.builder()
    for step, reason in (
        (lambda: builder.set_serialization_schema(SimpleStringSchema()), r"set_serialization_schema\(\)"),
        (lambda: builder.set_kinesis_client_properties(server.properties()), "client properties such as aws.region"),
        (lambda: builder.set_stream_name("stream"), r"set_stream_name\(\)"),
        (lambda: builder.set_partition_key_generator(PartitionKeyGenerator.random()), "set_partition_key_generator"),
    ):
        with pytest.raises(InvalidProgramError, match=reason):
            builder.build()
        step()
    builder.build()
    with pytest.raises(InvalidProgramError, match=r"needs set_delivery_stream_name\(\)"):
        (
            KinesisFirehoseSink.builder()
            .set_serialization_schema(SimpleStringSchema())
            .set_firehose_client_properties(server.properties())
            .build()
        )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_batch_size": 0}, r"set_max_batch_size\(\) takes a positive int, got 0"),
        ({"max_buffered_requests": 10}, "max_buffered_requests is less than max_batch_size"),
        ({"max_batch_size_in_bytes": 10}, "max_batch_size_in_bytes is less than max_record_size_in_bytes"),
        ({"stream_name": ["a"]}, "takes the name of a stream"),
        ({"partition_key_generator": str}, "expected a PartitionKeyGenerator"),
        ({"serialization_schema": str}, "expected a SerializationSchema"),
        ({"kinesis_client_properties": {}}, "needs the property aws.region"),
    ],
)
def test_a_wrong_setting_is_named(server, settings, reason):
    with pytest.raises(InvalidProgramError, match=reason):
        streams(server, "stream", **settings)


def test_credentials_come_from_where_the_properties_say(server, tmp_path, monkeypatch):
    def keys(**properties):
        given = {"aws.region": "eu-west-1", "aws.endpoint": server.endpoint}
        named = {f"aws.credentials.provider{key}": value for key, value in properties.items()}
        found = client.new_client("kinesis", client.check_properties({**given, **named}))
        return found._request_signer._credentials.access_key

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    file = tmp_path / "credentials"
    file.write_text("[mine]\naws_access_key_id = profile\naws_secret_access_key = secret\n")
    basic = {".basic.accesskeyid": "basic", ".basic.secretkey": "secret"}
    role = {".role.arn": "arn:aws:iam::123456789012:role/reader", ".role.stsEndpoint": server.endpoint}
    assert keys() == keys(**{"": "AUTO"}) == keys(**{"": "ENV_VAR"}) == "environment"
    assert keys(**basic) == keys(**{"": "BASIC", **basic}) == "basic"
    assert keys(**{"": "ASSUME_ROLE", ".role.externalId": "xyz", **role}).startswith("ASIA")  # temporary ones
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert keys(**{"": "PROFILE", ".profile.path": str(file), ".profile.name": "mine"}) == "profile"


def test_errors_of_the_caller_are_told_from_a_service_that_is_busy():
    def answered(code, status):
        return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutRecords")

    assert client.is_busy(answered("InternalFailure", 500))
    assert client.is_busy(answered("LimitExceededException", 400))
    assert not client.is_busy(answered("AccessDeniedException", 400))
    assert not client.is_away(NoCredentialsError())
    assert client.is_away(ConnectionResetError())
