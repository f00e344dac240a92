"""``penstock sql``: runs statements from the command line, a file, or a prompt."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from penstock.cli.programs import configuration
from penstock.cli.sql_results import write_result
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.table.result_kind import ResultKind
from penstock.table.sql.script import Statement, split_statements
from penstock.table.table_result import TableResult

__all__ = ["SqlClient", "sql"]

_HELP = """\
Statements end with a semicolon and may have several lines.
  SELECT ...;              run a query; Ctrl-C ends it
  INSERT INTO ...;         run a job in the background (SET 'table.dml-sync' = 'true' waits for it)
  SHOW TABLES;  DESCRIBE t;  EXPLAIN SELECT ...;
  SET 'sql-client.execution.result-mode' = 'table' | 'changelog';
                           rows as they are now, drawn again while they change, or every change in a line
  QUIT;                    end
"""


class SqlClient:
    """Runs statements and writes their results."""

    def __init__(self, t_env: StreamTableEnvironment, output: str = "table", *, streaming: bool = True) -> None:
        self._t_env = t_env
        self._output = output
        self._streaming = streaming
        self._jobs: list[Any] = []
        self.interactive = False

    @property
    def t_env(self) -> StreamTableEnvironment:
        """The environment of the session."""
        return self._t_env

    def run_script(self, script: str, name: str) -> None:
        """Run all statements in order. The last one needs no semicolon. The first failure ends the script."""
        statements, rest = split_statements(script)
        if rest:
            line = script[: script.rfind(rest)].count("\n") + 1
            statements.append(Statement(rest, line))
        for statement in statements:
            try:
                self.run(statement.text)
            except PenstockError as error:
                error.add_note(f"in {name}, line {statement.line}: {_first_line(statement.text)}")
                raise

    def run(self, statement: str) -> None:
        """Run one statement."""
        result = self._t_env.execute_sql(statement)
        client = result.get_job_client()
        if result.get_result_kind() is ResultKind.SUCCESS:
            self._say("OK")
        elif client is None:
            self._write(result, streaming=False)
        elif _is_query(statement):
            self._write(result, streaming=self._streaming)
        elif self.interactive and self._t_env.get_config().get("table.dml-sync", "false").lower() != "true":
            self._jobs.append(client)
            self._say(f"The job is running: {client.get_job_id()}")
        else:
            result.wait()
            self._say("OK")

    def _write(self, result: TableResult, *, streaming: bool) -> None:
        config = self._t_env.get_config()
        output = self._output
        mode = config.get("sql-client.execution.result-mode", "table").lower()
        if self.interactive and streaming and output == "table" and mode == "table":
            output = "live"
        write_result(result, output, streaming=streaming, time_zone=config.get_local_timezone())

    def _say(self, text: str) -> None:
        if self.interactive or self._output == "table":
            sys.stdout.write(f"[INFO] {text}\n")

    def answer(self, text: str) -> bool:
        """Run a line of input: statements, or a command of the client. Return False to end the session."""
        command = text.strip().rstrip(";").strip().upper()
        if command in ("QUIT", "EXIT"):
            return False
        if command in ("HELP", "?"):
            sys.stdout.write(_HELP)
            return True
        if command == "CLEAR":
            sys.stdout.write("\x1b[2J\x1b[H")
            return True
        statements, _ = split_statements(text)
        for statement in statements:
            try:
                self.run(statement.text)
            except PenstockError as error:
                sys.stdout.write(f"[ERROR] {type(error).__name__}: {error}\n")
                break
            except KeyboardInterrupt:
                sys.stdout.write("\nThe query was cancelled.\n")
                break
        return True

    def close(self) -> None:
        """Cancel the running jobs, which live in this process."""
        running = [job for job in self._jobs if not job.get_job_status().result().is_terminal_state()]
        if running:
            sys.stdout.write(f"[INFO] {len(running)} running job(s) end with this session.\n")
        for job in running:
            job.cancel()


def _is_query(statement: str) -> bool:
    return statement.lstrip("( \n\t").split(None, 1)[0].upper() in ("SELECT", "WITH", "VALUES", "TABLE")


def _first_line(text: str) -> str:
    first, _, rest = text.partition("\n")
    return first + (" ..." if rest else "")


def sql(options: argparse.Namespace) -> int:
    """Run the statements of the command line, or start the prompt."""
    client = create_client(options)
    try:
        if options.init is not None:
            client.run_script(_text_of(options.init), str(options.init))
        if options.execute or options.file is not None:
            for statement in options.execute:
                client.run_script(statement, "the command line")
            if options.file is not None:
                client.run_script(_text_of(options.file), str(options.file))
            return 0
        if not sys.stdin.isatty():
            client.run_script(sys.stdin.read(), "the standard input")
            return 0
        from penstock.cli.sql_prompt import converse

        client.interactive = True
        converse(client)
    finally:
        client.close()
    return 0


def create_client(options: argparse.Namespace) -> SqlClient:
    """Create a session with the settings of the command line."""
    settings = configuration(options)
    if options.mini:
        from penstock.testing import MiniCluster

        env = StreamExecutionEnvironment(settings, executor=MiniCluster(keeps_running=True))
    else:
        env = StreamExecutionEnvironment(settings)
    mode = EnvironmentSettings.in_batch_mode() if options.batch else EnvironmentSettings.in_streaming_mode()
    t_env = StreamTableEnvironment.create(env, mode)
    for key, value in settings.to_dict().items():
        t_env.get_config().set(key, str(value))
    return SqlClient(t_env, options.output, streaming=not options.batch)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidProgramError(f"the script {path} cannot be read: {error.strerror}") from None
