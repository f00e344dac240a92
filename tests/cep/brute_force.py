"""All matches of a chain by brute force: no automaton, no shared runs, no skipping, no groups.

It takes the elements of `cep_jobs` and the events of one key in the order they are processed, as pairs of event and
timestamp. Limits since the previous event and a trailing not_followed_by are not part of it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from cep_jobs import Event


@dataclass(frozen=True)
class Element:
    name: str
    strategy: str
    low: int
    high: int | None  # None: no upper number
    inner: str
    optional: bool
    greedy: bool
    until: Any
    cond: Any

    def barrier(self, events, position, taken):
        """What a run that leaves this loop, or skips it, cannot meet before the next pattern has taken an event."""
        if not self.greedy or self.low == self.high:
            return None
        if self.until and position < len(events) and self.until(events[position], taken):
            return None
        return self.cond


def element_of(data):
    kind, *numbers = data["quant"]
    low, high = {"one": (1, 1), "loop": (*numbers, None), "times": (numbers * 2)[:2]}[kind]
    until = condition(data["until"]) if data.get("until") else None
    strategy = {"next": "strict", "follow": "relaxed"}.get(data["link"], data["link"])
    optional = data["optional"] or low == 0
    return Element(
        *(data["name"], strategy, max(low, 1), high, data["inner"], optional, data["greedy"], until),
        condition(data["cond"]),
    )


def condition(data):
    """A function of an event, with its timestamp, and of what was taken before."""
    kind, *arguments = data
    if kind == "is":
        return lambda timed, taken: timed[0].kind == arguments[0]
    if kind == "in":
        return lambda timed, taken: timed[0].kind in arguments[0]
    if kind == "above":
        return lambda timed, taken: timed[0].price > arguments[0]
    if kind == "sum_below":
        name, limit = arguments
        return lambda timed, taken: sum(e.price for n, (e, _) in taken if n == name) + timed[0].price < limit
    first, second = map(condition, arguments)
    if kind == "and":
        return lambda timed, taken: first(timed, taken) and second(timed, taken)
    return lambda timed, taken: first(timed, taken) or second(timed, taken)


def matches_of(job):
    """The matches of a job as [match, timestamp], sorted; the job has one watermark, at its end."""
    elements = [element_of(data) for data in job["chain"]]
    window = min((data["within"] for data in job["chain"] if data.get("within") is not None), default=0)
    steps = [step for step in job["script"] if step[0] == "e"]
    arrived = [(Event(number, *step[1:4]), step[4]) for number, step in enumerate(steps)]
    order = (lambda timed: (timed[1], timed[0].price)) if job["comparator"] else (lambda timed: timed[1])
    found = []
    for key in {event.key for event, _ in arrived}:
        events = sorted((timed for timed in arrived if timed[0].key == key), key=order)
        search = _Search(events, window)
        for begin in range(len(events)):
            for taken, end in search.enter(elements, begin, (), [], None):
                names = {}
                for name, (event, _) in taken:
                    names.setdefault(name, []).append(event.id)
                found.append([[list(item) for item in names.items()], events[end][1]])
    return sorted(found)


class _Guards(NamedTuple):
    """Conditions of not_followed_by while an element waits for an event."""

    at_once: list  # what must not be the next event
    later: list  # what must not come after that
    before: list  # what must not come before the first event of the element


class _Search:
    def __init__(self, events, window):
        self.events = events
        self.window = window

    def enter(self, elements, position, taken, forbidden, barrier):
        """Begin with the first element at a position or later."""
        if not elements or position == len(self.events):
            return  # what is complete is complete with its last event
        here, rest = elements[0], elements[1:]
        if here.strategy == "not_follow":
            yield from self.enter(rest, position, taken, [*forbidden, here.cond], barrier)
        elif here.strategy == "not_next":
            yield from self._not_next(here, rest, position, taken, barrier)
        else:
            if here.optional:
                # The way out and the way behind an event that was passed over are not barred.
                if barrier and barrier(self.events[position], taken):
                    return
                barrier = None
                left_out = self._barrier_of_left_out(here, self.events, position, taken, bool(forbidden))
                yield from self.enter(rest, position, taken, forbidden, left_out)
            strategy = here.strategy if taken else "strict"  # the first event of a run is the one it begins with
            guards = _Guards(forbidden, forbidden, forbidden)
            yield from self._take(elements, position, taken, 1, strategy, guards, barrier, None)

    def _not_next(self, here, rest, position, taken, barrier):
        event = self.events[position]
        if not self._inside(event, taken) or here.cond(event, taken) or (barrier and barrier(event, taken)):
            return
        if rest:
            yield from self.enter(rest, position, taken, [], None)  # not_followed_by before not_next guards nothing
        else:
            yield taken, position  # the next event completes the match

    def _take(self, elements, position, taken, count, strategy, guards, barrier, until):
        """Let an event at the position or behind it be number `count` of the first element."""
        here = elements[0]
        for number in range(position, len(self.events)):
            event = self.events[number]
            if not self._inside(event, taken) or (barrier and barrier(event, taken)):
                return
            stopped = any(cond(event, taken) for cond in (guards.later if number > position else guards.at_once))
            ended = until is not None and until(event, taken)
            accepted = here.cond(event, taken)
            if accepted and not ended and not (here.until and here.until(event, taken)):
                now = (*taken, (here.name, event))
                if count >= here.low and self._complete(elements, event, taken):
                    yield now, number
                if not stopped:
                    yield from self._leave(elements, number + 1, now, count, guards.before)
            if stopped or ended or strategy == "strict" or (strategy == "relaxed" and accepted):
                return

    def _complete(self, elements, event, before):
        """Whether the end is reached by leaving out what is optional; conditions are asked about the event just taken.

        A run that has to wait for the next event does not become a match by leaving out the rest.
        """
        *_, last = elements
        barred = elements[0].greedy and elements[0].low != elements[0].high
        guarded = False
        for one in elements[1:]:
            if one.strategy == "not_follow":
                guarded = True
                continue
            if barred:
                return False
            if one.strategy == "not_next":
                if one is last or one.cond(event, before):
                    return False
                barred = guarded = False
            elif one.optional:
                barrier = self._barrier_of_left_out(one, [event], 0, before, guarded)
                barred = barrier is not None and barrier(event, before)
            else:
                return False
        return True

    def _barrier_of_left_out(self, one, events, position, taken, guarded):
        """Leaving out a loop behind not_followed_by bars nothing: what Flink bars is a copy of the next state."""
        return None if guarded and one.high is None else one.barrier(events, position, taken)

    def _leave(self, elements, position, taken, count, before):
        """After number `count` of the first element: continue with the next one, and take one more."""
        here, rest = elements[0], elements[1:]
        more = here.high is None or count < here.high
        own = [rest[0].cond] if rest and rest[0].strategy == "not_follow" else []
        at_once = later = own
        stopped = False
        if count >= here.low:
            barrier = here.barrier(self.events, position, taken)
            if more and position < len(self.events):
                event = self.events[position]
                stopped = any(cond(event, taken) for cond in own) or _stops(rest, event, taken, barrier)
                at_once = [lambda event, taken: stopped]
            for match, end in self.enter(rest, position, taken, [], barrier):
                if end == position or not stopped:
                    yield match, end
            if here.high is not None and here.low != here.high:
                later = before  # Flink guards a range by what stands before it once it has passed an event over
        if more:
            guards = _Guards(at_once, later, before)
            yield from self._take(elements, position, taken, count + 1, here.inner, guards, None, here.until)

    def _inside(self, event, taken):
        return not (self.window and taken and event[1] - taken[0][1][1] >= self.window)


def _stops(rest, event, taken, barrier):
    """Whether an event meets a NOT pattern behind a loop. It ends the loop, too, since both look at it."""
    guards = []
    for one in rest:
        if one.strategy == "not_follow":
            guards.append(one.cond)
            continue
        if barrier and barrier(event, taken):
            return False  # it is for the loop alone
        barrier = None
        if one.strategy != "not_next":
            return any(cond(event, taken) for cond in guards)
        if one.cond(event, taken):
            return True
        guards = []  # not_followed_by before not_next guards nothing but the loop
    return False
