import pickle
from io import BytesIO

import pytest

from penstock.core.window import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    TimeWindow,
    TimeWindowSerializer,
    Window,
)


class Merges(MergingWindowAssigner.MergeCallback):
    def __init__(self):
        self.found = []

    def merge(self, to_be_merged, merge_result):
        self.found.append((sorted(to_be_merged), merge_result))


def merged(*windows):
    merges = Merges()
    TimeWindow.merge_windows(windows, merges)
    return merges.found


def test_the_end_is_exclusive():
    assert TimeWindow(0, 5000).max_timestamp() == 4999


def test_windows_with_the_same_bounds_are_the_same_window():
    assert TimeWindow(1, 2) == TimeWindow(1, 2)
    assert TimeWindow(1, 2) != TimeWindow(1, 3)
    assert len({TimeWindow(1, 2), TimeWindow(1, 2)}) == 1
    assert CountWindow(3) == CountWindow(3)


def test_windows_are_ordered_by_start():
    assert sorted([TimeWindow(5, 6), TimeWindow(0, 9), TimeWindow(0, 3)]) == [
        TimeWindow(0, 3),
        TimeWindow(0, 9),
        TimeWindow(5, 6),
    ]


def test_touching_windows_intersect():
    assert TimeWindow(0, 10).intersects(TimeWindow(10, 20))
    assert not TimeWindow(0, 10).intersects(TimeWindow(11, 20))


def test_cover_spans_both():
    assert TimeWindow(0, 10).cover(TimeWindow(20, 30)) == TimeWindow(0, 30)


@pytest.mark.parametrize(
    ("timestamp", "offset", "size", "start"),
    [(4999, 0, 5000, 0), (5000, 0, 5000, 5000), (-1, 0, 1000, -1000), (-1, 0, 30_000, -30_000), (0, 1, 5, -4)],
)
def test_windows_are_aligned_to_the_epoch(timestamp, offset, size, start):
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, size) == start


def test_merging_reports_only_groups_of_several_windows():
    assert merged(TimeWindow(0, 5)) == []
    assert merged(TimeWindow(0, 5), TimeWindow(6, 9)) == []
    assert merged(TimeWindow(0, 5), TimeWindow(5, 9)) == [([TimeWindow(0, 5), TimeWindow(5, 9)], TimeWindow(0, 9))]


def test_merging_finds_chains_whatever_the_order():
    group = [TimeWindow(0, 10), TimeWindow(8, 18), TimeWindow(16, 26)]
    assert merged(*reversed(group)) == [(group, TimeWindow(0, 26))]


def test_a_window_inside_another_merges():
    assert merged(TimeWindow(0, 100), TimeWindow(5, 6), TimeWindow(90, 120)) == [
        ([TimeWindow(0, 100), TimeWindow(5, 6), TimeWindow(90, 120)], TimeWindow(0, 120))
    ]


def test_there_is_one_global_window_that_never_ends():
    assert GlobalWindow() == GlobalWindow.get()
    assert hash(GlobalWindow()) == hash(GlobalWindow.get())
    assert GlobalWindow.get().max_timestamp() == 2**63 - 1
    assert pickle.loads(pickle.dumps(GlobalWindow())) is GlobalWindow.get()


@pytest.mark.parametrize("window", [TimeWindow(-5, 10), CountWindow(7), GlobalWindow.get()])
def test_windows_survive_pickling(window):
    assert pickle.loads(pickle.dumps(window)) == window


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-5, 2**62)),
        (CountWindowSerializer(), CountWindow(3)),
        (GlobalWindowSerializer(), GlobalWindow.get()),
    ],
)
def test_serializers_round_trip(serializer, window):
    stream = BytesIO()
    serializer.serialize(window, stream)
    assert serializer.deserialize(BytesIO(stream.getvalue())) == window


class Shift(Window):
    """A window of a user's own."""

    def __init__(self, day, name):
        self.day = day
        self.name = name

    def max_timestamp(self):
        return self.day


def test_own_windows_compare_by_their_attributes():
    assert Shift(1, "early") == Shift(1, "early")
    assert hash(Shift(1, "early")) == hash(Shift(1, "early"))
    assert Shift(1, "early") != Shift(1, "late")
    assert Shift(1, "early") != TimeWindow(1, 2)
