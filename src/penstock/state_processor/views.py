"""Convert the stored form of states and windows to the user's view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from penstock.core.window import GlobalWindow, TimeWindow
from penstock.runtime.windows.slices import SliceGrid

_TUMBLING = re.compile(r"tumbling \S+ windows of (\d+) ms")
_SLIDING = re.compile(r"sliding \S+ windows of (\d+)/(\d+) ms with offset (-?\d+) ms")


def windows_in(kind: str, stored: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the windows of a key and their contents: all elements, a reduced value or an accumulator.

    Sliding windows share slices, so the slices are returned: their time range and contents. Those of count windows are
    parts of the one global window.
    """
    sliding, tumbling = _SLIDING.match(kind), _TUMBLING.match(kind)
    if sliding is not None:
        size, slide, offset = map(int, sliding.groups())
        grid = SliceGrid(size, slide, offset)
        for start, contents in sorted(stored.items()):
            elements = [value for _, value in contents] if kind.endswith("with elements") else contents
            yield TimeWindow(start, grid.after(start)), elements
    elif tumbling is not None:
        size = int(tumbling.group(1))
        for start, contents in sorted(stored.items()):
            yield TimeWindow(start, start + size), contents
    elif "sessions" in kind:
        for start, end, contents in stored:
            yield TimeWindow(start, end), contents
    elif kind.startswith(("count windows", "sliding count windows")):
        parts = [stored[1]] if isinstance(stored, list) else [contents for _, contents in sorted(stored.items())]
        yield from ((GlobalWindow.get(), contents) for contents in parts)
    elif kind.endswith("with elements and their timestamps"):  # an evictor may need the timestamps
        for window, contents in stored.items():
            yield window, [value for value, _ in contents]
    else:
        yield from stored.items()
