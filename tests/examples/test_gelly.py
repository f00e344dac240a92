"""The programs of examples/gelly: what they print, whatever the parallelism."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gelly"
sys.path.insert(0, str(FOLDER))

import flights  # noqa: E402
import music  # noqa: E402

from penstock.gelly import ExecutionEnvironment  # noqa: E402

HOURS = "Berlin 0, London 2, Istanbul 3, New York 10, Singapore 13.5, San Francisco 16.5, Sydney 21.5"
PRINTED = {
    flights: f"""\
library:  {HOURS}
vertices: {HOURS}
arrays:   {HOURS}
shortest flight to each city: London 2, Istanbul 3, San Francisco 6.5, New York 8, Singapore 8, Sydney 8
ranks:    Singapore 0.413, Sydney 0.406, London 0.048
""",
    music: """\
neighbours: Ada-Alan, Ada-Grace, Alan-Grace, Guido-Linus
components: Ada, Alan, Grace; Guido, Linus
communities: Ada Grace, Alan Grace, Grace Grace, Guido Linus, Linus Linus
triangles: [('Ada', 'Alan', 'Grace')], closed triplets 1.00
most similar songs: Blue in Green and So What (0.67)
""",
}


@pytest.mark.parametrize("program", PRINTED, ids=lambda program: program.__name__)
def test_what_a_program_prints(program, capsys):
    assert program.main(["--in-process"]) == 0
    assert capsys.readouterr().out == PRINTED[program]


@pytest.mark.parametrize("program", PRINTED, ids=lambda program: program.__name__)
def test_the_parallelism_makes_no_difference(program):
    env = ExecutionEnvironment.create_collections_environment(5)
    assert "\n".join(program.run(env)) + "\n" == PRINTED[program]


@pytest.mark.parametrize("program", PRINTED, ids=lambda program: program.__name__)
def test_help_says_what_a_program_shows(program, capsys):
    with pytest.raises(SystemExit, match="0"):
        program.main(["--help"])
    assert program.__doc__.strip() in capsys.readouterr().out


def test_the_readme_names_every_program():
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in FOLDER.glob("*.py") if f"(gelly/{path.name})" not in readme] == []
