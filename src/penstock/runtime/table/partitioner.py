"""The exchange of table rows by key, with key groups computed in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.exchange.partitioner import KeyGroupPartitioner, Routed
from penstock.runtime.records.batch import Timestamps
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.key_hash import channels_of, key_hashes

_FEW_CHANNELS = 8


class ColumnHashPartitioner(KeyGroupPartitioner):
    """Sends rows with equal keys to the same channel. The hash is that of the key of their state."""

    def __init__(self, key_columns: Sequence[int]) -> None:
        super().__init__(_no_key_selector)
        self.key_columns = list(key_columns)

    def route(self, values: Any, timestamps: Timestamps) -> Routed:
        """Return one part per channel, in order."""
        batch: ColumnBatch = values
        if self.channels == 1:
            return [(0, values, None)]
        hashes = key_hashes([batch.column(index) for index in self.key_columns], len(batch))
        targets = channels_of(hashes, self.channels, self._max_parallelism)
        return [(channel, part, None) for channel, part in split_by(batch, targets, self.channels)]  # type: ignore[misc]


def split_by(batch: ColumnBatch, targets: pa.UInt64Array, channels: int) -> list[tuple[int, ColumnBatch]]:
    """Return the rows of every target, without targets that have none."""
    if channels <= _FEW_CHANNELS or len(batch) <= channels:
        masks = [(channel, pc.equal(targets, pa.scalar(channel, pa.uint64()))) for channel in range(channels)]
        return [(channel, batch.filter(mask)) for channel, mask in masks if mask.true_count]
    order = pc.array_sort_indices(targets)  # a stable sort
    ordered = batch.take(order)
    runs = pc.run_end_encode(targets.take(order))
    parts, start = [], 0
    for channel, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        parts.append((channel, ordered[start:end]))
        start = end
    return parts


def _no_key_selector(_: Any) -> Any:
    raise TypeError("rows of a table are partitioned by columns, not by a key selector")
