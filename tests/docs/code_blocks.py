"""Python in fenced blocks of Markdown, run as it stands on the page.

The blocks of a page are one program. They run in the in-process cluster, so they are quick. HTML comments, which
readers do not see, steer it:

* ``<!-- output -->`` before a ``text`` block: what was printed since the last such block must be this;
* ``<!-- output: last line -->``: only its last line;
* ``<!-- not run: why -->`` before a ``python`` block: it is only compiled;
* ``<!-- fragments -->`` anywhere: the page's blocks are pieces of programs, and are only compiled.
"""

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from types import ModuleType

from penstock.common import Configuration
from penstock.datastream.execution_defaults import ExecutionDefaults, execution_defaults
from penstock.testing import MiniCluster

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the comment before it, its text, the line it begins at."""

    kind: str
    mark: str
    text: str
    line: int


class WrongOutputError(AssertionError):
    """A page shows other output than its program prints."""


def blocks(markdown):
    """All fenced blocks of a page."""
    return [
        Block(found["kind"], found["mark"] or "", found["text"], markdown.count("\n", 0, found.start("text")) + 1)
        for found in _BLOCK.finditer(markdown)
    ]


def run_page(path):
    """Run the program of a page and compare its output; returns how many blocks were run, or compiled if none can."""
    module = ModuleType("__main__")
    before = sys.modules["__main__"]
    printed = io.StringIO()
    defaults = ExecutionDefaults(Configuration(), executor=MiniCluster())
    markdown = path.read_text(encoding="utf-8")
    fragments = "<!-- fragments -->" in markdown
    count = 0
    sys.modules["__main__"] = module  # functions and classes of the page are pickled by value, as those of a program
    try:
        with execution_defaults(defaults), contextlib.redirect_stdout(printed):
            for block in blocks(markdown):
                if block.kind == "python":
                    # So many empty lines that a traceback names the line of the page.
                    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
                    if not fragments and not block.mark.startswith("not run: "):
                        exec(code, module.__dict__)
                    count += fragments or not block.mark.startswith("not run: ")
                elif block.mark.startswith("output"):
                    _compare(path, block, printed.getvalue())
                    printed.seek(0)
                    printed.truncate()
    finally:
        sys.modules["__main__"] = before
    return count


def _compare(path, block, printed):
    expected = block.text.rstrip("\n")
    found = printed.rstrip("\n")
    if block.mark == "output: last line":
        found = found.rpartition("\n")[2]
    if found != expected:
        raise WrongOutputError(f"{path}:{block.line}: the page shows\n{expected}\nbut its program prints\n{found}")
