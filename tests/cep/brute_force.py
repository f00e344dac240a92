"""All matches of a chain by brute force: no automaton, no shared runs, no skipping, no groups.

It takes the elements of `cep_jobs` and the events of one key in the order they are processed, as pairs of event and
timestamp. Limits since the previous event and a trailing not_followed_by are not part of it.
"""

from dataclasses import dataclass
from typing import Any

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


class _Search:
    def __init__(self, events, window):
        self.events = events
        self.window = window

    def enter(self, elements, position, taken, forbidden, barrier):
        """Begin with the first element at a position or later."""
        if not elements:
            if taken:
                yield taken, position - 1
            return
        here, rest = elements[0], elements[1:]
        if here.strategy == "not_follow":
            yield from self.enter(rest, position, taken, [*forbidden, here.cond], barrier)
        elif here.strategy == "not_next":
            yield from self._not_next(here, rest, position, taken, forbidden, barrier)
        else:
            if here.optional:
                left_out = here.barrier(self.events, position, taken) or barrier
                yield from self.enter(rest, position, taken, forbidden, left_out)
            strategy = here.strategy if taken else "strict"  # the first event of a run is the one it begins with
            yield from self._take(elements, position, taken, 1, strategy, forbidden, barrier, None)

    def _not_next(self, here, rest, position, taken, forbidden, barrier):
        if position == len(self.events):
            return
        event = self.events[position]
        if not self._inside(event, taken) or here.cond(event, taken):
            return
        if rest:
            yield from self.enter(rest, position, taken, forbidden, barrier)
        else:
            yield taken, position  # the next event completes the match

    def _take(self, elements, position, taken, count, strategy, forbidden, barrier, until):
        """Let an event at the position or behind it be number `count` of the first element."""
        here = elements[0]
        for number in range(position, len(self.events)):
            event = self.events[number]
            if not self._inside(event, taken) or (barrier and barrier(event, taken)):
                return
            stopped = any(cond(event, taken) for cond in forbidden)
            ended = until is not None and until(event, taken)
            accepted = here.cond(event, taken)
            if accepted and not ended and not (here.until and here.until(event, taken)):
                for match, end in self._leave(elements, number + 1, (*taken, (here.name, event)), count):
                    if not stopped or end == number:  # a complete match stays complete
                        yield match, end
            if stopped or ended or strategy == "strict" or (strategy == "relaxed" and accepted):
                return

    def _leave(self, elements, position, taken, count):
        """After number `count` of the first element: continue with the next one, and take one more."""
        here, rest = elements[0], elements[1:]
        if count >= here.low:
            yield from self.enter(rest, position, taken, [], here.barrier(self.events, position, taken))
            ends = rest and rest[0].strategy == "not_next" and position < len(self.events)
            if ends and rest[0].cond(self.events[position], taken):
                return  # the forbidden event ends the loop, too
        if here.high is None or count < here.high:
            forbidden = [rest[0].cond] if rest and rest[0].strategy == "not_follow" else []
            yield from self._take(elements, position, taken, count + 1, here.inner, forbidden, None, here.until)

    def _inside(self, event, taken):
        return not (self.window and taken and event[1] - taken[0][1][1] >= self.window)
