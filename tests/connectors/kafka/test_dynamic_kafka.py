"""DynamicKafkaSource: streams by id and by pattern, in the cluster that a metadata service names."""

import pytest

from penstock.common import SimpleStringSchema, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.connectors.dynamic_kafka import (
    DynamicKafkaSource,
    KafkaMetadataService,
    KafkaStreamSubscriber,
    SingleClusterTopicMetadataService,
    StreamPatternSubscriber,
)
from penstock.connectors.kafka import KafkaOffsetsInitializer
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

ANY = SingleClusterTopicMetadataService("main", {"bootstrap.servers": "localhost:1"})


def builder():
    return DynamicKafkaSource.builder().set_value_only_deserializer(SimpleStringSchema())


@pytest.mark.kafka
def test_streams_are_topics_by_their_ids_or_by_a_pattern(kafka):
    first, second, other = kafka.topic(2), kafka.topic(), kafka.topic()
    for topic, value in ((first, "a"), (second, "b"), (other, "c")):
        kafka.send(topic, [value, value.upper()])
    service = SingleClusterTopicMetadataService("main", {"bootstrap.servers": kafka.bootstrap_servers})
    for subscribed in (
        builder().set_stream_ids({first, second}),
        builder().set_kafka_stream_subscriber(StreamPatternSubscriber(f"{first}|{second}")),
    ):
        subscribed.set_kafka_metadata_service(service).set_group_id("any").set_client_id_prefix("test")
        subscribed.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        source = subscribed.set_bounded(KafkaOffsetsInitializer.latest()).build()
        assert isinstance(source, DynamicKafkaSource)
        env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(2)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "streams")
        assert sorted(stream.execute_and_collect()) == ["A", "B", "a", "b"]


def test_properties_of_the_cluster_win_over_those_for_all():
    source = builder().set_properties({"client.id": "x", "bootstrap.servers": "elsewhere:1"}).set_stream_pattern(".*")
    settings = source.set_kafka_metadata_service(ANY).build()._settings
    assert (settings["client.id"], settings["bootstrap.servers"]) == ("x", "localhost:1")


def test_what_is_missing_or_cannot_be_is_said():
    with pytest.raises(InvalidProgramError, match="needs set_kafka_metadata_service"):
        builder().build()
    with pytest.raises(InvalidProgramError, match="needs set_stream_ids"):
        builder().set_kafka_metadata_service(ANY).build()
    with pytest.raises(InvalidProgramError, match="only once"):
        builder().set_stream_ids({"a"}).set_stream_pattern("b")
    with pytest.raises(InvalidProgramError, match="must be a set"):
        builder().set_stream_ids("abc")
    with pytest.raises(InvalidProgramError, match="the properties of the cluster"):
        SingleClusterTopicMetadataService("main", {})
    with pytest.raises(UnsupportedFeatureError, match="union a source for each"):
        builder().set_kafka_metadata_service(KafkaMetadataService())
    with pytest.raises(UnsupportedFeatureError, match="is not a subscriber"):
        builder().set_kafka_metadata_service(ANY).set_kafka_stream_subscriber(KafkaStreamSubscriber()).build()
