"""Shows errors in interactive sessions as one message: all frames between prompt and mistake are internal.

Python's own prompt calls ``sys.excepthook``. IPython and Jupyter call the error's ``_render_traceback_``.
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
    """Return the lines to show: the error, and the line of the user's program that caused it."""
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
    place = _line_of_the_user(error.__traceback__)
    return lines if place is None else [*lines, place]


def show_errors_as_messages() -> None:
    """Print Penstock's errors as one message at Python's prompt. Scripts keep their tracebacks."""
    if hasattr(sys, "ps1") and not isinstance(sys.excepthook, _Hook):
        sys.excepthook = _Hook(sys.excepthook)


class _Hook:
    """Prints Penstock's errors and passes all others to the previous hook."""

    def __init__(self, before: object) -> None:
        self._before = before

    def __call__(self, kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        if isinstance(error, PenstockError):
            sys.stderr.write("\n".join(one_message(error)) + "\n")
        elif callable(self._before):
            self._before(kind, error, frames)


def _line_of_the_user(frames: TracebackType | None) -> str | None:
    """Return the last line outside Penstock, if its text is known. It is for notebook cells, and may be at a prompt."""
    found = None
    for frame, number in traceback.walk_tb(frames):
        if frame.f_code.co_filename.startswith(_PACKAGE):
            break
        found = (frame.f_code.co_filename, number)
    text = "" if found is None else linecache.getline(*found).strip()
    return f"in line {found[1]}: {text}" if found is not None and text else None
