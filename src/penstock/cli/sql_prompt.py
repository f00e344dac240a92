"""The prompt of ``penstock sql``: history, completion, statements of several lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.common.errors import InvalidProgramError
from penstock.table.sql.script import split_statements

if TYPE_CHECKING:
    from penstock.cli.sql import SqlClient

__all__ = ["completions", "converse", "history_file", "is_complete"]

_COMMANDS = ("QUIT", "EXIT", "HELP", "CLEAR")
_KEYWORDS = [
    "ADD",
    "ALL",
    "ALTER",
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CATALOG",
    "CREATE",
    "CROSS",
    "CUBE",
    "CUMULATE",
    "DATABASE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DESCRIPTOR",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXECUTE",
    "EXISTS",
    "EXPLAIN",
    "FROM",
    "FULL",
    "FUNCTION",
    "GROUP",
    "HAVING",
    "HOP",
    "IF",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MATCH_RECOGNIZE",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "PRIMARY",
    "KEY",
    "RESET",
    "RIGHT",
    "ROLLUP",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW",
    "STATEMENT",
    "TABLE",
    "TABLES",
    "TEMPORARY",
    "THEN",
    "TUMBLE",
    "UNION",
    "UNNEST",
    "USE",
    "USING",
    "VALUES",
    "VIEW",
    "VIEWS",
    "WATERMARK",
    "WHEN",
    "WHERE",
    "WITH",
]


def is_complete(text: str) -> bool:
    """Whether Enter ends the input: its last statement has a semicolon, or it is a command.

    >>> is_complete("SELECT 1"), is_complete("SELECT 1;"), is_complete("quit"), is_complete("SELECT ';")
    (False, True, True, False)
    """
    word = text.strip().upper()
    if not word or word in _COMMANDS:
        return True
    statements, rest = split_statements(text)
    return bool(statements) and not rest


def completions(client: SqlClient, text: str) -> Iterator[str]:
    """Yield completions for the word before the cursor: keywords, tables, columns, functions."""
    word = text.replace("(", " ").replace(",", " ").split(" ")[-1].split("\n")[-1]
    if not word:
        return
    t_env = client.t_env
    tables = [*t_env.list_tables(), *t_env.list_temporary_tables()]
    columns = [column for table in dict.fromkeys(tables) for column in _columns(t_env, table)]
    for name in dict.fromkeys([*tables, *columns]):
        if name.startswith(word):
            yield name
    for keyword in dict.fromkeys([*_KEYWORDS, *_COMMANDS, *(one.upper() for one in t_env.list_functions())]):
        if keyword.startswith(word.upper()) and keyword != word.upper():
            yield keyword if word[0].isupper() else keyword.lower()


def _columns(t_env: Any, table: str) -> list[str]:
    try:
        names: list[str] = t_env.from_path(f"`{table}`").get_schema().get_field_names()
    except Exception:
        return []
    return names


def history_file() -> Path:
    """Return the file that stores statements across sessions."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "penstock" / "sql_history"


def converse(client: SqlClient, **settings: Any) -> None:
    """Read and run statements until the user quits. `settings` are passed to the prompt."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
    except ImportError:
        raise InvalidProgramError(
            "the prompt needs the package prompt_toolkit: pip install 'penstock[sql]', or use -e and -f"
        ) from None

    class _Completer(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Any]:
            before = document.text_before_cursor
            word = document.get_word_before_cursor()
            for found in completions(client, before):
                yield Completion(found, start_position=-len(word))

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    path = history_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    session: Any = PromptSession(
        history=FileHistory(str(path)),
        completer=_Completer(),
        complete_while_typing=False,
        multiline=True,
        key_bindings=keys,
        prompt_continuation=lambda width, line, wrapped: "> ".rjust(width),
        **settings,
    )
    while True:
        try:
            text = session.prompt("sql> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not client.answer(text):
            return
