"""Queryable state: one key of a running job, from outside, out of a completed checkpoint (rules K01 to K12)."""

import importlib
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest
from support import Script

from penstock.common import Time, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, PenstockError, StateAccessError
from penstock.datastream import AggregateFunction, KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.queryable_state import QueryableStateClient
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.spark import query_server
from penstock.spark.query_server import QueryServer
from penstock.testing import ManualClock, MiniCluster


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Keeps(KeyedProcessFunction):
    def open(self, runtime_context):
        last = ValueStateDescriptor("last")
        last.set_queryable("last temperature")
        every = MapStateDescriptor("all")
        every.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        every.set_queryable("all temperatures")
        average = AggregatingStateDescriptor("average", Average())
        average.set_queryable("average temperature")
        self.last = runtime_context.get_state(last)
        self.all = runtime_context.get_map_state(every)
        self.average = runtime_context.get_aggregating_state(average)
        self.hidden = runtime_context.get_list_state(ListStateDescriptor("hidden"))

    def process_element(self, value, ctx):
        _, number = value
        self.last.update(number)
        self.all.put(number, "seen")
        self.average.add(number)
        self.hidden.add(number)


class SameName(KeyedProcessFunction):
    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("own")
        descriptor.set_queryable("not the only one")
        self.own = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.own.update(value[1])


def started(parallelism=3, cold=False):
    cluster = MiniCluster(clock=ManualClock(5), cold=cold)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
    source = Script([(key, n) for n in (1, 2, 6) for key in "abcdefg"], bounded=False)
    keyed = env.from_source(source, WatermarkStrategy.no_watermarks(), "Script").key_by(lambda v: v[0])
    keyed.process(Keeps()).uid("keeps").print()
    keyed.as_queryable_state("latest")
    keyed.process(SameName()).uid("same 1").print()
    keyed.process(SameName()).uid("same 2").print()
    keyed.count_window(100).reduce(lambda a, b: b).uid("windows").print()
    job = cluster.start(list(env.sinks), env.job_settings("job"))
    job.run()
    return job


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_an_answer_leaves_when_the_batch_that_gave_it_is_committed(cold):
    job = started(cold=cold)
    asked = job.queries.ask("last temperature", "c")
    assert not asked.done()
    assert job.run_batch()  # without input, for the query alone
    assert not job.run_batch()
    assert (asked.result().kind, asked.result().value) == ("value state", 6)


def test_a_name_or_key_that_is_unknown_is_an_error():
    job = started()
    unknown = job.queries.ask("lost temperature", "c")
    absent = job.queries.ask("last temperature", "z")
    hidden = job.queries.ask("hidden", "c")
    job.run()
    with pytest.raises(StateAccessError, match=r"no queryable state 'lost temperature': call set_queryable"):
        unknown.result()
    with pytest.raises(StateAccessError, match="no value for key 'z' in state 'last temperature'"):
        absent.result()
    with pytest.raises(StateAccessError, match="no queryable state 'hidden'"):
        hidden.result()
    job.queries.end("over")
    with pytest.raises(StateAccessError, match="over"):
        job.queries.ask("latest", "c").result()


def test_a_name_that_several_operators_have_is_nobodys():
    job = started()
    which, one = job.queries.ask("not the only one", "c"), job.queries.ask("own", "c", "same 2")
    job.run()
    with pytest.raises(StateAccessError, match="several operators of the job have queryable state 'not the only one'"):
        which.result()
    assert one.result().value == 6


@dataclass
class Changing:
    """A dataclass that is not frozen has no hash."""

    number: int


class KnownOnOneSide:
    """A class that the tasks of the job cannot import."""

    def __reduce__(self):
        return importlib.import_module, ("no_such_module",)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (Changing(1), "unhashable type: 'Changing'"),
        ((1, Changing(1)), "unhashable type: 'Changing'"),
        (float("nan"), "not equal to itself"),
        (KnownOnOneSide(), "No module named 'no_such_module'"),
        (threading.Lock(), "cannot pickle"),
    ],
    ids=["no hash", "in a tuple", "nan", "class", "no value"],
)
def test_a_key_that_cannot_be_one_is_the_askers_error_and_not_the_jobs(key, message):
    job = started()
    asked, other = job.queries.ask("last temperature", key), job.queries.ask("last temperature", "c")
    job.run()
    assert other.result().value == 6
    with pytest.raises(PenstockError, match=message):
        asked.result()


def test_what_has_expired_is_not_shown():
    job = started()
    job.coordinator._clock = ManualClock(3_600_006)  # nothing has been swept away yet
    asked = [job.queries.ask("all temperatures", key) for key in "abcdefg"]
    job.run()
    for each in asked:
        with pytest.raises(StateAccessError, match="there is no value for key"):
            each.result()


@pytest.fixture
def served():
    """A job that runs in a thread, and a client as another process would have it."""
    job, stop = started(), threading.Event()

    def run():
        while not stop.wait(0.001):
            job.run()

    thread = threading.Thread(target=run)
    thread.start()
    server = QueryServer.on_port(0)
    server.register("the job", job.queries)
    with QueryableStateClient("127.0.0.1", server.port) as client:
        yield client
    stop.set()
    thread.join()


def test_a_client_gets_a_read_only_state_of_the_queried_kind(served):
    value = served.get_kv_state("the job", "last temperature", "a", None, ValueStateDescriptor("any")).result(60)
    assert value.value() == 6
    mapped = served.get_kv_state("the job", "all temperatures", "b", None, MapStateDescriptor("any")).result(60)
    assert dict(mapped.items()) == {1: "seen", 2: "seen", 6: "seen"}
    average = AggregatingStateDescriptor("any", Average())
    assert served.get_kv_state("the job", "average temperature", "g", None, average).result(60).get() == 3
    latest = served.get_kv_state("the job", "latest", "d", None, ValueStateDescriptor("any")).result(60)
    assert latest.value() == ("d", 6)
    by_uid = served.get_kv_state("the job", "hidden", "e", None, ListStateDescriptor("any"), uid="keeps").result(60)
    assert list(by_uid.get()) == [1, 2, 6]
    with pytest.raises(StateAccessError, match="only be read"):
        by_uid.add(7)


ASKS = """
import sys
from penstock.datastream.queryable_state import QueryableStateClient
from penstock.datastream.state import ValueStateDescriptor

with QueryableStateClient("127.0.0.1", int(sys.argv[1])) as client:
    asked = [client.get_kv_state("the job", "latest", key, None, ValueStateDescriptor("any")) for key in "abc"]
    print([state.result(60).value() for state in asked])
"""


def test_another_process_can_ask(served):
    command = [sys.executable, "-c", ASKS, str(served._address[1])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert answer.stdout.strip() == "[('a', 6), ('b', 6), ('c', 6)]"


def test_what_cannot_be_answered_is_said(served):
    with pytest.raises(InvalidProgramError, match="'last temperature' is a value state and cannot be read as a list"):
        served.get_kv_state("the job", "last temperature", "a", None, ListStateDescriptor("any")).result(60)
    with pytest.raises(StateAccessError, match="no job other is running here"):
        served.get_kv_state("other", "last temperature", "a", None, ValueStateDescriptor("any")).result(60)
    with pytest.raises(StateAccessError, match="no queryable state server"):
        QueryableStateClient("127.0.0.1", 1).get_kv_state("x", "y", "a", None, ValueStateDescriptor("any")).result(60)
    with pytest.raises(StateAccessError, match="'window-contents' belongs to windows"):
        served.get_kv_state("the job", "window-contents", "a", None, ValueStateDescriptor("any"), uid="windows").result(
            60
        )
    with pytest.raises(StateAccessError, match="needs a state descriptor"):
        served.get_kv_state("the job", "latest", "a", None, "any")
    other = QueryableStateClient("127.0.0.1", 1, b"secret")
    with pytest.raises(StateAccessError, match="no queryable state server answers on"):
        other.get_kv_state("x", "y", "a", None, ValueStateDescriptor("any")).result(60)


def test_a_job_that_does_not_answer_is_said_to_be_busy_or_restarting(monkeypatch):
    monkeypatch.setattr(query_server, "_ANSWER_SECONDS", 0.01)
    server = QueryServer.on_port(0)
    server.register("restarting", started().queries)  # its batches never run
    with (
        QueryableStateClient("127.0.0.1", server.port) as client,
        pytest.raises(
            StateAccessError, match=r"restarting has not answered within .*: it is restarting, or its batches"
        ),
    ):
        client.get_kv_state("restarting", "latest", "a", None, ValueStateDescriptor("any")).result(60)
    with pytest.raises(StateAccessError, match="this client is shut down"):
        client.get_kv_state("restarting", "latest", "a", None, ValueStateDescriptor("any"))


def test_a_silent_or_invalid_client_does_not_delay_others(served):
    address, descriptor = served._address, ValueStateDescriptor("any")
    with socket.create_connection(address), socket.create_connection(address) as nonsense:
        nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        stranger = QueryableStateClient(*address, b"another secret")
        with pytest.raises(StateAccessError, match="no queryable state server answers on"):
            stranger.get_kv_state("the job", "latest", "a", None, descriptor).result(60)
        with pytest.raises(StateAccessError, match="No module named 'no_such_module'"):
            served.get_kv_state("the job", "latest", KnownOnOneSide(), None, descriptor).result(60)
        assert served.get_kv_state("the job", "latest", "a", None, descriptor).result(60).value() == ("a", 6)
