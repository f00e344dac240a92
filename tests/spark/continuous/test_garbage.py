"""When a task of the continuous mode looks at all objects for garbage."""

import gc
import weakref

import pytest

from penstock.spark.continuous.garbage import GarbagePlan

pytestmark = pytest.mark.exhaustive

MILLION = 1_000_000


class Memory:
    """What a process has, as the test says."""

    def __init__(self):
        self.blocks = self.keys = 0
        self.plan = GarbagePlan(lambda: self.keys, lambda: self.blocks)

    def grows_to(self, blocks, keys):
        """Settles at this size; returns whether everything was looked at."""
        self.blocks, self.keys = blocks, keys
        before = self.plan.collections
        self.plan.settle()
        return self.plan.collections > before


@pytest.fixture(autouse=True)
def _as_it_was():
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_state_that_grows_key_by_key_is_never_looked_at():
    memory = Memory()
    assert not any(memory.grows_to(MILLION // 2 + 7 * keys, keys) for keys in range(0, 10 * MILLION, MILLION // 10))


def test_memory_that_grows_without_keys_is_looked_at_each_time_it_has_doubled():
    memory = Memory()
    looked = [memory.grows_to(blocks, 100) for blocks in range(0, 16 * MILLION, MILLION)]
    assert [size for size, was_looked_at in enumerate(looked) if was_looked_at] == [2, 6, 14]


def test_garbage_beside_growing_state_is_found():
    memory = Memory()
    assert memory.grows_to(6 * MILLION + 40 * MILLION, MILLION)


def test_a_cycle_that_died_after_it_was_frozen_is_collected_when_memory_grows_for_no_reason():
    class Node:
        pass

    memory = Memory()
    node = Node()
    node.itself = node
    memory.grows_to(0, 0)
    gone = weakref.ref(node)
    del node
    memory.grows_to(MILLION, 0)
    assert gone() is not None
    memory.grows_to(3 * MILLION, 0)
    assert gone() is None
