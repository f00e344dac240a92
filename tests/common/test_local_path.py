"""Addresses of local files: one rule for checkpoints, savepoints, state and connectors."""

from pathlib import Path

import pytest

from penstock.common.errors import InvalidProgramError
from penstock.common.local_path import local_path


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/data/in", "/data/in"),
        ("in/here", "in/here"),
        (Path("/data"), "/data"),
        ("file:/data", "/data"),
        ("file:data", "data"),
        ("file:///data", "/data"),
        ("FILE:///data", "/data"),
        ("file://localhost/data", "/data"),
        ("file:////data", "/data"),
        ("C:/data", "C:/data"),
        ("file:///a%20b", "/a%20b"),
        ("s3://bucket/data", None),
        ("hdfs:/data", None),
        ("s3a://bucket", None),
    ],
)
def test_the_path_of_an_address(location, path):
    assert local_path(location) == path


def test_blanks_are_decoded_where_addresses_are_those_of_a_browser():
    assert local_path("file:///a%20b", decode=True) == "/a b"
    assert local_path("/a%20b", decode=True) == "/a%20b"  # a path is not an address


def test_a_machine_in_an_address_is_refused_with_the_address_to_use():
    with pytest.raises(InvalidProgramError, match=r"names a host 'data': use file:///data/\.\.\."):
        local_path("file://data/in")
