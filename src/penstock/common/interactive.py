"""Errors in an interactive session are one message: the frames between the prompt and the mistake are all ours.

Python's own prompt asks ``sys.excepthook``; IPython and Jupyter ask the error itself (``_render_traceback_``).
"""

from __future__ import annotations

import linecache
import sys
import traceback
from pathlib import Path
from types import TracebackType

from penstock.common.errors import PenstockError

__all__ = ["one_message", "show_errors_as_messages"]

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def one_message(error: PenstockError) -> list[str]:
    """The lines to show: the error, and the line of the user's program that caused it."""
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
    place = _line_of_the_user(error.__traceback__)
    return lines if place is None else [*lines, place]


def show_errors_as_messages() -> None:
    """At Python's prompt, print errors of ours as one message from now on; scripts keep their tracebacks."""
    if hasattr(sys, "ps1") and not isinstance(sys.excepthook, _Hook):
        sys.excepthook = _Hook(sys.excepthook)


class _Hook:
    """Prints our errors; passes all others to the previous hook."""

    def __init__(self, before: object) -> None:
        self._before = before

    def __call__(self, kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        if isinstance(error, PenstockError):
            sys.stderr.write("\n".join(one_message(error)) + "\n")
        elif callable(self._before):
            self._before(kind, error, frames)


def _line_of_the_user(frames: TracebackType | None) -> str | None:
    """The last line that is not ours, if its text is known: that of a notebook's cell is, and of a prompt it may be."""
    found = None
    for frame, number in traceback.walk_tb(frames):
        if frame.f_code.co_filename.startswith(_PACKAGE):
            break
        found = (frame.f_code.co_filename, number)
    text = "" if found is None else linecache.getline(*found).strip()
    return f"in line {found[1]}: {text}" if found is not None and text else None
