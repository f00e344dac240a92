"""Live jobs of the mini cluster behind a gateway, to look at in a browser."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource
from penstock.testing import MiniCluster

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def needs_browser(test):
    return pytest.mark.server(pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")(test))


@dataclass
class Record:
    job_id: str
    name: str
    rest: str
    status: str = "RUNNING"
    started: float = 0.0
    ended: float | None = None
    error: str | None = None
    log: str | None = None
    is_over: bool = False


class Records:
    def __init__(self, archive):
        self.known = []
        self.archive = archive

    def all(self):
        return self.known


@dataclass
class Site:
    url: str
    clients: dict
    directory: Path
    records: Records

    def job(self, name):
        return f"{self.url}/#/jobs/{self.clients[name].get_job_id()}"


def endless(name, directory):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=200))
    env.set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage((directory / "checkpoints" / str(len(name))).as_uri())
    source = DataGeneratorSource(lambda n: (n % 7, int(time.time() * 1000)), 10**9, 2000, Types.PICKLED_BYTE_ARRAY())
    times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner(
        lambda event: event[1]
    )
    stream = env.from_source(source, times, "events").uid("events")
    counted = stream.map(lambda event: (event[0], 1)).key_by(lambda event: event[0]).sum(1).name("count").uid("count")
    counted.filter(lambda event: False).name("nothing").print()
    return env.execute_async(name)


def failing(name):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))

    def check_order(number):
        if number == 17:
            raise ValueError("order 17 has no customer")
        return number

    env.from_sequence(1, 100).map(check_order).name("check").print()
    return env.execute_async(name)
