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


def test_every_sink_says_what_keeps_out_a_driver_that_was_replaced():
    lines = (ROOT / "docs" / "connectors.md").read_text().splitlines()
    heading = next(line for line in lines if line.startswith("| connector | kind |"))
    column = heading.split(" | ").index("fenced by")
    rows = [line.split(" | ") for line in lines if re.match(r"\|.* \| (sink|source|operator) \| ", line)]
    assert len(rows) > 30
    assert [row[0] for row in rows if not row[column].strip()] == []
    assert {row[column] for row in rows if row[1] == "sink"} > {"the lease"}
