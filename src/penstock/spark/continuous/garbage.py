"""When a task that takes steps all the time looks for garbage.

Python's collector stops the process while it looks at all objects. With a million keys in state that takes some hundred
milliseconds, and records wait. So state is frozen, which takes it out of the collector's sight. Everything is looked at
only if memory has grown for no reason: if there are twice as many blocks as after the last time, and new keys do not
explain it. Then there may be cycles that died after they were frozen.
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
    """Of one process.

    :param keys: counts the keys that are in memory; called when memory has doubled
    :param blocks: counts the allocated blocks
    """

    def __init__(self, keys: Callable[[], int], blocks: Callable[[], int] = sys.getallocatedblocks) -> None:
        self._count_keys = keys
        self._count_blocks = blocks
        self._blocks = self._keys = 0  # when it was last known that there is no more garbage than before
        self.collections = 0
        """How often everything was looked at."""

    def settle(self) -> None:
        """Between two steps, about once a second."""
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
