"""A crash in the middle, and results as if there had been none (ch. 3)."""

from __future__ import annotations

from typing import Any

from showcase import Showcase

from penstock.common import Configuration, RestartStrategies, Types
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

book = Showcase(__doc__)


class RunningSum(MapFunction):
    """Sums up the numbers of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG(), default_value=0))

    def map(self, value: int) -> tuple[str, int, int]:
        self.sum.update(self.sum.value() + value)
        return even_or_odd(value), value, self.sum.value()


def even_or_odd(number: int) -> str:
    """The key of a number."""
    return "odd" if number % 2 else "even"


def even_odd_sums(numbers: DataStream) -> DataStream:
    """Two keys, two sums."""
    return numbers.key_by(even_or_odd).map(RunningSum())


class CrashOnce(MapFunction):
    """Fails at one number, but only in the first attempt to run the job."""

    def __init__(self, number: int) -> None:
        self.number = number

    def open(self, runtime_context: RuntimeContext) -> None:
        self.first_attempt = runtime_context.get_attempt_number() == 0

    def map(self, value: Any) -> Any:
        if value == self.number and self.first_attempt:
            raise RuntimeError(f"crash at {value}, as planned")
        return value


@book.example("E07", "Even and odd sums, with a crash", own_job=True)
def even_odd_with_crash(env: StreamExecutionEnvironment) -> DataStream:
    """Numbers 1 to 10, five a batch, so the first checkpoint is: source at 5, even sum 6, odd sum 9.

    The job crashes at 7, is restarted from that checkpoint, reads 6 and 7 again, and counts every number once.
    """
    batches_of_five = Configuration()
    batches_of_five.set_string("penstock.batch.max-records", "5")
    env.configure(batches_of_five)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restart_attempts=1, delay_between_attempts=100))
    numbers = env.from_collection(range(1, 11)).map(CrashOnce(7)).set_parallelism(1)
    return even_odd_sums(numbers)


if __name__ == "__main__":
    raise SystemExit(book.main())
