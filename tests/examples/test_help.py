"""Every example says what it does and what can be set, without starting anything."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "examples").rglob("*.py"))]
PROGRAMS = [name for name in FILES if '__name__ == "__main__"' in (ROOT / name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_example_has_help(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.syspath_prepend(str((ROOT / name).parent))
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / name), run_name="__main__")
    assert not end.value.code
    assert capsys.readouterr().out.startswith("usage: ")


def test_there_are_examples():
    assert len(PROGRAMS) > 25
