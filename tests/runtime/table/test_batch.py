"""Column batches in frames."""

import pickle

import pyarrow as pa
import pytest

from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.partitioner import ColumnHashPartitioner, split_by


def batch(rows, kinds=None):
    data = pa.record_batch({"k": pa.array(rows, pa.int64()), "text": pa.array([f"row {row}" for row in rows])})
    return ColumnBatch(data, None if kinds is None else pa.array(kinds, pa.int8()))


@pytest.mark.parametrize("kinds", [None, [0, 1, 2]])
def test_a_batch_survives_the_exchange(kinds):
    sent = batch([1, 2, 3], kinds)
    received = pickle.loads(pickle.dumps(sent, 5))
    assert received.rows() == sent.rows()
    assert (received.kinds is None) == (kinds is None)


def test_only_the_rows_of_a_slice_are_sent():
    whole = batch(range(10_000))
    assert len(pickle.dumps(whole[5:6], 5)) < 1_000
    assert whole[5:6].rows() == [(0, (5, "row 5"))]


def test_every_nth_row_can_be_taken():
    assert [row[0] for _, row in batch(range(7))[1::3].rows()] == [1, 4]


def test_neighbouring_batches_of_a_frame_are_joined_but_not_across_a_watermark():
    elements = [(batch([1]), None), (batch([2], [3]), None), 17, (batch([4]), None), True]
    merged = ColumnBatch.merge_elements(elements)
    assert [merged[1], merged[3]] == [17, True]
    assert merged[0][0].rows() == [(0, (1, "row 1")), (3, (2, "row 2"))]
    assert merged[2][0].rows() == [(0, (4, "row 4"))]


@pytest.mark.parametrize("channels", [3, 20])
def test_rows_are_split_by_channel_in_order(channels):
    rows = batch(range(100))
    targets = pa.array([row * 7 % channels for row in range(100)], pa.uint64())
    parts = dict(split_by(rows, targets, channels))
    for channel, part in parts.items():
        assert [row[0] for _, row in part.rows()] == [row for row in range(100) if row * 7 % channels == channel]


def test_equal_keys_go_to_one_channel():
    partitioner = ColumnHashPartitioner([0])
    partitioner.setup(0, 1, 4, 128, "target")
    routed = partitioner.route(batch([row % 10 for row in range(100)]), None)
    channels_of_key = {}
    for channel, part, _ in routed:
        for _, (key, _) in part.rows():
            channels_of_key.setdefault(key, set()).add(channel)
    assert len(channels_of_key) == 10
    assert all(len(channels) == 1 for channels in channels_of_key.values())
