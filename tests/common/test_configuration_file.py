"""Settings in a file."""

import pytest

from penstock.common.configuration_file import parse_settings, settings_of_environment
from penstock.common.errors import InvalidProgramError

TEXT = """\
# The cluster
---
rest:
  bind-address: 0.0.0.0
  port: 8081   # as always
high-availability:
  type: filesystem
  zookeeper:
    path:
      root: /penstock
metrics.reporters: [prom, "log"]
parallelism.default: 4
"quoted.key": 'a # b: c'
penstock.lease.timeout: 1:30
switch: on
"""


def test_o143_maps_and_flat_keys_become_settings():
    assert parse_settings(TEXT) == {
        "rest.bind-address": "0.0.0.0",
        "rest.port": "8081",
        "high-availability.type": "filesystem",
        "high-availability.zookeeper.path.root": "/penstock",
        "metrics.reporters": "prom,log",
        "parallelism.default": "4",
        "quoted.key": "a # b: c",
        "penstock.lease.timeout": "1:30",
        "switch": "on",
    }


@pytest.mark.parametrize("line", ["- a", "no colon", "\tkey: value", "{a: b}"])
def test_o143_a_line_that_is_no_setting_is_named(line):
    with pytest.raises(InvalidProgramError, match=r"line 2 of here is not 'key: value'"):
        parse_settings(f"a: b\n{line}\n", "here")


def test_o143_the_environment_names_the_directory(tmp_path):
    (tmp_path / "config.yaml").write_text("parallelism.default: 3\n")
    for name in ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR"):
        assert settings_of_environment({name: str(tmp_path)}) == {"parallelism.default": "3"}
    assert settings_of_environment({}) == {}
    with pytest.raises(InvalidProgramError, match=r"has no config\.yaml"):
        settings_of_environment({"PENSTOCK_CONF_DIR": str(tmp_path / "missing")})


def test_o143_the_former_name_of_the_file_is_read(tmp_path):
    (tmp_path / "flink-conf.yaml").write_text("parallelism.default: 5\n")
    assert settings_of_environment({"FLINK_CONF_DIR": str(tmp_path)}) == {"parallelism.default": "5"}
