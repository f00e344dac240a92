import copy
import pickle

import pytest

from penstock.common import ConfigOptions, Configuration, ExecutionConfig, ExecutionMode, RestartStrategies
from penstock.common.errors import InvalidProgramError
from penstock.common.input_dependency_constraint import InputDependencyConstraint


def test_values_come_back_as_the_type_asked_for():
    configuration = (
        Configuration()
        .set_string("s", "text")
        .set_integer("i", 5)
        .set_float("f", 0.25)
        .set_boolean("b", True)
        .set_bytearray("y", bytearray(b"\x00\xff"))
    )
    assert configuration.get_string("s", "") == "text"
    assert configuration.get_integer("i", 0) == 5
    assert configuration.get_float("f", 0.0) == 0.25
    assert configuration.get_boolean("b", False) is True
    assert configuration.get_bytearray("y", bytearray()) == bytearray(b"\x00\xff")


def test_missing_values_are_the_default():
    configuration = Configuration()
    assert configuration.get_string("x", "d") == "d"
    assert configuration.get_integer("x", 1) == 1
    assert configuration.get_float("x", 0.5) == 0.5
    assert configuration.get_boolean("x", True) is True
    assert configuration.get_bytearray("x", bytearray(b"d")) == bytearray(b"d")


def test_text_is_read_as_the_type_asked_for():
    configuration = Configuration.from_dict({"i": "5", "b": "TRUE", "f": "1"})
    assert configuration.get_integer("i", 0) == 5
    assert configuration.get_boolean("b", False) is True
    assert configuration.get_float("f", 0.0) == 1.0
    assert configuration.get_string("i", "") == "5"


@pytest.mark.parametrize("read", ["get_integer", "get_float", "get_boolean", "get_bytearray"])
def test_text_of_another_type_is_refused_by_key(read):
    with pytest.raises(InvalidProgramError, match="'parallelism'"):
        getattr(Configuration().set_string("parallelism", "many!"), read)("parallelism", None)


@pytest.mark.parametrize(("key", "value"), [("", 1), (None, 1), ("a", None)])
def test_wrong_keys_and_none_are_refused(key, value):
    with pytest.raises(InvalidProgramError):
        Configuration().set_string(key, value)


def test_typed_options():
    option = ConfigOptions.key("a").boolean_type().default_value(False)
    assert Configuration().get(option) is False
    assert Configuration().set(option, True).get(option) is True
    assert Configuration().get(ConfigOptions.key("b").int_type().no_default_value()) is None
    assert Configuration().set_integer("b", 3).get(ConfigOptions.key("b").long_type().no_default_value()) == 3
    assert Configuration().set_string("c", "0.5").get(ConfigOptions.key("c").double_type().no_default_value()) == 0.5
    assert ConfigOptions.key("d").float_type().default_value(1.0).has_default_value()
    assert not ConfigOptions.key("d").string_type().no_default_value().has_default_value()


def test_keys_can_be_listed_removed_and_taken_over():
    one = Configuration().set_string("a", "1").set_string("b", "2")
    assert one.key_set() == {"a", "b"}
    assert one.contains_key("a")
    assert one.remove_config("a")
    assert not one.remove_config("a")
    two = Configuration().add_all(one).add_all(one, "prefix.")
    assert two.to_dict() == {"b": "2", "prefix.b": "2"}
    target = {"c": 3}
    two.add_all_to_dict(target)
    assert target == {"b": "2", "prefix.b": "2", "c": 3}


def test_copies_are_independent_and_equal():
    one = Configuration().set_string("a", "1")
    for two in (Configuration(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert two == one
        assert hash(two) == hash(one)
        two.set_string("a", "2")
        assert one.get_string("a", "") == "1"


@pytest.mark.parametrize(
    ("text", "elements"),
    [("a;b", ["a", "b"]), ("[a, b]", ["a", "b"]), ("['a', \"b\"]", ["a", "b"]), ("", []), ("a", ["a"])],
)
def test_lists_are_read_in_both_notations(text, elements):
    assert Configuration.parse_list_value(text) == elements


def test_execution_config_defaults_are_flinks():
    config = ExecutionConfig()
    assert config.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT == -1
    assert config.get_max_parallelism() == -1
    assert config.get_auto_watermark_interval() == 200
    assert config.get_global_job_parameters() == {}
    assert config.is_closure_cleaner_enabled()
    assert config.has_auto_generated_uids_enabled()
    assert not config.is_object_reuse_enabled()
    assert not config.is_force_avro_enabled()
    assert not config.has_generic_types_disabled()


@pytest.mark.parametrize(
    ("setter", "getter", "value"),
    [
        ("set_parallelism", "get_parallelism", 4),
        ("set_max_parallelism", "get_max_parallelism", 128),
        ("set_auto_watermark_interval", "get_auto_watermark_interval", 0),
        ("set_latency_tracking_interval", "get_latency_tracking_interval", 5),
        ("set_task_cancellation_interval", "get_task_cancellation_interval", 5),
        ("set_task_cancellation_timeout", "get_task_cancellation_timeout", 5),
        ("set_global_job_parameters", "get_global_job_parameters", {"a": "b"}),
        ("set_use_snapshot_compression", "is_use_snapshot_compression", True),
        ("set_execution_mode", "get_execution_mode", ExecutionMode.BATCH),
        ("set_restart_strategy", "get_restart_strategy", RestartStrategies.no_restart()),
        (
            "set_default_input_dependency_constraint",
            "get_default_input_dependency_constraint",
            InputDependencyConstraint.ALL,
        ),
    ],
)
def test_execution_config_keeps_what_is_set(setter, getter, value):
    config = ExecutionConfig()
    assert getattr(config, setter)(value) is config
    assert getattr(config, getter)() == value
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize("name", ["object_reuse", "closure_cleaner", "force_kryo", "force_avro"])
def test_execution_config_switches(name):
    config = ExecutionConfig()
    for on in (True, False):
        getattr(config, f"{'enable' if on else 'disable'}_{name}")()
        assert getattr(config, f"is_{name}_enabled")() is on


def test_switches_with_other_names():
    config = ExecutionConfig().disable_generic_types().disable_auto_generated_uids()
    assert config.has_generic_types_disabled()
    assert not config.has_auto_generated_uids_enabled()
    config.enable_generic_types().enable_auto_generated_uids()
    assert not config.has_generic_types_disabled()
    assert config.has_auto_generated_uids_enabled()


@pytest.mark.parametrize(
    ("setter", "value"),
    [
        ("set_parallelism", 0),
        ("set_parallelism", -3),
        ("set_max_parallelism", 0),
        ("set_max_parallelism", 2**15 + 1),
        ("set_auto_watermark_interval", -1),
    ],
)
def test_execution_config_refuses_nonsense(setter, value):
    with pytest.raises(InvalidProgramError):
        getattr(ExecutionConfig(), setter)(value)


@pytest.mark.parametrize("wrong", [{"parallelism.default": 2}, None, "parallelism.default: 2"])
def test_what_is_no_configuration_is_refused(wrong):
    with pytest.raises(InvalidProgramError, match=r"expected a Configuration, got .*with Configuration\.from_dict\(\)"):
        Configuration().add_all(wrong)


def test_from_dict_takes_a_dict():
    with pytest.raises(InvalidProgramError, match=r"from_dict\(\) takes a dict of settings, got 'a: b'"):
        Configuration.from_dict("a: b")
