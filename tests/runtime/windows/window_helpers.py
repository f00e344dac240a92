"""Short ways to say things in window tests: records are (key, value) pairs."""

from window_driver import WindowDriver

from penstock.core.functions import AggregateFunction, ProcessWindowFunction
from penstock.core.output_tag import OutputTag
from penstock.runtime.windows.builder import build_window_operator

LATE = OutputTag("late")


def key_of(record):
    return record[0]


class Values(ProcessWindowFunction):
    """(key, start, end, values) of a window."""

    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [element[1] for element in elements]


class Contents(ProcessWindowFunction):
    """Only the values, for windows of any kind."""

    def process(self, key, context, elements):
        yield [element[1] for element in elements]


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def windows(assigner, function=None, **definition):
    """A driver for a window over (key, value) records."""
    if function is None and not {"reduce_function", "aggregate_function"} & set(definition):
        function = Values()
    if not definition.get("all_window"):
        definition.setdefault("key_selector", key_of)
    return WindowDriver(build_window_operator(assigner, window_function=function, **definition), tags=[LATE.tag_id])


def at(*records):
    """Records of key "a": (value, timestamp) pairs."""
    return [(("a", value), timestamp) for value, timestamp in records]
