"""Random streams through the real operators and through the obvious model: equal results, nothing left behind."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_driver import WindowDriver
from window_programs import LATE, general_operator, operator_of
from window_reference import MAX, Config, Element, Reference

ELEMENT, WATERMARK, RESTART, TICK, COMMIT = range(5)
KINDS = (ELEMENT,) * 10 + (WATERMARK,) * 3 + (RESTART, TICK, COMMIT)

EVENTS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.integers(-10, 60), st.integers(1, 9)),
    min_size=1,
    max_size=40,
)
FIXED = st.builds(
    Config,
    kind=st.sampled_from(["tumbling", "sliding"]),
    event_time=st.sampled_from([True, True, True, False]),
    size=st.sampled_from([1, 5, 10, 12]),
    slide=st.sampled_from([1, 3, 4, 5, 10, 15]),
    offset=st.just(0),
    lateness=st.sampled_from([0, 0, 3, 10, 20]),
)
SHIFTED = st.builds(
    Config,
    kind=st.sampled_from(["tumbling", "sliding"]),
    size=st.sampled_from([7, 10]),
    slide=st.sampled_from([4, 5]),
    offset=st.sampled_from([-3, 2, 3]),
    lateness=st.sampled_from([0, 4]),
)
SESSIONS = st.builds(
    Config,
    kind=st.just("session"),
    event_time=st.sampled_from([True, True, True, False]),
    gap=st.sampled_from([1, 3, 5, None]),
    lateness=st.sampled_from([0, 0, 3, 10]),
)
WINDOWS = st.one_of(FIXED, SHIFTED, SESSIONS)
EVENT_TIME_TRIGGERS = st.sampled_from(
    [
        ("default",),
        ("purging",),
        ("count", 2),
        ("purging count", 3),
        ("continuous", 4),
        ("continuous", 10),
        ("every", 5),
    ]
)
EVICTORS = st.sampled_from(
    [("count", 2, False), ("count", 1, True), ("count", 0, True), ("time", 4, False), ("time", 3, True)]
)


def with_trigger(config, trigger):
    if trigger[0] in {"continuous", "every"} and not config.event_time:
        trigger = ("count", 2)
    if trigger[0] == "every" and config.kind == "session":  # not mergeable: refused
        trigger = ("continuous", 5)
    return Config(**{**config.__dict__, "trigger": trigger})


def check(config, events, *, function="process", cut=100, general=False, budget=None):
    """Drive both and compare after every step."""
    operator = operator_of(config, function)
    driver = WindowDriver(
        general_operator(operator) if general else operator,
        tags=[LATE.tag_id],
        page_bytes=200 if len(events) % 2 else 8,  # with the smaller ones, windows of some elements are in chunks
        memory_budget=budget,
    )
    model = Reference(config)
    pending = []

    def send():
        for start in range(0, len(pending), cut):
            driver.send(*[(element, element.timestamp) for element in pending[start : start + cut]])
        pending.clear()

    for number, (kind, key, time, gap) in enumerate(events):
        if kind == ELEMENT:
            element = Element(f"k{key}", number, time, gap)
            pending.append(element)
            model.element(element)
            continue
        send()
        if kind == WATERMARK:
            watermark = max(model.watermark, time - 8)
            driver.advance(watermark)
            model.advance(watermark)
        elif kind == RESTART:
            driver.restart()
        elif kind == COMMIT:
            driver.commit()
        else:
            driver.tick(model.now + gap)
            model.tick(model.now + gap)
        compare(driver, model, function)
    send()
    driver.tick(10_000).advance(MAX)
    model.tick(10_000)
    model.advance(MAX)
    compare(driver, model, function)
    if config.kind != "global":
        assert driver.stored_keys == 0


def compare(driver, model, function):
    fired, late = model.fired, model.late
    model.fired, model.late = [], []
    actual = driver.take()
    if function == "aggregate only":
        assert sorted((sorted(value), stamp) for value, stamp in actual) == sorted((sorted(f[3]), f[4]) for f in fired)
    else:
        shown = [(key, start, end, numbers, stamp) for (key, start, end, numbers), stamp in actual]
        if function != "process":
            fired = [(key, start, end, tuple(sorted(numbers)), stamp) for key, start, end, numbers, stamp in fired]
        assert sorted(shown) == sorted(fired)
    assert [element for element, _ in driver.side(LATE.tag_id)] == late


EXAMPLES = settings.default.max_examples  # make test-windows looks at thousands
FAST = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
CUTS = st.sampled_from([1, 3, 100])


@FAST
@given(WINDOWS, EVENTS, CUTS)
def test_windows_that_fire_at_their_end(config, events, cut):
    check(config, events, cut=cut)


@FAST
@given(WINDOWS, EVENTS, CUTS)
def test_incremental_functions(config, events, cut):
    check(config, events, function="aggregate", cut=cut)


@FAST
@given(WINDOWS, EVENTS)
def test_incremental_functions_without_window_function(config, events):
    check(config, events, function="aggregate only")


@FAST
@given(st.one_of(FIXED, SHIFTED), EVENTS)
def test_functions_without_merge_take_the_general_way(config, events):
    check(config, events, function="aggregate without merge")


@FAST
@given(WINDOWS, EVENTS, CUTS)
def test_the_general_operator_gives_the_same_as_the_special_ones(config, events, cut):
    check(config, events, cut=cut, general=True)


@FAST
@given(WINDOWS, EVENT_TIME_TRIGGERS, EVENTS, CUTS)
def test_triggers(config, trigger, events, cut):
    check(with_trigger(config, trigger), events, cut=cut)


@FAST
@given(WINDOWS, EVENT_TIME_TRIGGERS, EVENTS)
def test_triggers_with_incremental_functions(config, trigger, events):
    check(with_trigger(config, trigger), events, function="aggregate")


@FAST
@given(WINDOWS, EVENT_TIME_TRIGGERS, EVICTORS, EVENTS)
def test_evictors(config, trigger, evictor, events):
    config = with_trigger(config, trigger)
    check(Config(**{**config.__dict__, "evictor": evictor}), events)


@FAST
@given(WINDOWS, EVENTS)
def test_pages_that_leave_memory(config, events):
    check(config, events, budget=1)


@FAST
@given(st.sampled_from([("count", 2), ("purging count", 3)]), st.one_of(st.none(), EVICTORS), EVENTS)
def test_global_windows(trigger, evictor, events):
    check(Config(kind="global", event_time=False, trigger=trigger, evictor=evictor), events)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@settings(FAST, max_examples=3_000, derandomize=False)
@given(WINDOWS, EVENT_TIME_TRIGGERS, st.sampled_from(["process", "aggregate"]), st.booleans(), EVENTS, CUTS)
def test_twelve_thousand_random_streams(part, config, trigger, function, default, events, cut):
    check(config if default else with_trigger(config, trigger), events, function=function, cut=cut)
