"""The table of connectors names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_table_of_connectors_names_exists():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "connectors.md").read_text()))
    written = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    assert len(named) > 40
    assert sorted(named - written) == []
