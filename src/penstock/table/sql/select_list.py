"""The SELECT list: stars, the names of its columns, and the parts of ORDER BY and QUALIFY that it has."""

from __future__ import annotations

from penstock.table.plan import ast
from penstock.table.plan.scope import Scope
from penstock.util.exceptions import ValidationException


def expanded(node: ast.Node, scope: Scope) -> list[ast.Node]:
    """Expand ``*`` and ``t.*``. Columns get names that stay unique although names repeat."""
    if not isinstance(node, ast.Star):
        return [node]
    row = scope.row_at(node.qualifier) if node.qualifier else None
    if row is not None:
        return [ast.Ref((*node.qualifier, name)) for name in row.field_names()]
    return [ast.ColumnAt(index, scope.columns[index].field.name) for index in scope.columns_of(node.qualifier)]


def output_names(nodes: list[ast.Node]) -> list[str]:
    """Return the column names of a SELECT list. Unnamed ones are EXPR$0, EXPR$1, ..., by position."""
    names = []
    for position, node in enumerate(nodes):
        match node:
            case ast.Named():
                names.append(node.names[0])
            case ast.Ref():
                names.append(node.path[-1])
            case ast.ColumnAt():
                names.append(node.name)
            case ast.FunctionCall(name="FIELD"):
                names.append(str(node.options[0]))
            case _:
                names.append(f"EXPR${position}")
    result: list[str] = []
    for name in names:  # SELECT a, a gives a and a0
        unique, number = name, 0
        while unique in result:
            unique, number = f"{name}{number}", number + 1
        result.append(unique)
    return result


def key_name(node: ast.Node, index: int) -> str:
    """Return the column name of a key of GROUP BY."""
    return node.path[-1] if isinstance(node, ast.Ref) else f"$k{index}"


def order_node(node: ast.Node, nodes: list[ast.Node], names: list[str]) -> ast.Node | int:
    """Resolve an ORDER BY item: a position, a column of the SELECT list, or another expression."""
    if isinstance(node, ast.Literal) and isinstance(node.value, int):
        if not 1 <= node.value <= len(nodes):
            raise ValidationException("SQL validation failed. Ordinal out of range")
        return node.value - 1
    if isinstance(node, ast.Ref) and len(node.path) == 1 and node.path[0] in names:
        return names.index(node.path[0])
    for index, one in enumerate(nodes):
        if node in (one, one.operand if isinstance(one, ast.Named) else None):
            return index
    return node


def qualify_node(node: ast.Node, nodes: list[ast.Node]) -> ast.Node:
    """Return the condition of QUALIFY, with expressions in place of their names in the SELECT list."""
    named = {one.names[0]: one.operand for one in nodes if isinstance(one, ast.Named)}

    def meaning(part: ast.Node) -> ast.Node | None:
        return named.get(part.path[0]) if isinstance(part, ast.Ref) and len(part.path) == 1 else None

    condition = ast.rewrite(node, meaning)
    if not any(isinstance(one, ast.Over) for one in ast.walk(condition)):
        raise ValidationException("SQL validation failed. QUALIFY must contain a function with OVER: use WHERE")
    return condition
