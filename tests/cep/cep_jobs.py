"""CEP jobs as plain data, to be run here and by Flink itself: a chain of patterns and a script of events and clocks.

The format is that of `tests/differential/java/CepOracle.java`. A result is a list of ``["m", match, timestamp]``,
``["t", partial match, timestamp]``, ``["w", watermark]``, ``["late", event, timestamp]`` and ``["error", ...]``;
a match
is a list of ``[name, [event ids]]`` in the order of the names.
"""

from collections import namedtuple

from penstock.cep import (
    AfterMatchSkipStrategy,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
    WithinType,
)
from penstock.cep.nfa_compiler import NFACompiler
from penstock.core.output_tag import OutputTag
from penstock.runtime.cep.handlers import ProcessHandler
from penstock.runtime.cep.operator import CepOperator
from penstock.testing.harness import KeyedOneInputOperatorHarness

Event = namedtuple("Event", "id key kind price")  # noqa: PYI024 - the fields are of any type

LATE = OutputTag("late")
NO_SKIP = ["none"]


# -- patterns ----------------------------------------------------------------------------------------------------------


def element(name, link="follow", cond=None, quant=("one",), **more):
    """One pattern of a chain; the condition is that the event's kind is the name, if not told otherwise."""
    parts = {"optional": False, "greedy": False, "inner": "relaxed", **more}
    return {"name": name, "link": link, "cond": ["is", name] if cond is None else cond, "quant": list(quant), **parts}


def condition(data):
    """A condition from its data: a function of the event, or of event and context if it looks at the match."""
    kind, *arguments = data
    if kind == "is":
        return lambda event: event.kind == arguments[0]
    if kind == "in":
        return lambda event: event.kind in arguments[0]
    if kind == "above":
        return lambda event: event.price > arguments[0]
    if kind == "sum_below":
        name, limit = arguments
        return lambda event, ctx: sum(e.price for e in ctx.get_events_for_pattern(name)) + event.price < limit
    first, second = map(condition, arguments)
    both = [_with_context(first), _with_context(second)]
    if kind == "and":
        return lambda event, ctx: both[0](event, ctx) and both[1](event, ctx)
    assert kind == "or"
    return lambda event, ctx: both[0](event, ctx) or both[1](event, ctx)


def _with_context(function):
    if function.__code__.co_argcount == 2:
        return function
    return lambda event, ctx: function(event)


def skip_strategy(data):
    kind, *arguments = data
    if kind in {"first", "last"}:
        make = AfterMatchSkipStrategy.skip_to_first if kind == "first" else AfterMatchSkipStrategy.skip_to_last
        strategy = make(arguments[0])
        return strategy.throw_exception_on_miss() if len(arguments) > 1 and arguments[1] else strategy
    return {
        "none": AfterMatchSkipStrategy.no_skip,
        "next": AfterMatchSkipStrategy.skip_to_next,
        "past": AfterMatchSkipStrategy.skip_past_last_event,
    }[kind]()


def pattern_of(chain, skip=None):
    """The Pattern that some elements describe."""
    pattern = None
    for data in chain:
        target = pattern_of(data["group"]) if data.get("group") else data["name"]
        link = data["link"]
        if link == "begin":
            pattern = Pattern.begin(target, skip_strategy(skip or NO_SKIP))
        else:
            methods = {"follow": "followed_by", "any": "followed_by_any", "not_follow": "not_followed_by"}
            pattern = getattr(pattern, methods.get(link, link))(target)
        if data.get("cond") and not data.get("group"):
            pattern.where(condition(data["cond"]))
        _quantify(pattern, data)
    return pattern


def _quantify(pattern, data):
    kind, *numbers = data["quant"]
    if kind == "loop":
        pattern.times_or_more(numbers[0], data.get("apart"))
    elif kind == "times":
        pattern.times(*numbers, window=data.get("apart"))
    if data["optional"]:
        pattern.optional()
    if data["greedy"]:
        pattern.greedy()
    if data["inner"] == "strict":
        pattern.consecutive()
    elif data["inner"] == "any":
        pattern.allow_combinations()
    if data.get("until"):
        pattern.until(condition(data["until"]))
    if data.get("within") is not None:
        pattern.within(data["within"])
    if data.get("after") is not None:
        pattern.within(data["after"], WithinType.PREVIOUS_AND_CURRENT)


# -- running -----------------------------------------------------------------------------------------------------------


class Record(PatternProcessFunction):
    def __init__(self, log):
        self.log = log

    def process_match(self, match, ctx):
        self._note("m", match, ctx)

    def _note(self, what, match, ctx):
        found = [[name, [event.id for event in events]] for name, events in match.items()]
        self.log.append([what, found, ctx.timestamp()])


class RecordWithTimeouts(Record, TimedOutPartialMatchHandler):
    def process_timed_out_match(self, match, ctx):
        self._note("t", match, ctx)


def operator_of(job, log):
    return CepOperator(
        NFACompiler.compile(pattern_of(job["chain"], job["skip"])),
        ProcessHandler(RecordWithTimeouts(log) if job["timeouts"] else Record(log)),
        lambda event: event.key,
        event_time=job["time"] == "event",
        comparator=(lambda left, right: left.price - right.price) if job["comparator"] else None,
        late_tag=LATE,
    )


def run_job(job, *, restore_every=0):
    """What a job gives; with `restore_every` it is written to bytes and restored after so many steps."""
    log = []
    try:
        harness = KeyedOneInputOperatorHarness(operator_of(job, log))
        number = 0
        late = []
        for position, step in enumerate(job["script"]):
            if restore_every and position % restore_every == 0:
                late += harness.extract_side_output(LATE)
                harness = KeyedOneInputOperatorHarness(operator_of(job, log), snapshot=harness.snapshot())
            if step[0] == "e":
                harness.process_element(Event(number, step[1], step[2], step[3]), step[4])
                number += 1
            elif step[0] == "w":
                harness.process_watermark(step[1])
                log.append(["w", step[1]])
            else:
                harness.set_processing_time(step[1])
        late += harness.extract_side_output(LATE)
        log += [["late", event.id, timestamp] for event, timestamp in late]
    except Exception as error:
        log.append(["error", type(error).__name__, str(error)])
    return log


def normal(job, log):
    """What of a log is specified: keys have no order among each other.

    Each entry is kept with the number of watermarks before it. If a watermark ends the job with an error, other keys
    may have had their turn before or not.
    """
    keys = [step[1] for step in job["script"] if step[0] == "e"]
    found, watermarks = {}, 0
    for kind, *entry in log:
        if kind == "w":
            watermarks += 1
        elif kind == "error":
            if job["time"] == "event":
                found = {key: [one for one in entries if one[0] < watermarks] for key, entries in found.items()}
                found = {key: entries for key, entries in found.items() if entries}
            found["error"] = True
        else:
            first = entry[0] if kind == "late" else entry[0][0][1][0]
            group = (keys[first], "late" if kind == "late" else "results")
            found.setdefault(group, []).append((watermarks, kind, entry))
    return found


def job(chain, script, *, skip=NO_SKIP, time="event", comparator=False, timeouts=True):
    return {
        "chain": chain,
        "script": script,
        "skip": list(skip),
        "time": time,
        "comparator": comparator,
        "timeouts": timeouts,
    }


def events(text, *, key="k", every=1, start=1, end=True):
    """A script from kinds, one event each: ``a b2 b3`` are events of kinds a, b, b with prices 0, 2, 3."""
    script = [
        ["e", key, word[0], int(word[1:] or 0), start + every * position] for position, word in enumerate(text.split())
    ]
    return [*script, ["w", 2**63 - 1]] if end else script
