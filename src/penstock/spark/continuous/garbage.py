"""When a task that continuously runs steps collects garbage.

Python's collector stops the process while it visits all objects. With a million keys in state, this takes some hundred
milliseconds, and records wait. State is therefore frozen, which hides it from the collector. A full collection runs
only if memory has grown without a reason: if there are twice as many blocks as after the last one, and new keys do not
explain it. Then there may be cycles that became garbage after they were frozen.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

__all__ = ["GarbagePlan"]

_YOUNG_OBJECTS = 500_000
_FEW_OBJECTS = 20_000
_MANY_BLOCKS = 1_000_000
_BLOCKS_OF_A_KEY = 12  # the key, its entry, and values of two small states


class GarbagePlan:
    """Plans the garbage collection of one process.

    :param keys: counts the keys in memory; called when memory has doubled
    :param blocks: counts the allocated blocks
    """

    def __init__(self, keys: Callable[[], int], blocks: Callable[[], int] = sys.getallocatedblocks) -> None:
        self._count_keys = keys
        self._count_blocks = blocks
        self._blocks = self._keys = 0  # when memory last grew that much
        self.collections = 0
        """Number of full collections."""

    def settle(self) -> None:
        """Collect garbage if necessary. Called between two steps, about once per second."""
        if gc.get_count()[0] < _FEW_OBJECTS:
            gc.collect(0)
        blocks = self._count_blocks()
        if blocks > 2 * self._blocks + _MANY_BLOCKS:
            keys = self._count_keys()
            if blocks - self._blocks > _MANY_BLOCKS + self._blocks // 2 + (keys - self._keys) * _BLOCKS_OF_A_KEY:
                self.collections += 1
                gc.unfreeze()
                gc.collect()
                blocks = self._count_blocks()
            self._blocks, self._keys = blocks, keys
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS, 10, 1000)
