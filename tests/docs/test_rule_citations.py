"""Rules that source, tests and docs cite are written down in `docs/spec`."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "docs" / "spec"
ID = r"(?:[A-Z]{1,2}\d{1,3}|\d\.\d{1,2})"
LIST = rf"{ID}(?:(?:, | and | to )\s*{ID})*"
CITATION = re.compile(rf"\b[Rr]ules?\s+({LIST})")
TABLE_CITATION = re.compile(r"\((T\d{1,3}(?:(?:, | and | to )\s*T\d{1,3})*)\)")
"""Modules of tables cite their rules without the word."""


def rules():
    return [
        found
        for page in SPEC.glob("*.md")
        for found in re.findall(r'<a id="([^"]+)">', page.read_text(encoding="utf-8"))
    ]


def citations(folder):
    for file in sorted((ROOT / folder).rglob("*.py")):
        text = re.sub(r"\n *#? *", " ", file.read_text(encoding="utf-8"))
        found = CITATION.findall(text)
        if "table" in file.relative_to(ROOT).parts:
            found += TABLE_CITATION.findall(text)
        for cited in found:
            yield from ((str(file.relative_to(ROOT)), rule) for rule in re.findall(ID, cited))


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples", "scripts"])
def test_every_rule_that_code_cites_is_written_down(folder):
    known = set(rules())
    assert [(file, rule) for file, rule in citations(folder) if rule not in known] == []


def test_code_cites_rules():
    assert len(list(citations("src"))) > 100


def test_every_link_to_a_rule_leads_to_it():
    for page in (ROOT / "docs").rglob("*.md"):
        for target, rule in re.findall(rf"\]\((?:spec/)?(\w+\.md)#({ID})\)", page.read_text(encoding="utf-8")):
            assert f'<a id="{rule}">' in (SPEC / target).read_text(encoding="utf-8"), (page.name, target, rule)


def test_a_rule_has_one_place():
    assert sorted(set(rules())) == sorted(rules())


def test_every_rule_of_patterns_has_a_test():
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"\(\[(CE\d+)\]\(spec/cep\.md#CE\d+\)\) \| (`tests/.*)", page))
    assert sorted(named) == sorted(rule for rule in rules() if rule.startswith("CE"))
    for rule, tests in named.items():
        for file, rows in re.findall(r"`(tests/[\w/]+\.py)::\w+`(?: \(([^()]+)\))?", tests):
            text = (ROOT / file).read_text(encoding="utf-8")
            assert [row for row in rows.split("; ") if f'"{row}"' not in text and row] == [], (rule, file)
