"""8-1 and 8-2, against a real broker."""

import kafka_topics as program
import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

pytestmark = pytest.mark.kafka


def test_8_1_and_8_2_every_reading_is_in_the_other_topic_once(kafka):
    source, target = kafka.topic(2), kafka.topic(1)
    kafka.send(source, program.READINGS[:3])
    kafka.send(source, program.READINGS[3:], partition=1)
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=2)).set_parallelism(2)
    readings = program.readings_from_kafka(env, kafka.bootstrap_servers, source)
    program.celsius_to_kafka(readings, kafka.bootstrap_servers, target)
    env.execute()
    expected = ["sensor_1 20.3 °C", "sensor_1 20.6 °C", "sensor_2 21.7 °C", "sensor_3 23.6 °C"]
    assert program.messages(kafka.bootstrap_servers, target, 4) == expected
    assert sorted(kafka.values(target)) == expected
