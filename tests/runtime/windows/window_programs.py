"""Operators for what a `Config` of the reference describes."""

from penstock.core.functions import AggregateFunction, ProcessWindowFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import ValueStateDescriptor
from penstock.core.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.runtime.windows.builder import build_window_operator
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.merging import MergingWindowOperator
from penstock.runtime.windows.window_operator import WindowOperator

LATE = OutputTag("late")


class Show(ProcessWindowFunction):
    """(key, start, end, numbers) of a window, in the order the elements are handed over."""

    def process(self, key, context, elements):
        window = context.window()
        start, end = (0, 2**63 - 1) if isinstance(window, GlobalWindow) else (window.start, window.end)
        numbers = tuple(e.number for e in elements)
        yield (key, start, end, numbers)


class ShowFolded(ProcessWindowFunction):
    """The same of the one element that reduce or aggregate made."""

    def process(self, key, context, elements):
        (folded,) = elements
        window = context.window()
        start, end = (0, 2**63 - 1) if isinstance(window, GlobalWindow) else (window.start, window.end)
        yield (key, start, end, tuple(sorted(folded)))


class Collect(AggregateFunction):
    """A function that makes life hard: it changes and gives away its accumulators wherever it may."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value.number)
        return accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        acc_b.extend(acc_a)
        acc_a.clear()
        return acc_b


class CollectWithoutMerge(Collect):
    def merge(self, acc_a, acc_b):
        raise NotImplementedError


class EveryIntervalTrigger(Trigger):
    """The book's OneSecondIntervalTrigger (example 6-16) with any interval."""

    seen = ValueStateDescriptor("seen", default_value=False)

    def __init__(self, interval):
        self.interval = interval

    def next_full(self, ctx):
        watermark = ctx.get_current_watermark()
        return watermark + (self.interval - watermark % self.interval)

    def on_element(self, element, timestamp, window, ctx):
        seen = ctx.get_partitioned_state(self.seen)
        if not seen.value():
            ctx.register_event_time_timer(self.next_full(ctx))
            ctx.register_event_time_timer(window.end)
            seen.update(True)
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        if time == window.end:
            return TriggerResult.FIRE_AND_PURGE
        if self.next_full(ctx) < window.end:
            ctx.register_event_time_timer(self.next_full(ctx))
        return TriggerResult.FIRE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.seen).clear()


def assigner_of(config):
    event, size, offset = config.event_time, config.size, config.offset
    if config.kind == "global":
        return GlobalWindows.create()
    if config.kind == "session":
        kind = EventTimeSessionWindows if event else ProcessingTimeSessionWindows
        return kind.with_dynamic_gap(lambda e: e.gap) if config.gap is None else kind.with_gap(config.gap)
    if config.kind == "sliding":
        kind = SlidingEventTimeWindows if event else SlidingProcessingTimeWindows
        return kind.of(size, config.slide, offset)
    return (TumblingEventTimeWindows if event else TumblingProcessingTimeWindows).of(size, offset)


def trigger_of(config):
    name, *arguments = config.trigger
    at_end = EventTimeTrigger.create() if config.event_time else ProcessingTimeTrigger.create()
    return {
        "default": lambda: None,
        "purging": lambda: PurgingTrigger.of(at_end),
        "count": lambda: CountTrigger.of(*arguments),
        "purging count": lambda: PurgingTrigger.of(CountTrigger.of(*arguments)),
        "continuous": lambda: ContinuousEventTimeTrigger.of(*arguments),
        "every": lambda: EveryIntervalTrigger(*arguments),
    }[name]()


def evictor_of(config):
    if config.evictor is None:
        return None
    name, amount, after = config.evictor
    return (CountEvictor if name == "count" else TimeEvictor).of(amount, after)


def operator_of(config, function="process"):
    functions = {
        "process": {"window_function": Show()},
        "aggregate": {"aggregate_function": Collect(), "window_function": ShowFolded()},
        "aggregate without merge": {"aggregate_function": CollectWithoutMerge(), "window_function": ShowFolded()},
        "aggregate only": {"aggregate_function": Collect()},
    }[function]
    return build_window_operator(
        assigner_of(config),
        key_selector=lambda e: e.key,
        trigger=trigger_of(config),
        evictor=evictor_of(config),
        allowed_lateness_ms=config.lateness,
        late_tag=LATE,
        **functions,
    )


def general_operator(operator):
    """The general operator for the same definition as a specialised one."""
    definition: WindowDefinition = operator.definition
    return (MergingWindowOperator if definition.merging else WindowOperator)(definition)
