"""Custom sinks with exactly-once delivery, in Flink's classic style: two-phase commit and write-ahead log.

    python examples/connectors/transactional_sinks.py

The sinks of examples 8-14 and 8-15 of *Stream Processing with Apache Flink*, written afresh for Python.
"""

from __future__ import annotations

import argparse
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import FileCheckpointCommitter, GenericWriteAheadSink, TwoPhaseCommitSinkFunction


class TransactionalFileSink(TwoPhaseCommitSinkFunction[str]):
    """A transaction is a file: written in one directory, moved to another by the commit."""

    def __init__(self, target: str, temporary: str) -> None:
        self.target, self.temporary = Path(target), Path(temporary)

    def begin_transaction(self) -> str:
        """A name that no other task has."""
        for directory in (self.target, self.temporary):
            directory.mkdir(parents=True, exist_ok=True)
        return f"{uuid.uuid4()}-{self.get_runtime_context().get_index_of_this_subtask()}"

    def invoke(self, transaction: str, value: Any, context: Any) -> None:  # type: ignore[override]
        """One line a record."""
        with (self.temporary / transaction).open("a", encoding="utf-8") as file:
            file.write(f"{value}\n")

    def pre_commit(self, transaction: str) -> None:
        """Everything is in the file already; nothing is written any more."""

    def commit(self, transaction: str) -> None:
        """Runs again after a failure, so the file may have been moved already."""
        source = self.temporary / transaction
        if source.exists():
            source.rename(self.target / transaction)

    def abort(self, transaction: str) -> None:
        """May run twice, also for a file that was never written."""
        (self.temporary / transaction).unlink(missing_ok=True)


class ConsoleWriteAheadSink(GenericWriteAheadSink):
    """Prints records when their checkpoint is complete."""

    def send_values(self, values: Sequence[Any], checkpoint_id: int, timestamp: int) -> bool:
        """The console always takes them."""
        for value in values:
            print(f"checkpoint {checkpoint_id}: {value}")
        return True


def define(env: StreamExecutionEnvironment, directory: str) -> None:
    """The job."""
    squares = env.from_sequence(1, 10).map(lambda number: number * number)
    squares.add_sink(TransactionalFileSink(f"{directory}/target", f"{directory}/temporary")).name("files")
    committer = FileCheckpointCommitter(f"{directory}/committed")
    squares.add_sink(ConsoleWriteAheadSink(committer, "console")).name("console")


def main() -> None:
    """Runs the job and shows the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", help="where the files go (default: a temporary directory)")
    directory = parser.parse_args().directory or tempfile.mkdtemp()
    env = StreamExecutionEnvironment.get_execution_environment()
    define(env, directory)
    env.execute("transactional sinks")
    for path in sorted(Path(directory, "target").iterdir()):
        print(path.name, path.read_text(encoding="utf-8").split())


if __name__ == "__main__":
    main()
