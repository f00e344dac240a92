"""Statements: parses and executes them (T2, T120 to T127)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.table.plan.nodes.base import Rel
from penstock.table.sql.dialect import parse
from penstock.table.sql.hints import hint_options
from penstock.table.sql.query import QueryTranslator
from penstock.table.sql.words import Words
from penstock.table.table_result import TableResult
from penstock.util.exceptions import SqlParserException

if TYPE_CHECKING:
    from penstock.table.table_environment import Insert, TableEnvironment

Execute = Callable[[Words, "TableEnvironment"], TableResult]


def execute(text: str, t_env: TableEnvironment) -> TableResult:
    """Execute one statement."""
    from penstock.table.sql import ddl, show

    words = Words(text)
    first = words.peek().upper()
    if not first:
        raise SqlParserException("SQL parse failed. there is no statement: give exactly one")
    if first in ("SELECT", "WITH", "VALUES", "("):
        return t_env.execute_query(parse_query(words.text, t_env))
    if first == "INSERT":
        return t_env.execute_inserts([parse_insert(words.text, t_env)])
    if first in ("EXECUTE", "BEGIN") and _statement_set(Words(text)) is not None:
        bodies = _statement_set(Words(text)) or []
        return t_env.execute_inserts([parse_insert(body, t_env) for body in bodies])
    if words.accept("EXECUTE"):
        return execute(words.rest(), t_env)
    handlers: dict[str, Execute] = {**ddl.STATEMENTS, **show.STATEMENTS}
    handler = handlers.get(first)
    if handler is None:
        raise SqlParserException(f"SQL parse failed. '{words.peek()}' does not begin a statement")
    return handler(words, t_env)


def parse_query(text: str, t_env: TableEnvironment) -> Rel:
    """Return the relation of a query, which is checked at once."""
    words = Words(text)
    if words.peek().upper() not in ("SELECT", "WITH", "VALUES", "(", "TABLE"):
        raise SqlParserException(f"SQL parse failed. '{words.peek()}' does not begin a query")
    return QueryTranslator(t_env).translate(parse(words.text))


def parse_insert(text: str, t_env: TableEnvironment) -> Insert:
    """Parse ``INSERT INTO t [PARTITION (...)] [(columns)] query``."""
    words = Words(text)
    words.expect("INSERT")
    overwrite = words.accept("OVERWRITE")
    if not overwrite:
        words.expect("INTO")
    words.accept("TABLE")
    path = words.path()
    hints = _hints(words)
    partition = _partition(words) if words.accept("PARTITION") else {}
    columns = None
    if words.peek() == "(" and not _opens_query(words):
        columns = words.names()
    relation = parse_query(words.rest(), t_env)
    return t_env.insert_into(relation, path, columns=columns, partition=partition, hints=hints, overwrite=overwrite)


def explain_statement(text: str, t_env: TableEnvironment) -> str:
    """Return the plan of a query or an INSERT."""
    words = Words(text)
    bodies = _statement_set(Words(text))
    if bodies is not None:
        inserts = [parse_insert(body, t_env) for body in bodies]
        return t_env.explain_plans([(insert.relation, insert) for insert in inserts])
    if words.peek().upper() == "INSERT":
        insert = parse_insert(words.text, t_env)
        return t_env.explain_plans([(insert.relation, insert)])
    return t_env.explain_plans([(parse_query(words.text, t_env), None)])


def _hints(words: Words) -> dict[str, str]:
    """Parse ``/*+ OPTIONS('k'='v') */`` after a table."""
    found: dict[str, str] = {}
    if words.accept("/*+"):
        while not words.accept("*", "/"):
            name = words.name().upper()
            options = words.options()
            if name == "OPTIONS":
                found.update(options)
            words.accept(",")
    return found


def _partition(words: Words) -> dict[str, str]:
    found: dict[str, str] = {}
    words.expect("(")
    while not words.accept(")"):
        if found:
            words.expect(",")
        key = words.name()
        words.expect("=")
        value = words.next()
        found[key] = value[1:-1] if value.startswith("'") else value
    return found


def _opens_query(words: Words) -> bool:
    ahead = Words(words.text[words.position :])
    while ahead.accept("("):
        pass
    return ahead.peek().upper() in ("SELECT", "WITH", "VALUES")


def _statement_set(words: Words) -> list[str] | None:
    """Return the statements of BEGIN STATEMENT SET; ...; END, or of EXECUTE STATEMENT SET BEGIN ...; END."""
    if words.accept("EXECUTE", "STATEMENT", "SET"):
        words.expect("BEGIN")
    elif words.accept("BEGIN", "STATEMENT", "SET"):
        words.accept(";")
    else:
        return None
    bodies = []
    start = words.position
    while not words.at_end:
        before = words.position
        word = words.next()
        if word == ";" or word.upper() == "END":
            body = words.text[start:before].strip()
            if body:
                bodies.append(body)
            start = words.position
    return bodies


__all__ = ["execute", "explain_statement", "hint_options", "parse_insert", "parse_query"]
