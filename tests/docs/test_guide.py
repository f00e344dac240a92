"""The guide: its programs run, its links lead somewhere, the tests it names exist, all pages are in the menu."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from code_blocks import Block, WrongOutputError, blocks, run_page  # noqa: E402

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
WITH_CODE = [page for page in PAGES if any(block.kind == "python" for block in blocks(page.read_text("utf-8")))]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_programs_of_a_page_run_and_print_what_it_shows(page):
    assert run_page(page) > 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_pictures_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    made = {DOCS / "gallery.md", DOCS / "reference.md"}
    missing = [target for target in local if not (page.parent / target).exists()]
    assert [target for target in missing if page.parent / target not in made] == []


@pytest.mark.parametrize("page", ["guarantees.md", "rules.md"])
def test_every_test_that_a_page_names_exists(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 15
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).exists() or (test and f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert missing == []


def paths_of(text):
    """Source files that a text names: `spark/compiler.py`, not `job.py` or `/tmp/job.py`."""
    return re.findall(r"`([\w.-]+(?:/[\w.*-]+)+\.(?:py|md|java|toml|sh|json))(?:::\w+)?`", text)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_a_page_names_exists(page):
    roots = [ROOT, DOCS, ROOT / "src" / "penstock", page.parent]
    named = paths_of(page.read_text(encoding="utf-8"))
    assert [path for path in named if not any(list(root.glob(path)) for root in roots)] == []


def test_each_walk_through_the_source_opens_every_file_once():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    walks = re.findall(r"^## Following (.+?)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert [title for title, _ in walks] == ["a record", "a batch", "`penstock stop`"]
    for title, walk in walks:
        opened = paths_of(walk)
        assert len(opened) > 10
        assert sorted(set(opened)) == sorted(opened), title


def test_every_page_is_in_the_menu():
    menu = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    made = ["gallery.md", "reference.md"]  # by scripts/docs_pages.py, when the guide is built
    assert sorted(menu) == sorted([*made, *(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))])


def test_pictures_are_used_and_say_what_they_show():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (DOCS / "pictures").iterdir():
        assert re.search(rf"!\[[^]]{{10,}}\]\((\.\./)?pictures/{re.escape(picture.name)}\)", text), picture.name
        if picture.suffix == ".svg":
            assert "aria-label=" in picture.read_text(encoding="utf-8")


# -- the collector itself ---------------------------------------------------------------------------------------------

PAGE = """\
# Title

```python
answer = 40
```

Text in between.

```sh
rm -rf never
```

```python
print(answer + 2)
```

<!-- output -->
```text
42
```

<!-- not run: only shown -->
```python
raise RuntimeError
```
"""


def write(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_know_their_language_mark_and_line():
    found = blocks(PAGE)
    assert [(block.kind, block.mark) for block in found] == [
        ("python", ""),
        ("sh", ""),
        ("python", ""),
        ("text", "output"),
        ("python", "not run: only shown"),
    ]
    assert found[0] == Block("python", "", "answer = 40\n", 4)


def test_blocks_of_a_page_share_their_names_and_marked_ones_are_not_run(tmp_path):
    assert run_page(write(tmp_path, PAGE)) == 2


def test_other_output_than_shown_is_an_error(tmp_path):
    with pytest.raises(WrongOutputError, match=r"page.md:19: the page shows\n42\nbut its program prints\n43"):
        run_page(write(tmp_path, PAGE.replace("answer + 2", "answer + 3")))


def test_an_error_is_at_the_line_of_the_page(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(write(tmp_path, PAGE.replace("print(answer + 2)", "1 / 0")))
    assert caught.traceback[-1].lineno + 1 == 14


def test_fragments_are_only_compiled(tmp_path):
    assert run_page(write(tmp_path, "<!-- fragments -->\n```python\nundefined.call()\n```\n")) == 1


def test_even_a_block_that_is_not_run_must_be_python(tmp_path):
    with pytest.raises(SyntaxError):
        run_page(write(tmp_path, PAGE.replace("raise RuntimeError", "raise Runtime Error")))
