"""Runs, waiting events and timers survive restores; a changed pattern is rejected; nothing stays behind."""

import random
from collections import defaultdict

import pytest
from cep_jobs import Event, job, operator_of, run_job
from notation import chain
from random_jobs import random_job
from support import At, Script, Wm, collected

from penstock.cep import CEP, AfterMatchSkipStrategy, Pattern
from penstock.common import WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors.sinks import CollectSink
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.testing import MiniCluster
from penstock.testing.harness import KeyedOneInputOperatorHarness

KEYS = [f"key {number}" for number in range(20)]


def pattern(limit=1_000, last="b", skip=None):
    first = Pattern.begin("a", skip).where(lambda event: event[1] == "a")
    middle = first.followed_by("m").where(lambda event: event[1] == "m").one_or_more().greedy()
    return middle.followed_by("b").where(lambda event: event[1] == last).within(limit)


def everywhere(kind, timestamp):
    return [At((key, kind), timestamp) for key in KEYS]


BEFORE = [*everywhere("a", 10), *everywhere("m", 20), Wm(15)]  # the events at 20 still wait for the watermark
AFTER = [*everywhere("m", 30), *everywhere("b", 40), *everywhere("c", 45), Wm(50)]


class Job:
    """A job over scripted events that is driven by hand."""

    def __init__(self, elements, used=None, *, parallelism=1, savepoint=None, **cluster):
        self.cluster, self.sink = MiniCluster(**cluster), CollectSink()
        env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(parallelism)
        source = Script(elements, bounded=False)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "events").uid("events").set_parallelism(1)
        found = CEP.pattern(stream.key_by(lambda event: event[0]), used or pattern())
        results = found.select(lambda match: (match["a"][0][0], len(match["m"]), match["b"][0][1])).uid("pattern")
        results.sink_to(self.sink).uid("sink").set_parallelism(1)
        self.job = self.cluster.start(list(env.sinks), env.job_settings(None), savepoint=savepoint)

    def run(self):
        self.job.run()
        return sorted(collected(self.sink))


def savepoint_in_the_middle(tmp_path, used=None, parallelism=1):
    before = Job(BEFORE, used, parallelism=parallelism)
    assert before.run() == []
    return before.job.stop_with_savepoint(str(tmp_path))


@pytest.mark.parametrize(("first", "second"), [(1, 4), (4, 1), (2, 3)])
@pytest.mark.parametrize("skip", [None, AfterMatchSkipStrategy.skip_past_last_event()], ids=["no skip", "past last"])
def test_runs_and_waiting_events_continue_at_another_parallelism(tmp_path, first, second, skip):
    path = savepoint_in_the_middle(tmp_path, pattern(skip=skip), first)
    after = Job(BEFORE + AFTER, pattern(skip=skip), parallelism=second, savepoint=path)
    assert after.run() == sorted((key, 2, "b") for key in KEYS)
    after.job.close()


def test_runs_continue_with_changed_conditions(tmp_path):
    path = savepoint_in_the_middle(tmp_path)
    after = Job(BEFORE + AFTER, pattern(last="c"), savepoint=path)
    assert after.run() == sorted((key, 2, "c") for key in KEYS)
    after.job.close()


def renamed():
    return pattern().followed_by("d")


@pytest.mark.parametrize("changed", [lambda: pattern(limit=2_000), renamed], ids=["limit", "one pattern more"])
def test_a_changed_pattern_is_rejected_and_both_are_named(tmp_path, changed):
    path = savepoint_in_the_middle(tmp_path)
    after = Job(BEFORE + AFTER, changed(), savepoint=path)
    with pytest.raises(InvalidProgramError, match=r"pattern .* has changed: .*a -> m\+.* the program has .*a -> m\+"):
        after.run()


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    "cluster", [{}, {"max_records": 1}, {"max_records": 1, "cold": True}], ids=["warm", "one", "cold"]
)
def test_matches_do_not_depend_on_batches_or_on_tasks_that_stay_alive(cluster, parallelism):
    running = Job(BEFORE + AFTER, parallelism=parallelism, **cluster)
    assert running.run() == sorted((key, 2, "b") for key in KEYS)
    running.job.close()


def test_batch_mode_gives_the_same_matches_whatever_the_order_of_the_input():
    records = [
        (element.value[0], element.value[1], element.timestamp) for element in BEFORE + AFTER if isinstance(element, At)
    ]
    random.Random(5).shuffle(records)
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[2])
    stream = env.from_collection(records).assign_timestamps_and_watermarks(timed).key_by(lambda event: event[0])
    found = CEP.pattern(stream, pattern()).select(lambda match: (match["a"][0][0], len(match["m"])))
    assert sorted(found.execute_and_collect()) == sorted((key, 2) for key in KEYS)


@pytest.mark.parametrize("restore_every", [1, 3])
def test_a_restore_between_any_two_steps_changes_nothing(restore_every):
    rng = random.Random(restore_every)
    jobs = [random_job(rng) for _ in range(60)]
    plain = [run_job(one) for one in jobs]
    assert sum(any(entry[0] == "m" for entry in log) for log in plain) > 20  # the jobs say something
    for one, log in zip(jobs, plain, strict=True):
        assert by_key(one, run_job(one, restore_every=restore_every)) == by_key(one, log)


def by_key(one, log):
    """The log of each key, with the number of watermarks before each entry: keys have no order among each other."""
    keys = [step[1] for step in one["script"] if step[0] == "e"]
    found, watermarks = defaultdict(list), 0
    for entry in log:
        if entry[0] == "w":
            watermarks += 1
        elif entry[0] == "error":
            found["error"].append(entry)
        else:
            first = entry[1] if entry[0] == "late" else entry[1][0][1][0]
            found[keys[first]].append((watermarks, entry))
    return found


@pytest.mark.parametrize(
    ("text", "skip"),
    [
        ("a > b", ["none"]),
        ("a -> b within:5", ["none"]),
        ("a -> b+ -> c within:5", ["past"]),
        ("a !-> b within:5", ["next"]),
    ],
)
def test_a_key_without_live_runs_has_no_state(text, skip):
    harness = KeyedOneInputOperatorHarness(operator_of(job(chain(text), [], skip=skip), []))
    for number, kind in enumerate("abcaazcbz"):
        harness.process_element(Event(number, number % 3, kind, 0), number + 1)
    harness.snapshot()  # puts the waiting events into the state
    assert harness.num_keyed_state_entries() > 0
    harness.process_watermark(50)
    for key in range(3):
        harness.process_element(Event(99, key, "z", 0), 60)
    harness.process_watermark(100)
    harness.snapshot()  # lets go of keys without state
    assert harness.num_keyed_state_entries() == 0
    assert harness.num_event_time_timers() == 0
