"""The syntax of MATCH_RECOGNIZE (T90): parses tokens to a tree, and the tree to a pattern description."""

# ruff: noqa: SLF001 - a parser is extended by its own methods
from __future__ import annotations

import datetime as dt
import re
from typing import Any

from penstock.table.plan import ast
from penstock.table.plan.match_recognize import MatchDescription, PatternTerm
from penstock.util.exceptions import SqlParserException, TableException, ValidationException

_TERM = re.compile(
    r"\s*(?:`([^`]+)`|([A-Za-z_]\w*))\s*"
    r"(\*|\+|\?|\{\s*(\d*)\s*(,?)\s*(\d*)\s*\})?\s*(\?)?"
)


def parse_match_recognize(parser: Any) -> Any:
    """Parse the parentheses and the alias after the keyword."""
    from sqlglot import exp
    from sqlglot.tokenizer_core import TokenType

    parser._match_l_paren()
    partition = parser._parse_partition_by()
    order = parser._parse_order()
    measures = parser._parse_csv(parser._parse_expression) if parser._match_text_seq("MEASURES") else []
    rows = None
    for words in (("ONE", "ROW"), ("ALL", "ROWS")):
        if parser._match_text_seq(*words, "PER", "MATCH"):
            rows = words[0]
    after = None
    if parser._match_text_seq("AFTER", "MATCH"):
        start = parser._curr
        while parser._curr and parser._curr.text.upper() not in ("PATTERN", "WITHIN"):
            parser._advance()
        after = parser._find_sql(start, parser._prev)
    if not parser._match_text_seq("PATTERN"):
        parser.raise_error("PATTERN expected in MATCH_RECOGNIZE")
    parser._match_l_paren()
    start, depth = parser._curr, 1
    while parser._curr and depth:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(parser._curr.token_type, 0)
        parser._advance()
    pattern = parser._find_sql(start, parser._tokens[parser._index - 2])
    within = parser._parse_bitwise() if parser._match_text_seq("WITHIN") else None
    define = parser._parse_csv(parser._parse_name_as_expression) if parser._match_text_seq("DEFINE") else []
    parser._match_r_paren()
    node = exp.MatchRecognize(partition_by=partition, order=order, measures=measures, define=define)
    node.set("rows", None if rows is None else exp.var(rows))
    node.set("after", None if after is None else exp.var(after))
    node.set("pattern", exp.var(pattern))
    node.set("within", within)
    node.set("alias", parser._parse_table_alias())
    return node


def read_match(tree: Any, reader: Any) -> MatchDescription:
    """Return the description of a pattern."""
    rows = tree.args.get("rows")
    if rows is not None and rows.name == "ALL":
        raise TableException("Only ONE ROW PER MATCH is supported: remove ALL ROWS PER MATCH.")
    order = tree.args.get("order")
    measures: list[tuple[str, ast.Node]] = []
    for measure in tree.args.get("measures") or ():
        node = reader.read(measure)
        if not isinstance(node, ast.Named):
            raise SqlParserException("SQL parse failed. A measure needs a name: expression AS name")
        measures.append((node.names[0], node.operand))
    define = {one.alias: reader.read(one.this) for one in tree.args.get("define") or ()}
    within = tree.args.get("within")
    return MatchDescription(
        partition=tuple(reader.read(one) for one in tree.args.get("partition_by") or ()),
        order=() if order is None else tuple(reader.sort_item(one) for one in order.expressions),
        measures=tuple(measures),
        skip=_skip(tree.args.get("after")),
        pattern=_pattern(tree.args["pattern"].name),
        within=None if within is None else _milliseconds(reader.read(within)),
        define=define,
    )


def _milliseconds(node: ast.Node) -> int:
    value = getattr(node, "value", None)
    if not isinstance(value, dt.timedelta):
        raise ValidationException(
            "SQL validation failed. WITHIN of MATCH_RECOGNIZE needs an interval of days to seconds"
        )
    return value // dt.timedelta(milliseconds=1)


def _skip(tree: Any) -> tuple[str, str]:
    words = ["SKIP", "TO", "NEXT", "ROW"] if tree is None else tree.name.split()
    upper = [word.upper() for word in words]
    if upper == ["SKIP", "PAST", "LAST", "ROW"]:
        return "PAST LAST ROW", ""
    if upper == ["SKIP", "TO", "NEXT", "ROW"]:
        return "TO NEXT ROW", ""
    if upper[:2] == ["SKIP", "TO"] and len(words) == 4 and upper[2] in ("FIRST", "LAST"):
        return f"TO {upper[2]}", words[3].strip("`")
    if upper[:2] == ["SKIP", "TO"] and len(words) == 3:
        return "TO LAST", words[2].strip("`")
    raise SqlParserException(f"SQL parse failed. AFTER MATCH {' '.join(words)} is unknown")


def _pattern(text: str) -> tuple[PatternTerm, ...]:
    """Parse a sequence of variables with quantifiers (T91)."""
    if re.search(r"[|()^&]|\bPERMUTE\b|\{-", text):
        raise TableException(
            f"PATTERN ({text}) is not supported: a pattern must be a sequence of variables, without groups, "
            "alternatives, PERMUTE and exclusions."
        )
    terms = []
    position = 0
    while position < len(text.rstrip()):
        found = _TERM.match(text, position)
        if found is None:
            raise SqlParserException(f"SQL parse failed. PATTERN ({text}) near '{text[position : position + 10]}'")
        position = found.end()
        low, high = _bounds(found)
        terms.append(PatternTerm(found[1] or found[2], low, high, greedy=found[7] is None))
    if not terms:
        raise SqlParserException("SQL parse failed. PATTERN is empty")
    return tuple(terms)


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    match (found[3] or "")[:1]:
        case "":
            return 1, 1
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
    low = int(found[4] or 0)
    if not found[5]:
        return low, low
    return low, int(found[6]) if found[6] else None
