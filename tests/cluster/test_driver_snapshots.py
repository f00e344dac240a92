"""Lists over many drivers do not wait for the slow ones."""

import threading

import pytest

from penstock.cluster import driver_snapshots
from penstock.cluster.driver_link import DriverAnswer, DriverGoneError
from penstock.cluster.driver_snapshots import DriverSnapshots


class Drivers:
    """Answers with a number that grows; those in `busy` wait until `release` is set, those in `gone` do not answer."""

    def __init__(self):
        self.busy, self.gone = set(), set()
        self.release, self.waiting = threading.Event(), threading.Event()
        self.asked = 0

    def ask(self, address, method, path, *, timeout):
        self.asked += 1
        number = self.asked
        if address in self.gone:
            raise DriverGoneError("gone")
        if address in self.busy:
            self.waiting.set()
            self.release.wait()
        return DriverAnswer(200, {}, str(number).encode())


@pytest.fixture
def drivers(monkeypatch):
    found = Drivers()
    monkeypatch.setattr(driver_snapshots, "ask_driver", found.ask)
    yield found
    found.release.set()


def test_o37_all_drivers_are_asked_again_each_time(drivers):
    snapshots = DriverSnapshots(patience=60)
    assert set(snapshots.ask(["a", "b"], "/x").values()) == {1, 2}
    assert set(snapshots.ask(["a", "b"], "/x").values()) == {3, 4}


def test_o9_the_previous_answer_of_a_busy_driver_is_given(drivers):
    snapshots = DriverSnapshots(patience=60)
    assert snapshots.ask(["a"], "/x") == {"a": 1}
    drivers.busy.add("a")
    snapshots.patience = 0.0
    assert snapshots.ask(["a"], "/x") == {"a": 1}
    assert drivers.waiting.wait(60)  # no request is left for the drivers of the next test


def test_o9_a_busy_driver_has_one_pending_request(drivers):
    snapshots = DriverSnapshots(patience=0.0)
    drivers.busy.add("a")
    for _ in range(10):
        assert snapshots.ask(["a"], "/x", first=0.0) == {}
    assert drivers.waiting.wait(60)
    assert drivers.asked == 1


def test_a_driver_that_is_gone_or_not_asked_for_any_more_is_left_out(drivers):
    snapshots = DriverSnapshots(patience=60)
    drivers.gone.add("b")
    assert snapshots.ask(["a", "b"], "/x").keys() == {"a"}
    assert snapshots.ask(["b"], "/x") == {}


def test_an_answer_that_comes_late_is_given_the_next_time(drivers):
    snapshots = DriverSnapshots(patience=0.0)
    drivers.busy.add("a")
    assert snapshots.ask(["a"], "/x", first=0.0) == {}
    drivers.release.set()
    snapshots.patience = 60
    assert snapshots.ask(["a"], "/x").keys() == {"a"}
