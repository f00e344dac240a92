"""The width of text on a terminal."""

from __future__ import annotations

import unicodedata


def display_width(text: str) -> int:
    """Return the number of terminal columns of a text. Wide characters take two.

    >>> display_width("ab"), display_width("漢字")
    (2, 4)
    """
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
