"""Pages of the guide that are made from the code: the gallery and the API reference."""

import sys
from pathlib import Path

import pytest

import penstock as ps

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import api_reference  # noqa: E402
import gallery  # noqa: E402


@pytest.mark.parametrize("name", gallery.PROGRAMS)
def test_an_example_of_the_gallery_is_shown_with_its_output(name):
    entry = gallery.entry(name)
    output = entry.partition("```text\n")[2].partition("\n```")[0]
    assert len(output.splitlines()) >= 2
    assert "Traceback" not in output
    assert f'??? example "Source of {name}"' in entry


def test_the_reference_has_signatures_docstrings_and_methods():
    page = api_reference.page()
    assert "tumbling(length=None, *, days=0, hours=0, minutes=0" in page
    assert "| `count()` | Count the records: `(key, number)`. |" in page
    assert "- `servers`: `host:port` of brokers" in page
    assert " at 0x" not in page
    assert ":class:" not in page


def test_every_name_of_the_reference_has_a_docstring():
    for where, names in api_reference.SECTIONS.values():
        module = sys.modules.get(where) or __import__(where, fromlist=["_"])
        for name in names.split() or module.__all__:
            assert getattr(module, name).__doc__, f"{where}.{name}"


def test_the_short_forms_are_in_the_reference():
    page = api_reference.page()
    short = [
        name for name, home in ps._HOME.items() if "aggregates" in home or "shorthand" in home or "records" in home
    ]
    assert len(short) > 10
    assert [name for name in short if f"### {name}\n" not in page] == []
