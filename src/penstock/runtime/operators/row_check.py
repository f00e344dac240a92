"""Check and name rows with plain fields in one loop.

Most records declared as rows are `Row` objects without names whose fields have the declared classes. A loop compiled
for the type accepts them and gives them their names. `type_check.py` handles all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.common.types import Row, share_names

__all__ = ["NameRows", "compile_row_loop"]

NameRows = Callable[[list[Any]], list[Any]]
"""Names the rows of a batch that certainly fit, and returns the others."""

_LOOP = """
def name_rows(values):
    others = []
    for value in values:
        if type(value) is Row:
            fields = value._values
            if len(fields) == {count}:
                {fields}, = fields
                if {conditions}:
                    names = value._fields
                    if names is NAMES:
                        continue
                    if names is None:
                        value._fields = NAMES
                        continue
        others.append(value)
    return others
"""


def compile_row_loop(names: Sequence[str], conditions: Sequence[str]) -> NameRows:
    """Compile the loop for rows with these names. The i-th condition is an expression on the field `f<i>`.

    >>> name_rows = compile_row_loop(["word", "n"], ["type(f0) is str", "type(f1) is int"])
    >>> rows = [Row("a", 1), Row("b", None)]
    >>> name_rows(rows), rows
    ([<Row('b', None)>], [Row(word='a', n=1), <Row('b', None)>])
    """
    fields = ", ".join(f"f{position}" for position in range(len(names)))
    source = _LOOP.format(count=len(names), fields=fields, conditions=" and ".join(f"({one})" for one in conditions))
    scope: dict[str, Any] = {"Row": Row, "NAMES": share_names(names)}
    exec(source, scope)  # noqa: S102 - the source consists of templates and numbers
    loop: NameRows = scope["name_rows"]
    return loop
