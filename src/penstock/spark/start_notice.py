"""One line on the terminal while Spark starts, so that the program does not seem to hang."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

__all__ = ["start_notice"]


@contextlib.contextmanager
def start_notice(master: str) -> Iterator[None]:
    """Wrap the start of Spark. Quiet if stderr is not a terminal, or if there is another progress display."""
    terminal = sys.stderr
    if terminal is None or not terminal.isatty() or getattr(terminal, "shows_progress", False):
        yield
        return
    started = time.monotonic()
    terminal.write(f"Starting Spark ({master}), some seconds ...")
    terminal.flush()
    after = ""
    try:
        yield
        after = f" {time.monotonic() - started:.0f} s; the first batch also starts Python workers"
    finally:
        terminal.write(f"{after}\n")
        terminal.flush()
