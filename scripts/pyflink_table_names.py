"""Which of pyflink.table's public names are here: docs/pyflink-table-names.md, and the built-in functions of SQL.

python scripts/pyflink_table_names.py                     write both pages
python scripts/pyflink_table_names.py --api api.json      first take the names of another version of PyFlink
"""

from __future__ import annotations

import argparse
import importlib
import json
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any

from penstock.runtime.table.aggregates.registry import aggregate_names
from penstock.runtime.table.functions.registry import scalar_function_names

ROOT = Path(__file__).resolve().parent.parent
NAMES = ROOT / "tests" / "api" / "pyflink_table_names.json"
TABLE = ROOT / "docs" / "pyflink-table-names.md"
FUNCTIONS = ROOT / "docs" / "sql-functions.md"

# Java objects, Hive, and PyFlink's own inside: nothing they could do here. Not counted.
JAVA = (
    "pyflink.table.functions:*",
    "pyflink.table.serializers:*",
    "pyflink.table.*:Hive*",
    "pyflink.table.*:UserDefinedType*",
    "pyflink.table:UserDefinedType*",
    "pyflink.table:HiveModule*",
    "*:*.as_smile_bytes",
    "*:*from_java*",
    "*:Procedure",
    "*:*create_java*",
    "*:Json*.name",
    "*:Json*.value",
    "*:Time*Unit.name",
    "*:Time*Unit.value",
)


def take_names(api: Path) -> None:
    """Module, class, members: of the names that a module defines itself."""
    known = json.loads(api.read_text(encoding="utf-8"))["modules"]
    found: dict[str, dict[str, list[str]]] = {}
    for module, contents in known.items():
        own = found.setdefault(module, {})
        for name, members in contents["classes"].items():
            if name.startswith("_"):
                continue
            public = sorted(member for member in members["members"] if not member.startswith("_"))
            own[name] = public if members.get("defined_in") == module else []
        for name in (*contents["functions"], *contents["constants"]):
            if not name.startswith("_"):
                own[name] = []
    NAMES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def is_there(module: str, path: str) -> bool:
    """Whether the name exists under the same path here."""
    try:
        attrgetter(path)(importlib.import_module(module.replace("pyflink", "penstock", 1)))
    except (ImportError, AttributeError):
        return False
    return True


def is_java(module: str, path: str) -> bool:
    """Whether the name is not counted."""
    return any(fnmatchcase(f"{module}:{path}", pattern) for pattern in JAVA)


def judged() -> dict[str, list[tuple[str, bool]]]:
    """For each module its names that count, and whether they are here."""
    known: dict[str, Any] = json.loads(NAMES.read_text(encoding="utf-8"))
    result: dict[str, list[tuple[str, bool]]] = {}
    for module, contents in known.items():
        paths = [path for name, members in contents.items() for path in (name, *(f"{name}.{one}" for one in members))]
        result[module] = [(path, is_there(module, path)) for path in paths if not is_java(module, path)]
    return {module: names for module, names in result.items() if names}


def share(names: list[tuple[str, bool]]) -> str:
    """How many are here."""
    there = sum(found for _, found in names)
    return f"{there:,} of {len(names):,} ({there / len(names):.1%})"


def render(modules: dict[str, list[tuple[str, bool]]]) -> str:
    """The page."""
    everything = [name for names in modules.values() for name in names]
    lines = [
        "# PyFlink's table names",
        "",
        "The public names of `pyflink.table` (PyFlink 2.3), and whether they are under `penstock.table`.",
        "The page is generated (`python scripts/pyflink_table_names.py`). A name that is here exists and can be used;",
        "the rules of the Table API have tests of their own.",
        "Hive, Java objects and PyFlink's own inside are not counted.",
        "",
        f"**{share(everything)} names are here.**",
        "",
        "| module | here | missing |",
        "|---|---|---|",
    ]
    for module, names in modules.items():
        missing = ", ".join(f"`{path}`" for path, found in names if not found)
        lines.append(f"| `{module.replace('pyflink', 'penstock', 1)}` | {share(names)} | {missing} |")
    return "\n".join([*lines, ""])


def render_functions() -> str:
    """The built-in functions that there are."""
    scalar = sorted(name for name in scalar_function_names() if name[0].isalpha())
    aggregates = [name for name in aggregate_names() if name[0].isalpha()]
    return "\n".join(
        [
            "# Built-in functions",
            "",
            "What SQL knows here, generated from the registry (`python scripts/pyflink_table_names.py`).",
            "Names are not case sensitive.",
            "",
            f"## Scalar functions ({len(scalar)})",
            "",
            ", ".join(f"`{name}`" for name in scalar),
            "",
            f"## Aggregate functions ({len(aggregates)})",
            "",
            ", ".join(f"`{name}`" for name in aggregates),
            "",
        ]
    )


def main() -> int:
    """Write the pages."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--api", type=Path, help="a JSON file: modules -> classes, functions, constants")
    options = arguments.parse_args()
    if options.api:
        take_names(options.api)
    modules = judged()
    TABLE.write_text(render(modules), encoding="utf-8")
    FUNCTIONS.write_text(render_functions(), encoding="utf-8")
    print(f"{TABLE.relative_to(ROOT)}: {share([name for names in modules.values() for name in names])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
