"""The watermark valve: one clock per input channel, the task's clock is their minimum (rule 3.6)."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.exchange.valve import WatermarkValve

MIN = -(2**63)
CHANNELS = "abcd"


def valve(*channels):
    result = WatermarkValve()
    for channel in channels:
        result.expect(channel)
    return result


def test_the_clock_waits_for_every_channel_and_takes_the_minimum():
    v = valve("a", "b")
    assert v.input_watermark("a", 10) is None
    assert v.input_watermark("b", 7) == 7
    assert v.input_watermark("b", 20) == 10
    assert v.input_watermark("a", 9) is None  # a channel never goes back
    assert v.last == 10


def test_the_book_example_of_four_partitions():
    """Partition clocks 2, 4, 3, 6 and then 3 -> 4 (example E47)."""
    v = valve(*CHANNELS)
    assert [v.input_watermark(c, w) for c, w in zip(CHANNELS, (2, 4, 3, 6), strict=True)] == [None, None, None, 2]
    assert v.input_watermark("a", 4) == 3
    assert v.input_watermark("b", 7) is None
    assert v.input_watermark("c", 6) == 4


def test_idle_channels_are_left_out_until_they_have_caught_up():
    v = valve("a", "b")
    v.input_watermark("a", 5)
    v.input_watermark("b", 5)
    assert v.input_status("b", idle=True) is None
    assert v.input_watermark("a", 20) == 20
    assert v.input_status("b", idle=False) is None
    assert v.input_watermark("a", 30) == 30  # b is behind: it does not count
    assert v.input_watermark("b", 25) is None
    assert v.input_watermark("b", 30) is None  # now it does
    assert v.input_watermark("a", 40) is None
    assert v.input_watermark("b", 35) == 35


def test_an_idle_channel_that_holds_the_clock_back_lets_go():
    v = valve("a", "b")
    v.input_watermark("a", 20)
    v.input_watermark("b", 5)
    assert v.input_status("b", idle=True) == 20


def test_watermarks_of_idle_channels_are_ignored():
    v = valve("a", "b")
    v.input_status("a", idle=True)
    assert v.input_watermark("a", 50) is None
    assert v.input_watermark("b", 5) == 5


def test_all_channels_idle_flush_to_the_largest_and_make_the_task_idle():
    v = valve("a", "b")
    v.input_watermark("a", 20)
    v.input_watermark("b", 10)
    assert not v.idle
    assert v.input_status("a", idle=True) is None
    assert v.input_status("b", idle=True) == 20
    assert v.idle
    v.input_status("b", idle=False)
    assert not v.idle


def test_no_channel_counts_when_all_active_ones_are_behind():
    v = valve("a", "b", "c")
    v.input_watermark("a", 10)
    v.input_watermark("b", 7)
    assert v.input_status("c", idle=True) == 7
    v.input_status("c", idle=False)
    assert v.input_status("a", idle=True) is None
    assert v.input_status("b", idle=True) is None


def test_the_largest_watermark_waits_if_the_last_channel_to_become_idle_was_behind():
    v = valve("a", "b")
    v.input_watermark("a", 7)
    v.input_watermark("b", 10)
    assert v.input_status("a", idle=True) == 10
    v.input_status("a", idle=False)
    assert v.input_watermark("a", 9) is None  # not aligned
    assert v.input_status("b", idle=True) is None
    v.input_status("b", idle=False)
    v.input_watermark("b", 20)
    v.input_status("b", idle=True)
    assert v.last == 20
    v = valve("a", "b", "c")
    for channel, watermark in zip("abc", (5, 10, 30), strict=True):
        v.input_watermark(channel, watermark)
    v.input_status("a", idle=True)  # the clock is at 10
    v.input_status("a", idle=False)
    v.input_status("c", idle=True)
    assert v.input_status("b", idle=True) is None  # a is active, and behind
    assert v.input_status("a", idle=True) is None
    assert v.last == 10
    assert v.idle


def test_a_new_channel_is_waited_for_but_does_not_turn_the_clock_back():
    """A split that is discovered while the job runs: what it has to say must not be late."""
    v = valve("a")
    v.input_watermark("a", 100)
    v.expect("new")
    assert v.input_watermark("a", 110) is None
    assert v.input_watermark("new", 50) is None
    assert v.last == 100
    assert v.input_watermark("new", 120) == 110
    assert v.input_watermark("a", 130) == 120


WATERMARKS = st.tuples(st.just("watermark"), st.sampled_from(CHANNELS), st.integers(-20, 20))
STATUSES = st.tuples(st.just("status"), st.sampled_from(CHANNELS), st.booleans())


@given(st.lists(WATERMARKS, max_size=60))
def test_without_idleness_it_is_the_minimum_of_the_maxima(steps):
    v = valve(*CHANNELS)
    largest = dict.fromkeys(CHANNELS, MIN)
    last = MIN
    for _, channel, watermark in steps:
        largest[channel] = max(largest[channel], watermark)
        now = min(largest.values())
        assert v.input_watermark(channel, watermark) == (now if now > last else None)
        last = max(last, now)


class Model:
    """The rules as they are written: recomputed from the whole history, without any shortcut."""

    def __init__(self):
        self.watermark = dict.fromkeys(CHANNELS, MIN)
        self.idle = dict.fromkeys(CHANNELS, False)
        self.behind = dict.fromkeys(CHANNELS, False)
        self.clock = MIN

    def step(self, kind, channel, value):
        if kind == "watermark":
            if self.idle[channel] or value <= self.watermark[channel]:
                return None
            self.watermark[channel] = value
        elif self.idle[channel] == value:
            return None
        else:
            self.idle[channel] = value
            if not value:
                self.behind[channel] = self.watermark[channel] < self.clock
                return None
            waited_for = not self.behind[channel] and self.watermark[channel] == self.clock
        self._catch_up()
        before = self.clock
        active = [c for c in CHANNELS if not self.idle[c]]
        counting = [self.watermark[c] for c in active if not self.behind[c]]
        if not active:
            if waited_for:
                self.clock = max(self.clock, *self.watermark.values())
        elif counting and (kind == "watermark" or waited_for):
            self.clock = max(self.clock, min(counting))
        self._catch_up()
        return self.clock if self.clock > before else None

    def _catch_up(self):
        for channel in CHANNELS:
            if not self.idle[channel] and self.watermark[channel] >= self.clock:
                self.behind[channel] = False


@given(st.lists(st.one_of(WATERMARKS, STATUSES), max_size=80), st.integers(0, 80))
def test_it_follows_the_rules_also_across_a_snapshot(steps, cut):
    v, model, last = valve(*CHANNELS), Model(), MIN
    for position, (kind, channel, value) in enumerate(steps):
        if position == cut:
            snapshot, v = v.snapshot(), WatermarkValve()
            v.restore(snapshot)
        advance = v.input_watermark(channel, value) if kind == "watermark" else v.input_status(channel, idle=value)
        assert advance == model.step(kind, channel, value)
        assert v.idle == all(model.idle.values())
        if advance is not None:
            assert advance > last
            last = advance
