"""7-14 to 7-16: state that is asked for while the job runs."""

import pytest
import queryable_state as program
from support import Script

from penstock.datastream import StreamExecutionEnvironment
from penstock.spark.query_server import QueryServer
from penstock.testing import MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster


@pytest.fixture(params=[MiniCluster, ContinuousCluster])
def asked(request):
    """The answers of a job that has read some seconds of readings and then stands still."""

    def ask(define, state, seconds):
        cluster = request.param()
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
        read = [program.reading(index) for index in range(round(seconds * program.PER_SECOND))]
        in_order = program.WatermarkStrategy.for_monotonous_timestamps()
        in_order = in_order.with_timestamp_assigner(lambda one: one.timestamp)
        stream = env.from_source(Script(read, bounded=False), in_order, "sensors").set_parallelism(1)
        result = define(stream)
        if result is not None:
            result.print()
        job = cluster.start(list(env.sinks), env.job_settings(None))
        job.run()
        server = QueryServer.on_port(0)
        server.register("the job", job.queries)
        dashboard = program.TemperatureDashboard(server.port, "the job", state)
        before = job.queries.ask  # the job has to run for an answer to come

        def answer(*question):
            future = before(*question)
            job.run()
            return future

        job.queries.ask = answer
        try:
            return dashboard.refresh()
        finally:
            dashboard.client.shutdown_and_wait()

    return ask


def test_7_14_the_last_temperature_of_each_sensor_is_known(asked):
    assert asked(program.last_temperatures, "lastTemperature", 1) == ("60.900", "61.900", "62.900", "63.900", "64.900")


def test_7_15_the_highest_temperature_of_the_last_full_second_is_known(asked):
    assert asked(program.max_temperatures, "maxTemperature", 2) == ("60.900", "61.900", "62.900", "63.900", "64.900")


def test_7_16_what_is_not_known_is_a_dash(asked):
    assert asked(program.last_temperatures, "noSuchState", 1) == ("-",) * 5
