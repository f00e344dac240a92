"""Scripts: several statements that end with semicolons."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECES = re.compile(r"'(?:[^']|'')*(?:'|\Z)|`[^`]*(?:`|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^'`\-/;]+|.", re.DOTALL)
_SET_BEGINS = re.compile(r"\s*(?:EXECUTE\s+STATEMENT\s+SET\s+BEGIN|BEGIN\s+STATEMENT\s+SET)\b", re.IGNORECASE)
_SET_ENDS = re.compile(r"\bEND\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script and its first line."""

    text: str
    line: int


def split_statements(script: str) -> tuple[list[Statement], str]:
    r"""Return the complete statements of a script, and the rest without a semicolon.

    >>> statements, rest = split_statements("SELECT ';'; -- a; b\nSHOW TABLES; SELECT")
    >>> [one.text for one in statements], rest
    (["SELECT ';'", 'SHOW TABLES'], 'SELECT')
    """
    found: list[Statement] = []
    current, line, start = "", 1, 1
    for piece in _PIECES.findall(script):
        is_comment = piece.startswith("--") or (piece.startswith("/*") and not piece.startswith("/*+"))
        if piece == ";" and not (_SET_BEGINS.match(current) and not _SET_ENDS.search(current)):
            if current.strip():
                found.append(Statement(current.strip(), start))
            current = ""
        elif is_comment:
            current += " "
        else:
            if not current.strip() and piece.strip():
                blank = piece[: len(piece) - len(piece.lstrip())]
                current, start = "", line + blank.count("\n")
            current += piece
        line += piece.count("\n")
    return found, current.strip()
