"""Every public name of pyflink.datastream.window is here, with its methods."""

import json
from pathlib import Path

import pytest

from penstock.core import window

NAMES = json.loads((Path(__file__).parent / "pyflink_window_names.json").read_text())


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_name_and_its_members_exist(name):
    found = window
    for part in name.split("."):
        found = getattr(found, part)
    missing = [member for member in NAMES[name] if not hasattr(found, member)]
    assert missing == []


def test_everything_public_is_listed():
    assert set(window.__all__) <= set(dir(window))
