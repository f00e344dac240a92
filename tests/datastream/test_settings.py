import os

import pytest

from penstock.common import Configuration, Duration, ExecutionConfig, RestartStrategies
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    CustomCheckpointStorage,
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from penstock.datastream.environment_settings import EnvironmentSettings


def configured(env, **keys):
    env.configure(
        Configuration.from_dict({key.replace("__", "-").replace("_", "."): value for key, value in keys.items()})
    )
    return env.job_settings(None)


def test_parallelism_is_the_number_of_cores_unless_set_or_configured(env, monkeypatch):
    monkeypatch.setattr(EnvironmentSettings, "_default_local_parallelism", None)
    fresh = StreamExecutionEnvironment()
    assert fresh.get_parallelism() == len(os.sched_getaffinity(0))
    fresh.set_default_local_parallelism(3)
    assert fresh.get_parallelism() == 3
    assert configured(fresh, parallelism_default=5).parallelism == 5
    assert fresh.set_parallelism(7).get_parallelism() == 7


@pytest.mark.parametrize("parallelism", [0, -5, 40_000, "4", None, 1.5, True])
def test_an_impossible_parallelism_is_refused(env, parallelism):
    with pytest.raises(InvalidProgramError, match="parallelism"):
        env.set_parallelism(parallelism)
    with pytest.raises(InvalidProgramError, match="parallelism"):
        env.set_max_parallelism(parallelism)


def test_settings_reach_the_job(env):
    env.set_max_parallelism(64).disable_operator_chaining().set_buffer_timeout(5)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH).enable_checkpointing(250, CheckpointingMode.AT_LEAST_ONCE)
    env.get_config().set_auto_watermark_interval(50).set_global_job_parameters({"k": 1})
    env.get_checkpoint_config().set_checkpoint_storage("file:///tmp/c")
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_state_backend(EmbeddedRocksDBStateBackend()).set_default_savepoint_directory("/tmp/s")
    strategy = RestartStrategies.fixed_delay_restart(3, 100)
    env.set_restart_strategy(strategy)
    env.add_python_file("a.py")
    env.add_python_archive("venv.zip", "venv")
    env.set_python_requirements("requirements.txt", "cache")
    env.set_python_executable("python3.11")
    env.register_cached_file("/tmp/cities", "cities")
    env.add_jars("a.jar", "b.jar")
    settings = env.job_settings("my job")
    assert settings.job_name == "my job"
    assert (settings.parallelism, settings.max_parallelism) == (2, 64)
    assert (settings.runtime_mode, settings.chaining_enabled) == ("BATCH", False)
    assert settings.checkpoint_interval == 250
    assert (settings.checkpoint_dir, settings.checkpoint_retention) == ("file:///tmp/c", "RETAIN_ON_CANCELLATION")
    assert settings.savepoint_dir == "/tmp/s"
    assert settings.job_parameters == {"k": "1"}
    assert settings.restart_strategy is strategy
    assert settings.python_files == ["a.py"]
    assert settings.python_archives == [("venv.zip", "venv")]
    assert settings.python_requirements == ("requirements.txt", "cache")
    assert settings.python_executable == "python3.11"
    assert settings.cached_files == {"cities": "/tmp/cities"}
    assert settings.configuration == {"spark.jars": "a.jar,b.jar"}


def test_a_job_has_settings_of_its_own(env):
    before = env.job_settings(None)
    env.add_python_file("later.py")
    assert before.python_files == []


def test_configuration_keys_set_the_same(env):
    settings = configured(
        env,
        pipeline_name="named",
        pipeline_max__parallelism=32,
        pipeline_auto__watermark__interval="1 s",
        execution_runtime__mode="batch",
        pipeline_operator__chaining_enabled="false",
        execution_checkpointing_interval="2 s",
        execution_checkpointing_mode="at-least-once",
        execution_checkpointing_dir="file:///c",
        state_backend_type="rocksdb",
        state_savepoints_dir="file:///s",
        python_files="a.py, b.py",
        python_archives="a.zip#x,b.zip",
        python_requirements="r.txt#cache",
        python_executable="py",
        some_other_key="kept",
    )
    assert settings.job_name == "named"
    assert settings.max_parallelism == 32
    assert (settings.runtime_mode, settings.chaining_enabled) == ("BATCH", False)
    assert settings.checkpoint_interval == 2000
    assert (settings.checkpoint_dir, settings.savepoint_dir) == ("file:///c", "file:///s")
    assert settings.python_files == ["a.py", "b.py"]
    assert settings.python_archives == [("a.zip", "x"), ("b.zip", None)]
    assert settings.python_requirements == ("r.txt", "cache")
    assert settings.configuration["some.other.key"] == "kept"
    assert env.get_configuration().get_string("pipeline.name") == "named"


def test_a_restart_strategy_can_be_configured(env):
    settings = configured(env, restart__strategy_type="fixed-delay", restart__strategy_fixed__delay_attempts="2")
    assert settings.restart_strategy.get_restart_attempts() == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("execution.runtime-mode", "sometimes"),
        ("state.backend.type", "floppy"),
        ("parallelism.default", "many"),
        ("execution.checkpointing.mode", "maybe"),
        ("execution.checkpointing.interval", "soon"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_or_text(env, key, value):
    with pytest.raises(InvalidProgramError, match=f"{key}|{value}"):
        env.configure(Configuration.from_dict({key: value}))


def test_checkpoint_config_checks_what_is_set():
    config = CheckpointConfig()
    for wrong in (0, 9, "1000"):
        with pytest.raises(InvalidProgramError):
            config.set_checkpoint_interval(wrong)
    with pytest.raises(InvalidProgramError):
        config.set_checkpointing_mode("EXACTLY_ONCE")
    with pytest.raises(InvalidProgramError):
        config.set_checkpoint_storage(42)
    with pytest.raises(InvalidProgramError):
        config.set_max_concurrent_checkpoints(0)
    config.enable_unaligned_checkpoints().set_alignment_timeout(Duration.of_seconds(1))
    assert config.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(1)
    assert not config.is_externalized_checkpoints_enabled()
    assert config.set_fail_on_checkpointing_errors(False).get_tolerable_checkpoint_failure_number() > 0


def test_storages_and_backends_are_settings():
    assert JobManagerCheckpointStorage().get_checkpoint_path() is None
    assert FileSystemCheckpointStorage("/c", 1000).get_min_file_size_threshold() == 1000
    with pytest.raises(InvalidProgramError):
        FileSystemCheckpointStorage(None)
    with pytest.raises(UnsupportedFeatureError):
        CustomCheckpointStorage(object())
    with pytest.raises(UnsupportedFeatureError):
        CustomStateBackend(object())
    backend = EmbeddedRocksDBStateBackend(True)
    backend.set_db_storage_paths("/a", "/b")
    assert backend.get_db_storage_paths() == ["/a", "/b"]
    backend.set_db_storage_paths("file:///var/one/", "file://var/two/")
    assert backend.get_db_storage_paths() == ["/var/one/", "/two"]
    assert HashMapStateBackend().type_name == "hashmap"


def test_slot_sharing_groups_are_registered_once(env):
    group = (
        SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(5).set_managed_memory_mb(10).build()
    )
    assert group.get_managed_memory() == MemorySize.of_mebi_bytes(10)
    stream = env.from_elements(1).map(lambda value: value).slot_sharing_group(group)
    assert stream.get_transformation().slot_sharing_group == "heavy"
    with pytest.raises(InvalidProgramError, match="heavy"):
        env.register_slot_sharing_group(SlotSharingGroup("heavy"))


def test_a_checkpoint_storage_knows_where_savepoints_of_its_environment_go(env):
    config = env.get_checkpoint_config().set_checkpoint_storage("file:///tmp/checkpoints")
    assert config.get_checkpoint_storage().get_savepoint_path() is None
    env.set_default_savepoint_directory("file:///tmp/savepoints")
    assert config.get_checkpoint_storage().get_savepoint_path() == "file:///tmp/savepoints"


def test_the_default_parallelism_needs_no_linux(monkeypatch, env):
    monkeypatch.delattr("os.sched_getaffinity")
    assert env.get_default_local_parallelism() == os.cpu_count()


def test_a_group_with_resources_needs_cores_and_heap_memory():
    with pytest.raises(InvalidProgramError, match="needs positive CPU cores and task heap memory"):
        SlotSharingGroup.builder("half").set_cpu_cores(1).build()
    assert SlotSharingGroup.builder("none").build().get_cpu_cores() is None


def test_equal_execution_configs_have_equal_hashes():
    assert ExecutionConfig() == ExecutionConfig()
    assert hash(ExecutionConfig()) == hash(ExecutionConfig())


def test_a_named_source_has_its_name_alone(env):
    assert env.from_sequence(1, 2).name("numbers").get_name() == "numbers"
