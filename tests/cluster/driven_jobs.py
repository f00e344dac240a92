"""Jobs of the mini cluster, each served by a driver as `penstock run` does it."""

import time
from dataclasses import dataclass

from penstock.cli.command_line import RunCommand
from penstock.cli.job_server import JobServer
from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource
from penstock.testing import MiniCluster

ENDLESS = 10**9
RECORDS_PER_SECOND = 1000


@dataclass
class DrivenJob:
    client: object
    server: JobServer

    @property
    def path(self):
        return f"/jobs/{self.client.get_job_id()}"

    def end(self):
        if not self.client.get_job_status().result().is_terminal_state():
            self.client.cancel().result()
        self.client.get_job_execution_result().exception()
        self.server.close()


def drive(records, name, *, last=ENDLESS, check=None, settings=None):
    """Start a job of two tasks, "check" and "total"."""
    server = JobServer(RunCommand("job.py", [], [], "/"), records)
    configuration = Configuration().set_string("restart-strategy.type", "none")
    for key, value in (settings or {}).items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment(configuration, executor=MiniCluster(max_records=10))
    env.set_parallelism(2)
    env.get_config().set_global_job_parameters({"password": "s3cret", "threshold": "17"})
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value)
    source = DataGeneratorSource(lambda index: index + 1, last, RECORDS_PER_SECOND, Types.LONG())
    numbers = env.from_source(source, times, "numbers").map(check or (lambda value: value)).name("check <b>")
    numbers.key_by(lambda value: value % 3).sum().name("total").uid("total").sink_to(DiscardingSink())
    server.submitting(name)
    client = env.execute_async(name)
    server.follow(client)
    return DrivenJob(client, server)


def reject_large(value):
    if value % (ENDLESS // 2) > 200:
        raise ValueError("bad record")
    return value


def eventually(ask):
    """The first answer that says something; others bring it about."""
    deadline = time.monotonic() + 60
    while not (answer := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return answer
