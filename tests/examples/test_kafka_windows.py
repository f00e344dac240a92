"""The Kafka example, against a real broker."""

import json

import pytest

import kafka_windows as program
from penstock.connectors.kafka import KafkaOffsetsInitializer
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

pytestmark = pytest.mark.kafka


def test_the_hottest_reading_of_each_sensor_and_second(kafka):
    kafka.topic(2, name="readings")
    kafka.topic(1, name="hottest")
    first, second = [b"sensor_1"] * 4, [b"sensor_2"] * 2
    kafka.send("readings", [20.5, 31.0, 25.0, 18.0], timestamps=[1_000, 1_700, 1_400, 2_100], keys=first)
    kafka.send("readings", [10.0, 12.5], partition=1, timestamps=[1_999, 1_001], keys=second)
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=4)).set_parallelism(2)
    source = program.readings(kafka.bootstrap_servers).set_bounded(KafkaOffsetsInitializer.latest()).build()
    program.hottest(env, source).sink_to(program.results(kafka.bootstrap_servers))
    env.execute("hottest")
    found = [json.loads(value) for value in kafka.values("hottest")]
    assert sorted((one["sensor"], one["until"], one["hottest"]) for one in found) == [
        ("sensor_1", 2_000, 31.0),
        ("sensor_1", 3_000, 18.0),
        ("sensor_2", 2_000, 12.5),
    ]
