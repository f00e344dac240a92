"""Which of PyFlink's public names work here: docs/pyflink-names.md, from the names and what is really there.

python scripts/pyflink_names.py                       write the table (make names)
python scripts/pyflink_names.py --api api.json        first take the names of another version of PyFlink
"""

from __future__ import annotations

import argparse
import importlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.common.errors import UnsupportedFeatureError

ROOT = Path(__file__).resolve().parent.parent
NAMES = ROOT / "tests" / "api" / "pyflink_names.json"
STATUS = ROOT / "scripts" / "pyflink_status.toml"
TABLE = ROOT / "docs" / "pyflink-names.md"

WORKS, ACCEPTED, UNSUPPORTED, JAVA = "works", "accepted", "unsupported", "java"
STATUSES = (WORKS, ACCEPTED, UNSUPPORTED, JAVA)
PACKAGES = ("pyflink.datastream", "pyflink.common")
# Doors to other systems; everything else is the programming model.
OUTSIDE = ("pyflink.datastream.connectors", "pyflink.datastream.formats")
# Systems that there is no client for here.
WITHOUT_CLIENT = ("Pulsar",)


@dataclass(frozen=True)
class Name:
    """One public name of PyFlink and what it does here."""

    module: str
    path: str  # "Class", "Class.member" or "function"
    status: str
    remark: str = ""

    @property
    def is_outside(self) -> bool:
        """Whether it belongs to a connector or a format."""
        return self.module.startswith(OUTSIDE)

    @property
    def has_client(self) -> bool:
        """Whether it belongs to a system that is supported at all."""
        return not self.module.endswith(tuple(f".{system.lower()}" for system in WITHOUT_CLIENT))


def public_names(names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every (module, name); members of classes as "Class.member", what a package exports again not twice."""
    for module, contents in names.items():
        for name, members in contents.items():
            if name == "functions":
                yield from ((module, function) for function in members)
            elif not name.startswith("_"):
                yield module, name
                yield from ((module, f"{name}.{member.rstrip('=')}") for member in members)


def our_module(module: str) -> ModuleType:
    """The module of the same name here."""
    return importlib.import_module(module.replace("pyflink", "penstock", 1))


def lookup(module: str, path: str) -> Any:
    """What the name is here; raises UnsupportedFeatureError if it is nothing."""
    return attrgetter(path)(our_module(module))


@cache
def remarks() -> dict[str, dict[str, str]]:
    """The hand-written part."""
    return tomllib.loads(STATUS.read_text(encoding="utf-8"))


def remark_for(kind: str, path: str) -> str | None:
    """Why a name is accepted or unsupported, if it is."""
    return next((why for pattern, why in remarks()[kind].items() if fnmatchcase(path, pattern)), None)


def judge(module: str, path: str) -> Name:
    """A name and its status."""
    importlib.import_module("penstock.datastream")  # modules that are missing explain themselves from here on
    why = remark_for(JAVA, path)
    if why is not None:
        return Name(module, path, JAVA, why)
    try:
        lookup(module, path)
    except UnsupportedFeatureError as error:
        return Name(module, path, UNSUPPORTED, str(error).partition(": ")[2])
    except AttributeError:
        return Name(module, path, UNSUPPORTED, "not there")
    for status in (UNSUPPORTED, ACCEPTED):
        why = remark_for(status, path)
        if why is not None:
            return Name(module, path, status, why)
    return Name(module, path, WORKS)


def all_names() -> list[Name]:
    """Every public name, judged."""
    return [judge(module, path) for module, path in public_names(json.loads(NAMES.read_text(encoding="utf-8")))]


# -- the table --------------------------------------------------------------------------------------------------------


def share(names: list[Name]) -> str:
    """How many of them work."""
    counted = [name for name in names if name.status != JAVA]
    works = sum(name.status == WORKS for name in counted)
    return f"{works:,} of {len(counted):,} work ({works / len(counted):.1%})" if counted else "nothing but Java"


def render(names: list[Name]) -> str:
    """The page."""
    inside = [name for name in names if not name.is_outside]
    outside = [name for name in names if name.is_outside]
    lines = [
        "# PyFlink's names",
        "",
        "Every public name of `pyflink.datastream` and `pyflink.common` (PyFlink 2.3), and what it does here under",
        "`penstock.`. The page is generated (`make names`); a test holds it against the code.",
        "",
        "- **works**: does what PyFlink's documentation says of it;",
        "- **accepted**: taken, checked and given back, so that programs run unchanged; nothing happens because of it;",
        "- **unsupported**: raises `UnsupportedFeatureError`, which says what to do instead;",
        "- **Java**: concerns Java objects, Java serializers or PyFlink's own inside: nothing it could do here;",
        "  what would give a Java object raises `UnsupportedFeatureError`. Not counted in the percentages.",
        "",
        "| | works | accepted | unsupported | Java |",
        "|---|---|---|---|---|",
        summary_row("programming model", inside),
        summary_row("connectors and formats", outside),
        summary_row("all", names),
        summary_row(f"all but {', '.join(WITHOUT_CLIENT)}", [name for name in names if name.has_client]),
        "",
    ]
    for module in dict.fromkeys(name.module for name in names):
        lines += section(module, [name for name in names if name.module == module])
    return "\n".join(lines)


def summary_row(title: str, names: list[Name]) -> str:
    """One line of the summary."""
    counts = Counter(name.status for name in names)
    counted = len(names) - counts[JAVA]
    cells = [f"{counts[status]:,} ({counts[status] / counted:.1%})" for status in (WORKS, ACCEPTED, UNSUPPORTED)]
    return f"| {title} | {' | '.join(cells)} | {counts[JAVA]:,} |"


def section(module: str, names: list[Name]) -> list[str]:
    """A module: a line for each class or function."""
    lines = [f"## {module.replace('pyflink', 'penstock', 1)}", "", share(names), ""]
    lines += ["| name | works | accepted | unsupported | Java |", "|---|---|---|---|---|"]
    owners = dict.fromkeys(owner_of(name, names) for name in names)
    for owner in owners:
        members = [name for name in names if owner_of(name, names) == owner]
        cells = [cell(owner, [name for name in members if name.status == s]) for s in STATUSES]
        lines.append(f"| `{owner}` | {' | '.join(cells)} |")
    return [*lines, ""]


def owner_of(name: Name, names: list[Name]) -> str:
    """The class a member belongs to, nested ones included; itself if it is a class or a function."""
    classes = {other.path for other in names}
    owner = name.path.rpartition(".")[0]
    if owner and owner in classes and not name.path[len(owner) + 1].isupper():
        return owner
    if owner and name.path.rpartition(".")[2].isupper():  # members of enums
        return owner
    return name.path


def cell(owner: str, names: list[Name]) -> str:
    """Names of one status, with the reasons they have in common."""
    by_remark: dict[str, list[str]] = {}
    for name in names:
        shown = "itself" if name.path == owner else f"`{name.path.removeprefix(owner + '.')}`"
        by_remark.setdefault(name.remark, []).append(shown)
    parts = [f"{', '.join(paths)}{f' ({remark})' if remark else ''}" for remark, paths in by_remark.items()]
    return "; ".join(parts).replace("|", "\\|")


def take_names(api: Path) -> None:
    """The names of the two packages, without anything else that is known about them."""
    known = json.loads(api.read_text(encoding="utf-8"))
    wanted = {module: contents for module, contents in known.items() if module.startswith(PACKAGES)}
    NAMES.write_text(json.dumps(wanted, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--api", type=Path, help="a JSON file: module -> class -> members")
    options = arguments.parse_args()
    if options.api:
        take_names(options.api)
    names = all_names()
    TABLE.write_text(render(names), encoding="utf-8")
    inside = [name for name in names if not name.is_outside]
    print(f"{TABLE.relative_to(ROOT)}: {share(names)}; without connectors and formats {share(inside)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
