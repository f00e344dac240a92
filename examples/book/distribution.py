"""Which parallel task gets a record, and how many tasks there are (ch. 5)."""

from __future__ import annotations

import random

from showcase import Showcase

from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction, Partitioner, RuntimeContext

book = Showcase(__doc__)


class NegativeFirst(Partitioner):
    """Negative numbers to the first task, others to any."""

    def partition(self, key: int, num_partitions: int) -> int:
        # The key seeds the draw: a batch that is run again after a failure deals its records out as before.
        return 0 if key < 0 else random.Random(key).randrange(num_partitions)  # noqa: S311 - a demonstration


class WithSubtask(MapFunction):
    """Puts the number of the task in front of the record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> tuple[int, int]:
        return self.subtask, value


NUMBERS = [-3, 4, -1, 15, 9, -2, 6, 12]


@book.example("E18", "A custom partitioner")
def custom_partitioner(env: StreamExecutionEnvironment) -> DataStream:
    """All negative numbers meet in task 0. First column: the task, second: the number."""
    numbers = env.from_collection(NUMBERS)
    return numbers.partition_custom(NegativeFirst(), lambda number: number).map(WithSubtask())


class WithParallelism(MapFunction):
    """Appends how many tasks its operator has."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.tasks = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return (*value, self.tasks)


@book.example("E19", "Parallelism of the program, of an operator")
def parallelism(env: StreamExecutionEnvironment) -> DataStream:
    """The first operator has the environment's parallelism, the second twice as many tasks, the third two."""
    return (
        env.from_sequence(1, 4)
        .map(lambda number: (number,))
        .map(WithParallelism())
        .map(WithParallelism())
        .set_parallelism(2 * env.get_parallelism())
        .map(WithParallelism())
        .set_parallelism(2)
    )


if __name__ == "__main__":
    raise SystemExit(book.main())
