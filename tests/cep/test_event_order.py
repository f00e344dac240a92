"""Events wait for the watermark, in the order of their timestamps; late ones are not part of any match."""

from cep_jobs import job, run_job
from notation import chain, outcome


def event(kind, timestamp, price=0):
    return ["e", "k", kind, price, timestamp]


def test_events_are_matched_in_the_order_of_their_timestamps():
    script = [event("b", 5), event("a", 1), ["w", 9]]
    assert run_job(job(chain("a > b"), script)) == [["m", [["a", [1]], ["b", [0]]], 5], ["w", 9]]


def test_events_wait_until_the_watermark_has_reached_them():
    script = [event("a", 1), event("b", 5), ["w", 4], ["w", 5]]
    assert run_job(job(chain("a > b"), script)) == [["w", 4], ["m", [["a", [0]], ["b", [1]]], 5], ["w", 5]]


def test_equal_timestamps_are_in_the_order_of_arrival():
    assert outcome("a > b", "b1 a b2", every=0) == [("m", "a b2", 1)]


def test_a_comparator_orders_events_of_the_same_timestamp():
    assert outcome("a > b", "b2 a1", every=0, comparator=True) == [("m", "a1 b2", 1)]


def test_a_comparator_leaves_equal_events_in_the_order_of_arrival():
    assert outcome("a > b", "b1 a1", every=0, comparator=True) == []
    assert outcome("a > b", "a1 b1", every=0, comparator=True) == [("m", "a1 b1", 1)]


def test_a_comparator_does_not_change_the_order_of_timestamps():
    assert outcome("a > b", "a5 b1", comparator=True) == [("m", "a5 b1", 2)]


def test_in_processing_time_a_comparator_orders_events_of_the_same_moment():
    script = [["t", 1], event("b", 1, 2), event("a", 1, 1), ["t", 2]]
    found = run_job(job(chain("a > b"), script, time="processing", comparator=True))
    assert [entry[:2] for entry in found] == [["m", [["a", [1]], ["b", [0]]]]]


def test_an_event_at_the_watermark_is_late_and_in_no_match():
    script = [event("a", 1), ["w", 5], event("z", 5), event("b", 6), ["w", 9]]
    found = run_job(job(chain("a > b"), script))
    assert found == [["w", 5], ["m", [["a", [0]], ["b", [2]]], 6], ["w", 9], ["late", 1, 5]]


def test_an_event_is_late_by_the_watermark_of_the_task_although_its_key_is_new():
    script = [event("a", 1), ["w", 5], ["e", "other", "a", 0, 3], ["w", 9]]
    assert ["late", 1, 3] in run_job(job(chain("a > b"), script))
