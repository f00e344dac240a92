"""Makes a session's results those of the documentation: `python benchmarks/publish.py --name 2026-11-16`.

Copies results.json and results.md to benchmarks/results/, the picture to docs/pictures/, and writes the tables into
docs/performance.md, and a few of their lines into README.md, between two marks. Nothing there is typed by hand.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a script, from anywhere

from benchmarks.results_table import Results
from benchmarks.systems.environment import CACHE, ROOT

PAGE = ROOT / "docs" / "performance.md"
FRONT = ROOT / "README.md"
FRONT_JOBS = ("a", "b", "c", "d", "e", "f", "k", "n", "q5", "q8")
PICTURE = ROOT / "docs" / "pictures" / "benchmarks.png"
KEPT = ROOT / "benchmarks" / "results"
_MARKED = re.compile(r"(<!-- measured tables begin: )(.*?)( -->\n)(.*?)(<!-- measured tables end -->)", re.DOTALL)


def measured(results: Results, *, picture: bool) -> str:
    """The part of the page between the marks."""
    about = "; ".join(f"{name}: {value}" for name, value in results.about.items())
    parts = ["", f"{about}.", "", results.summary(), ""]
    if picture:
        parts += ["![The same figures as bars](pictures/benchmarks.png)", ""]
    return "\n".join(parts) + "\n"


def front(results: Results) -> str:
    """The part of the README between the marks."""
    parts = [results.short(FRONT_JOBS)]
    cell = results.measured("l").get("penstock")
    if cell is not None:
        half, most = cell.median("p50_ms"), cell.median("p99_ms")
        parts.append(
            f"At 1,000 records/s, a record takes {half:.0f} ms (p50; p99: {most:.0f} ms) from a socket "
            "through keyed state to a committed sink."
        )
    return "\n" + "\n\n".join(parts) + "\n\n"


def source_of(page: str) -> str:
    """The results file that a page's tables come from."""
    match = _MARKED.search(page)
    if match is None:
        raise ValueError("the page has no marks for measured tables")
    return match[2]


def with_tables(page: str, source: str, text: str) -> str:
    """The page with other tables."""
    source_of(page)  # there are marks
    return _MARKED.sub(lambda match: match[1] + source + match[3] + text + match[5], page)


def main() -> None:
    """Copy and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="directory", type=Path, default=CACHE / "results")
    parser.add_argument("--name", required=True, help="the results' name under benchmarks/results, such as a date")
    parser.add_argument("--note", help="something to know about this session, such as a busy machine")
    args = parser.parse_args()
    results = Results.load(args.directory)
    if not results.cells:
        sys.exit(f"there are no results in {args.directory}")
    if args.note:
        results.about["note"] = args.note
        results.save(args.directory)
    for ending in ("json", "md"):
        shutil.copyfile(args.directory / f"results.{ending}", KEPT / f"{args.name}.{ending}")
    drawn = args.directory / "results.png"
    if drawn.exists():
        shutil.copyfile(drawn, PICTURE)
    text = measured(results, picture=PICTURE.exists())
    for page, tables in ((PAGE, text), (FRONT, front(results))):
        page.write_text(with_tables(page.read_text(), f"benchmarks/results/{args.name}.json", tables))
    print(f"written: {PAGE}, {FRONT}, {KEPT / args.name}.json and .md")


if __name__ == "__main__":
    main()
