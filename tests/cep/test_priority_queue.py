"""The heap that decides which of several matches with the same first event is emitted."""

from penstock.runtime.cep.priority_queue import discard, poll, push


def heap_of(*items):
    heap = []
    for item in items:
        push(heap, item)
    return heap


def test_the_heap_moves_equal_items_as_javas_priority_queue_does():
    # An item rises while its parent is larger, and stops below an equal one.
    assert heap_of((1, "a"), (1, "b"), (0, "c")) == [(0, "c"), (1, "b"), (1, "a")]
    # The last item takes the place of the first one, and sinks below smaller children: of two equal ones the left.
    heap = heap_of((0, "a"), (1, "b"), (1, "c"), (2, "d"))
    assert poll(heap) == (0, "a")
    assert heap == [(1, "b"), (2, "d"), (1, "c")]
    # It stays above equal children.
    heap = heap_of((0, "a"), (1, "b"), (1, "c"))
    assert poll(heap) == (0, "a")
    assert heap == [(1, "c"), (1, "b")]


def test_removing_some_items_orders_the_rest_from_the_last_parent_up():
    heap = [(0, "a"), (3, "b"), (1, "c"), (4, "d"), (5, "e"), (2, "f")]
    assert discard(heap, lambda item: item[0] in {0, 1})
    assert heap == [(2, "f"), (3, "b"), (5, "e"), (4, "d")]
    assert not discard(heap, lambda item: item[0] == 9)
