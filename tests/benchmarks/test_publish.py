"""The measured tables of the documentation come from a results file, never from a hand."""

from __future__ import annotations

import pytest
from benchmarks.publish import FRONT, PAGE, PICTURE, front, measured, source_of, with_tables
from benchmarks.results_table import Results
from benchmarks.systems.environment import ROOT


def test_the_tables_of_the_page_are_those_of_their_results_file():
    page = PAGE.read_text()
    source = source_of(page)
    text = measured(Results.read(ROOT / source), picture=PICTURE.exists())
    assert with_tables(page, source, text) == page


def test_the_lines_of_the_readme_are_those_of_the_same_results_file():
    page = FRONT.read_text()
    source = source_of(page)
    assert source == source_of(PAGE.read_text())
    assert with_tables(page, source, front(Results.read(ROOT / source))) == page


def test_new_tables_leave_the_rest_of_the_page_alone():
    page = "before\n<!-- measured tables begin: a.json -->\nold\n<!-- measured tables end -->\nafter\n"
    assert with_tables(page, "b.json", "\\1 new\n") == (
        "before\n<!-- measured tables begin: b.json -->\n\\1 new\n<!-- measured tables end -->\nafter\n"
    )


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="no marks"):
        with_tables("nothing", "b.json", "new")
