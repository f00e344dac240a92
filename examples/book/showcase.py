"""The command line of the book's examples: choose some, run them, print their results as tables."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from penstock.datastream import DataStream, StreamExecutionEnvironment

Records = Callable[[], list[Any]]
"""What there is to see of a result, once the job has run."""

Builder = Callable[[StreamExecutionEnvironment], DataStream | Mapping[str, DataStream] | Mapping[str, Records]]

SHARED_MODULE = Path(__file__).with_name("sensors.py")


@dataclass(frozen=True)
class Example:
    """One example of the book: its number, what it is called, and the function that defines it."""

    number: str
    title: str
    build: Builder
    own_job: bool = False

    @property
    def text(self) -> str:
        """What it shows: the docstring of the function."""
        return inspect.getdoc(self.build) or ""

    def streams(self, env: StreamExecutionEnvironment) -> dict[str, DataStream | Records]:
        """The results, each with its name; a single one has none."""
        built = self.build(env)
        return dict(built) if isinstance(built, Mapping) else {"": built}


class Showcase:
    """The examples of one file."""

    def __init__(self, description: str) -> None:
        self.description = description.strip()
        self.examples: dict[str, Example] = {}

    def example(self, number: str, title: str, *, own_job: bool = False) -> Callable[[Builder], Builder]:
        """Adds a function that defines an example; the function stays what it is.

        All examples run as one job, except those that change settings of the environment.
        """

        def add(build: Builder) -> Builder:
            self.examples[number] = Example(number, title, build, own_job)
            return build

        return add

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Runs what the command line asks for."""
        options = self._parser().parse_args(argv)
        chosen = [self.examples[number] for number in options.example or self.examples]
        together = [example for example in chosen if not example.own_job]
        alone = [[example] for example in chosen if example.own_job]
        for examples in [together, *alone] if together else alone:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(options.parallelism)
            env.add_python_file(str(SHARED_MODULE))  # functions that import it run in other processes
            results = collect(env, examples)
            for example in examples:
                print(render(example, results[example.number]), flush=True)
        return 0

    def _parser(self) -> argparse.ArgumentParser:
        listed = "\n".join(f"  {example.number}  {example.title}" for example in self.examples.values())
        parser = argparse.ArgumentParser(
            description=self.description,
            epilog=f"examples in this file:\n{listed}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "--example", nargs="+", choices=list(self.examples), metavar="E", help="which ones to run; all unless given"
        )
        parser.add_argument("--parallelism", type=int, default=2, help="parallel tasks of each operator (default: 2)")
        return parser


def collect(env: StreamExecutionEnvironment, examples: Sequence[Example]) -> dict[str, dict[str, list[Any]]]:
    """Run the examples as one job; the records of every result, by number and name."""
    streams = {example.number: example.streams(env) for example in examples}
    pending = {number: {name: in_order(one) for name, one in named.items()} for number, named in streams.items()}
    env.execute(", ".join(pending))
    return {number: {name: records() for name, records in named.items()} for number, named in pending.items()}


def in_order(stream: DataStream | Records) -> Records:
    """The records of a stream, once its job has run, in an order that does not change from run to run.

    One task gives its results in order. Of several tasks only the results of a key are in order: they stay together.
    What a sink wrote is asked for by a function.
    """
    if not isinstance(stream, DataStream):
        return stream
    records = stream.collect_async()
    return lambda: list(records) if stream.get_parallelism() == 1 else sorted(records, key=first_field)


def first_field(record: Any) -> tuple[bool, Any]:
    """What records are grouped by: numbers before everything else."""
    first = record[0] if isinstance(record, tuple) else record
    is_number = isinstance(first, (int, float))
    return not is_number, first if is_number else str(first)


def render(example: Example, results: Mapping[str, list[Any]]) -> str:
    """An example as text: title, what it shows, results."""
    title = f"{example.number}  {example.title}"
    lines = ["", title, "=" * len(title), example.text, ""]
    for name, records in results.items():
        if name:
            lines.append(f"{name}:")
        lines.append(textwrap.indent(table(records), "  "))
    return "\n".join(lines)


def table(records: Sequence[Any]) -> str:
    """Records as lines with aligned columns."""
    rows = [cells(record) for record in records]
    if not rows:
        return "(nothing)"
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    )


def cells(record: Any) -> list[str]:
    """A tuple has one cell a field, anything else is one cell."""
    return [cell(field) for field in record] if isinstance(record, tuple) else [cell(record)]


def cell(value: Any) -> str:
    """A value as a person writes it."""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
