"""Kinesis over HTTP: a moto server that tests talk to with boto3, and that misbehaves when it is told to.

moto's streams are patched where they differ from those of AWS: a shard that was split or merged takes no more records,
keeps those it has, and has no next iterator behind its last record; and requests of several threads lose nothing.
"""

import contextlib
import logging
import threading
from collections import Counter

import boto3
import pytest
from moto.core.exceptions import JsonRESTError
from moto.firehose.models import FirehoseBackend
from moto.kinesis.models import KinesisBackend, Stream
from moto.kinesis.utils import decompose_shard_iterator
from moto.server import ThreadedMotoServer

CREDENTIALS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
HASH_KEYS = 1 << 128


class Faults:
    """What the server refuses, and what it has seen."""

    def __init__(self):
        self.busy = Counter()  # by operation: how many calls are refused
        self.expired = 0  # how many iterators are said to have expired
        self.refuse = lambda record: False  # which records of a batch are refused
        self.requests = []  # records of each batch that was written
        self.together = 0  # requests at once, at most
        self.hold = None  # an event that batches wait for

    def check(self, operation):
        if self.busy[operation] > 0:
            self.busy[operation] -= 1
            raise JsonRESTError("ProvisionedThroughputExceededException", "slow down")


class KinesisServer:
    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.faults = Faults()
        self.client = self.new_client("kinesis")

    def new_client(self, service):
        return boto3.client(service, region_name="eu-west-1", endpoint_url=self.endpoint, **CREDENTIALS)

    def properties(self, **others):
        """Of a consumer or a sink; dots are written as underscores."""
        return {
            "aws.region": "eu-west-1",
            "aws.endpoint": self.endpoint,
            "aws.credentials.provider.basic.accesskeyid": "key",
            "aws.credentials.provider.basic.secretkey": "secret",
            **{key.replace("_", "."): str(value) for key, value in others.items()},
        }

    def create(self, stream, shards=2):
        self.client.create_stream(StreamName=stream, ShardCount=shards)

    def put(self, stream, values, shard=None):
        """Each value under itself as partition key, or all of them into an open shard."""
        where = {} if shard is None else {"ExplicitHashKey": self._hash_key(stream, shard)}
        for low in range(0, len(values), 500):
            records = [
                {"Data": str(value).encode(), "PartitionKey": str(value), **where} for value in values[low : low + 500]
            ]
            self.client.put_records(StreamName=stream, Records=records)

    def split(self, stream, shard):
        first, last = self._range(stream, shard)
        self.client.split_shard(
            StreamName=stream, ShardToSplit=shard_id(shard), NewStartingHashKey=str((first + last) // 2)
        )

    def merge(self, stream, left, right):
        self.client.merge_shards(StreamName=stream, ShardToMerge=shard_id(left), AdjacentShardToMerge=shard_id(right))

    def contents(self, stream):
        """By shard, the (partition key, data) in it."""
        found = {}
        for shard in self.client.list_shards(StreamName=stream)["Shards"]:
            iterator = self.client.get_shard_iterator(
                StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            records = self.client.get_records(ShardIterator=iterator)["Records"]
            found[shard["ShardId"]] = [(one["PartitionKey"], one["Data"].decode()) for one in records]
        return found

    def data(self, stream):
        return [data for records in self.contents(stream).values() for _, data in records]

    def _range(self, stream, shard):
        (found,) = [
            one["HashKeyRange"]
            for one in self.client.list_shards(StreamName=stream)["Shards"]
            if one["ShardId"] == shard_id(shard)
        ]
        return int(found["StartingHashKey"]), int(found["EndingHashKey"])

    def _hash_key(self, stream, shard):
        first, last = self._range(stream, shard)
        return str((first + last) // 2 + 1)


def shard_id(number):
    return f"shardId-{number:012}"


@contextlib.contextmanager
def kinesis_server():
    """The server, in threads of this process."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for every request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = KinesisServer(f"http://{host}:{port}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_MAX_ATTEMPTS", "1")  # boto3 would wait for seconds before the test sees a fault
        _like_aws(patch)
        _with_faults(patch, found)
        try:
            yield found
        finally:
            server.stop()


def _like_aws(patch):
    def shard_for_key(stream, partition_key, explicit_hash_key, *, original=Stream.get_shard_for_key):
        everything = stream.shards
        stream.shards = {name: shard for name, shard in everything.items() if shard.is_open}
        try:
            return original(stream, partition_key, explicit_hash_key)
        finally:
            stream.shards = everything

    def split(stream, shard_to_split, new_starting_hash_key, *, original=Stream.split_shard):
        shard = stream.shards[shard_to_split]
        records, shard.records = shard.records, {}
        original(stream, shard_to_split, new_starting_hash_key)
        shard.records = records

    def merge(stream, left, right, *, original=Stream.merge_shards):
        original(stream, left, right)
        stream.shards[max(stream.shards)].records.clear()

    def records(backend, stream_arn, shard_iterator, limit, *, original=KinesisBackend.get_records):
        following, found, behind = original(backend, stream_arn, shard_iterator, limit)
        after = original(backend, stream_arn, following, 1)[1]
        shard = _shard_of(backend, stream_arn, following)
        return (None if not shard.is_open and not after else following), found, behind

    patch.setattr(Stream, "get_shard_for_key", shard_for_key)
    patch.setattr(Stream, "split_shard", split)
    patch.setattr(Stream, "merge_shards", merge)
    patch.setattr(KinesisBackend, "get_records", records)


def _shard_of(backend, stream_arn, iterator):
    stream, shard, _ = decompose_shard_iterator(iterator)
    return backend.describe_stream(stream_arn=stream_arn, stream_name=stream).get_shard(shard)


def _with_faults(patch, server):
    lock, under_way = threading.Lock(), Counter()

    def get_records(backend, stream_arn, shard_iterator, limit, *, original=KinesisBackend.get_records):
        server.faults.check("get_records")
        if server.faults.expired > 0:
            server.faults.expired -= 1
            raise JsonRESTError("ExpiredIteratorException", "too old")
        return original(backend, stream_arn, shard_iterator, limit)

    def list_shards(backend, *arguments, original=KinesisBackend.list_shards, **options):
        server.faults.check("list_shards")
        return original(backend, *arguments, **options)

    def write(original, records, failed_count, results, answer):
        with lock:
            under_way["now"] += 1
            server.faults.together = max(server.faults.together, under_way["now"])
        try:
            if server.faults.hold is not None:
                server.faults.hold.wait(30)
            with lock:
                server.faults.check("write")
                server.faults.requests.append(records)
                taken = [record for record in records if not server.faults.refuse(record)]
                done = iter(original(taken)[results] if taken else [])
        finally:
            with lock:
                under_way["now"] -= 1
        refused = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow down"}
        outcomes = [next(done) if any(record is one for one in taken) else refused for record in records]
        return {**answer, failed_count: len(records) - len(taken), results: outcomes}

    def put_records(backend, stream_arn, stream_name, records, *, original=KinesisBackend.put_records):
        backend.describe_stream(stream_arn=stream_arn, stream_name=stream_name)
        return write(
            lambda taken: original(backend, stream_arn, stream_name, taken), records, "FailedRecordCount", "Records", {}
        )

    def put_batch(backend, delivery_stream_name, records, *, original=FirehoseBackend.put_record_batch):
        def send(taken):
            return original(backend, delivery_stream_name, taken)

        if delivery_stream_name not in backend.delivery_streams:
            return send(records)
        return write(send, records, "FailedPutCount", "RequestResponses", {"Encrypted": False})

    patch.setattr(KinesisBackend, "get_records", get_records)
    patch.setattr(KinesisBackend, "list_shards", list_shards)
    patch.setattr(KinesisBackend, "put_records", put_records)
    patch.setattr(FirehoseBackend, "put_record_batch", put_batch)
