"""Hints behind a table (T122)."""

from __future__ import annotations

import re
from typing import Any

_HINT = re.compile(r"\+\s*(\w+)\s*\((.*)\)", re.DOTALL)
_OPTION = re.compile(r"'((?:[^']|'')*)'\s*=\s*'((?:[^']|'')*)'")


def hint_options(tree: Any) -> dict[str, dict[str, str]]:
    """Hints behind a table: ``/*+ OPTIONS('k'='v') */``; those that are unknown are ignored (T122)."""
    found: dict[str, dict[str, str]] = {}
    comments = [*(tree.comments or ()), *(comment for part in tree.parts for comment in (part.comments or ()))]
    for comment in comments:
        match = _HINT.search(comment)
        if match is not None:
            pairs = _OPTION.findall(match.group(2))
            found[match.group(1).upper()] = {k.replace("''", "'"): v.replace("''", "'") for k, v in pairs}
    return found
