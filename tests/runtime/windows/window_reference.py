"""A slow, obvious model of windows, written from the rules and not from the operators.

It keeps every element of every window in a list, looks through all timers for the earliest, and computes a result from
scratch whenever a window fires. Windows are (start, end) pairs; the global window has no end.
"""

from dataclasses import dataclass, field

MIN, MAX = -(2**63), 2**63 - 1
FIRE, PURGE, BOTH, NOTHING = "fire", "purge", "fire and purge", ""


@dataclass(frozen=True)
class Config:
    """What to model. Sizes in ms; a gap of None means that each element brings its own."""

    kind: str = "tumbling"  # tumbling, sliding, session, global
    event_time: bool = True
    size: int = 10
    slide: int = 10
    offset: int = 0
    gap: int | None = 5
    trigger: tuple = ("default",)
    evictor: tuple | None = None
    lateness: int = 0


@dataclass(frozen=True)
class Element:
    """A record: its key, a number that tells it from others, its time, and its own session gap."""

    key: str
    number: int
    timestamp: int
    gap: int = 5


@dataclass
class Window:
    """A window of one key that exists."""

    key: str
    start: int
    end: int
    elements: list = field(default_factory=list)
    notes: dict = field(default_factory=dict)  # the trigger's own

    @property
    def last(self):
        return self.end - 1 if self.end != MAX else MAX


class Reference:
    """Feed it elements, watermarks and processing times; read `fired` and `late`."""

    def __init__(self, config):
        self.config = config
        self.watermark = MIN
        self.now = 0
        self.windows = []
        self.timers = set()  # (event time?, time, key, start, end)
        self.fired = []  # (key, start, end, numbers in order, timestamp)
        self.late = []
        self.trigger = TRIGGERS[config.trigger[0]](self, *config.trigger[1:])

    # -- what comes in ------------------------------------------------------------------------------------------

    def element(self, element):
        taken = False
        for start, end in self.assign(element):
            window = self.find(element.key, start, end)
            if self.config.kind == "session":
                window = self.merge(element.key, start, end)
            if self.is_over(window):
                if window in self.windows:
                    self.windows.remove(window)
                continue
            taken = True
            if window not in self.windows:
                self.windows.append(window)
            window.elements.append(element)
            self.do(window, self.trigger.on_element(window, element))
            self.set_cleanup(window)
        if not taken and self.config.event_time and element.timestamp + self.config.lateness <= self.watermark:
            self.late.append(element)

    def advance(self, watermark):
        self.watermark = watermark
        self.run_timers(event_time=True, until=watermark)

    def end_batch(self):
        self.run_timers(event_time=False, until=self.now)

    def tick(self, now):
        self.end_batch()
        self.now = now
        self.run_timers(event_time=False, until=now - 1)  # what ends now waits for the elements that come now

    # -- windows ------------------------------------------------------------------------------------------------

    def assign(self, element):
        config = self.config
        time = element.timestamp if config.event_time else self.now
        if config.kind == "global":
            return [(0, MAX)]
        if config.kind == "session":
            return [(time, time + (element.gap if config.gap is None else config.gap))]
        slide = config.slide if config.kind == "sliding" else config.size
        starts = [
            start for start in range(time - config.size - slide, time + 1) if (start - config.offset) % slide == 0
        ]
        return [(start, start + config.size) for start in reversed(starts) if start <= time < start + config.size]

    def find(self, key, start, end):
        for window in self.windows:
            if (window.key, window.start, window.end) == (key, start, end):
                return window
        return Window(key, start, end)

    def merge(self, key, start, end):
        """The session that an element's own window becomes part of."""
        touching = [w for w in self.windows if w.key == key and w.start <= end and start <= w.end]
        touching.sort(key=lambda w: w.start)
        if not touching:
            return Window(key, start, end)
        whole = Window(key, min(start, touching[0].start), max(end, *[w.end for w in touching]))
        if len(touching) == 1 and (whole.start, whole.end) == (touching[0].start, touching[0].end):
            return touching[0]
        for part in touching:
            whole.elements += part.elements
            self.windows.remove(part)
            self.timers = {t for t in self.timers if t[2:] != (key, part.start, part.end)}
        self.windows.append(whole)
        self.trigger.on_merge(whole, touching)
        return whole

    def cleanup_time(self, window):
        if window.last == MAX:
            return MAX
        return window.last + (self.config.lateness if self.config.event_time else 0)

    def is_over(self, window):
        return self.config.event_time and self.cleanup_time(window) <= self.watermark

    def set_cleanup(self, window):
        if self.cleanup_time(window) != MAX:
            self.set_timer(window, self.cleanup_time(window), event_time=self.config.event_time)

    # -- timers -------------------------------------------------------------------------------------------------

    def set_timer(self, window, time, *, event_time):
        self.timers.add((event_time, time, window.key, window.start, window.end))

    def run_timers(self, *, event_time, until):
        while True:
            due = [timer for timer in self.timers if timer[0] == event_time and timer[1] <= until]
            if not due:
                return
            timer = min(due)
            self.timers.remove(timer)
            self.on_timer(*timer)

    def on_timer(self, event_time, time, key, start, end):
        window = self.find(key, start, end)
        if self.config.kind == "session" and window not in self.windows:
            return
        self.do(window, self.trigger.on_time(window, time, event_time))
        if event_time == self.config.event_time and time == self.cleanup_time(window):
            if window in self.windows:
                self.windows.remove(window)
            window.elements, window.notes = [], {}

    # -- firing -------------------------------------------------------------------------------------------------

    def do(self, window, action):
        if FIRE in action and window.elements:
            self.evict(window, after=False)
            numbers = tuple(element.number for element in window.elements)
            self.fired.append((window.key, window.start, window.end, numbers, window.last))
            self.evict(window, after=True)
        if PURGE in action:
            window.elements = []

    def evict(self, window, *, after):
        if self.config.evictor is None or self.config.evictor[2] != after or not window.elements:
            return
        name, amount, _ = self.config.evictor
        if name == "count":
            window.elements = window.elements[-amount:] if amount else []
        else:
            newest = max(element.timestamp for element in window.elements)
            window.elements = [element for element in window.elements if element.timestamp > newest - amount]


class AtEnd:
    """The default: when the window is complete, and then for every late element."""

    def __init__(self, model):
        self.model = model

    def on_element(self, window, element):
        if self.model.config.event_time and window.last <= self.model.watermark:
            return FIRE
        self.model.set_timer(window, window.last, event_time=self.model.config.event_time)
        return NOTHING

    def on_time(self, window, time, event_time):
        return FIRE if time == window.last else NOTHING

    def on_merge(self, whole, parts):
        now = self.model.watermark if self.model.config.event_time else self.model.now
        if whole.last > now:
            self.model.set_timer(whole, whole.last, event_time=self.model.config.event_time)


class ByCount:
    """Whenever n elements came since the last time."""

    def __init__(self, model, amount, action=FIRE):
        self.amount = amount
        self.action = action

    def on_element(self, window, element):
        window.notes["count"] = window.notes.get("count", 0) + 1
        if window.notes["count"] >= self.amount:
            window.notes["count"] = 0
            return self.action
        return NOTHING

    def on_time(self, window, time, event_time):
        return NOTHING

    def on_merge(self, whole, parts):
        whole.notes["count"] = sum(part.notes.get("count", 0) for part in parts)


class PurgingCount(ByCount):
    def __init__(self, model, amount):
        super().__init__(model, amount, BOTH)


class PurgingAtEnd(AtEnd):
    def on_element(self, window, element):
        return BOTH if super().on_element(window, element) == FIRE else NOTHING

    def on_time(self, window, time, event_time):
        return BOTH if super().on_time(window, time, event_time) == FIRE else NOTHING


class Continuous(AtEnd):
    """At every full interval of event time, and at the end."""

    def __init__(self, model, interval):
        super().__init__(model)
        self.interval = interval

    def on_element(self, window, element):
        if window.last <= self.model.watermark:
            return FIRE
        self.model.set_timer(window, window.last, event_time=True)
        if window.notes.get("next") is None:
            self.plan(window, element.timestamp - element.timestamp % self.interval)
        return NOTHING

    def plan(self, window, after):
        window.notes["next"] = min(after + self.interval, window.last)
        self.model.set_timer(window, window.notes["next"], event_time=True)

    def on_time(self, window, time, event_time):
        if time == window.last:
            return FIRE
        if window.notes.get("next") == time:
            self.plan(window, time)
            return FIRE
        return NOTHING

    def on_merge(self, whole, parts):
        times = [part.notes["next"] for part in parts if part.notes.get("next") is not None]
        if times:
            whole.notes["next"] = min(times)
            self.model.set_timer(whole, min(times), event_time=True)


class EveryInterval:
    """Early results at full intervals of the watermark, and a last one that purges (the book's example 6-16)."""

    def __init__(self, model, interval):
        self.model = model
        self.interval = interval

    def next_full(self):
        return self.model.watermark + (self.interval - self.model.watermark % self.interval)

    def on_element(self, window, element):
        if not window.notes.get("seen"):
            self.model.set_timer(window, self.next_full(), event_time=True)
            self.model.set_timer(window, window.end, event_time=True)
            window.notes["seen"] = True
        return NOTHING

    def on_time(self, window, time, event_time):
        if time == window.end:
            return BOTH
        if self.next_full() < window.end:
            self.model.set_timer(window, self.next_full(), event_time=True)
        return FIRE


TRIGGERS = {
    "default": AtEnd,
    "purging": PurgingAtEnd,
    "count": ByCount,
    "purging count": PurgingCount,
    "continuous": Continuous,
    "every": EveryInterval,
}
