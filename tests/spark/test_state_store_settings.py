"""Settings of the state store that a program makes, as Spark gets them. No JVM is needed to look at them."""

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend, PredefinedOptions
from penstock.spark.streaming_job import _conf

ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
CHANGELOG = ROCKSDB + "changelogCheckpointing.enabled"


def conf_of(env):
    return _conf(env.job_settings(None))


def test_nothing_is_said_unless_the_program_does():
    env = StreamExecutionEnvironment()
    assert conf_of(env) == {}
    assert conf_of(env.set_state_backend(EmbeddedRocksDBStateBackend())) == {}


def test_settings_of_spark_in_the_configuration_win_over_ours():
    given = {
        "spark.sql.streaming.minBatchesToRetain": "50",
        "spark.sql.shuffle.partitions": "7",
        "spark.executor.memory": "3g",
        "parallelism.default": "2",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))
    assert conf_of(env) == {"spark.sql.streaming.minBatchesToRetain": "50"}
    env.configure(Configuration.from_dict({"execution.checkpointing.num-retained": "5"}))
    assert conf_of(env) == {"spark.sql.streaming.minBatchesToRetain": "5"}


@pytest.mark.parametrize("enabled", [True, False])
def test_incremental_checkpoints_are_a_changelog(enabled):
    said = str(enabled).lower()
    env = StreamExecutionEnvironment().set_state_backend(EmbeddedRocksDBStateBackend(enabled))
    assert conf_of(env) == {CHANGELOG: said}
    env = StreamExecutionEnvironment().enable_changelog_state_backend(enabled)
    assert conf_of(env) == {CHANGELOG: said}
    assert env.is_changelog_state_backend_enabled() is enabled


def test_predefined_options_have_flinks_values():
    backend = EmbeddedRocksDBStateBackend()
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM)
    assert conf_of(StreamExecutionEnvironment().set_state_backend(backend)) == {
        ROCKSDB + "maxOpenFiles": "-1",
        ROCKSDB + "blockCacheSizeMB": "256",
        ROCKSDB + "blockSizeKB": "128",
        ROCKSDB + "writeBufferSizeMB": "64",
        ROCKSDB + "maxWriteBufferNumber": "4",
    }
    for options in PredefinedOptions:
        backend.set_predefined_options(options)
        conf_of(StreamExecutionEnvironment().set_state_backend(backend))  # every setting has a key of Spark


@pytest.mark.spark
def test_a_job_runs_with_all_of_them(spark):
    backend = EmbeddedRocksDBStateBackend(False)
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM)
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark)
    env.set_state_backend(backend).set_parallelism(1)
    sums = env.from_collection(range(10)).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
    assert sorted(sums.execute_and_collect()) == [0, 1, 2, 4, 6, 9, 12, 16, 20, 25]
