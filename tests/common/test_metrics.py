import pytest

from penstock.metrics import Counter, Distribution, Gauge, Meter, Metric, MetricGroup


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_counters_count_both_ways():
    counter = Counter()
    counter.inc()
    counter.inc(5)
    counter.dec()
    counter.dec(2)
    assert counter.get_count() == counter.count == 3


def test_meters_give_the_rate_over_their_span():
    clock = Clock()
    meter = Meter(10, clock)
    assert meter.get_rate() == 0.0
    for second in range(1, 31):
        clock.now = float(second)
        meter.mark_event(2 if second <= 20 else 4)
        rate = meter.get_rate()
    assert meter.get_count() == 80
    assert rate == pytest.approx(4.0)


def test_meters_keep_a_bounded_number_of_samples():
    clock = Clock()
    meter = Meter(10**9, clock)
    for _ in range(5_000):
        clock.now += 1
        meter.get_rate()
    assert len(meter._samples) <= 1024


def test_distributions_summarise():
    distribution = Distribution()
    assert distribution.snapshot() == {"count": 0}
    for value in (5, -1, 2):
        distribution.update(value)
    assert distribution.snapshot() == {"count": 3, "sum": 6, "min": -1, "max": 5, "mean": 2.0}


def test_a_name_is_one_metric():
    group = MetricGroup()
    group.counter("a").inc()
    group.counter("a").inc()
    assert group.counter("a").get_count() == 2
    assert group.add_group("g") is group.add_group("g")
    assert group.add_group("k", "v") is group.add_group("k").add_group("v")


def test_a_name_used_for_another_kind_is_replaced():
    group = MetricGroup()
    group.counter("a").inc()
    group.distribution("a").update(1)
    assert group.snapshot()["a.count"] == 1


def test_snapshot_has_all_values_by_full_name():
    group = MetricGroup("job")
    group.counter("seen").inc(2)
    group.gauge("size", lambda: 7)
    group.meter("events").mark_event()
    group.add_group("rule", "high").histogram("ms").update(4)
    snapshot = group.snapshot()
    assert snapshot.pop("job.events.rate") >= 0
    assert snapshot == {
        "job.seen": 2,
        "job.size": 7,
        "job.events.count": 1,
        "job.rule.high.ms.count": 1,
        "job.rule.high.ms.sum": 4,
        "job.rule.high.ms.min": 4,
        "job.rule.high.ms.max": 4,
        "job.rule.high.ms.mean": 4.0,
    }
    assert group.get_metric_identifier("seen") == "job.seen"


def test_a_failing_gauge_is_left_out():
    group = MetricGroup()
    group.gauge("broken", lambda: 1 // 0)
    group.counter("fine")
    assert group.snapshot() == {"fine": 0}


def test_gauges_compute_when_asked():
    values = [1, 2]
    gauge = Gauge(lambda: len(values))
    values.append(3)
    assert gauge.get_value() == 3


def test_metric_is_a_contract():
    with pytest.raises(NotImplementedError):
        Metric().snapshot()
