"""FileSink: exactly once, whatever crashes when; what a crash leaves behind is taken up or removed."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from crashing import TROUBLE, Crashing
from tests.connectors.file_sinks import hidden, numbers, row_sink, sequence_to, visible

from penstock.common.errors import JobExecutionError, PenstockError
from penstock.common.serialization import Encoder
from penstock.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from penstock.connectors.file_system import sink_committer as committing
from penstock.formats.csv import CsvBulkWriters, CsvSchema

pytestmark = pytest.mark.exhaustive


class Watched(Crashing):
    """Looks at the directory after every batch, and after every batch that failed."""

    def __init__(self, tmp_path, out, build):
        super().__init__(tmp_path, build)
        self.out = out
        self.seen = [{}]
        self.discarded = set()

    def step(self, job):
        try:
            super().step(job)
        except PenstockError:
            self.discarded.update(name for name in hidden(self.out) if ".pending." in name)
            raise
        finally:
            self.seen.append(visible(self.out))


def test_numbers_of_files_only_go_up_and_a_discarded_file_is_never_seen_under_one(tmp_path):
    """Rule P06: A number whose file was discarded is taken again by the replay: no reader knows it yet."""
    out = tmp_path / "out"
    TROUBLE.update(dict.fromkeys((7, 8, 17, 18, 31, 32), True))
    small_files = RollingPolicy.default_rolling_policy(3, 10**9, 10**9)
    job = Watched(tmp_path, out, sequence_to(row_sink(out, small_files)))
    assert job.run() >= 3
    assert job.discarded  # complete files of a batch that failed
    last = {}
    for before, after in pairwise(job.seen):
        assert after.items() >= before.items()  # a file that was seen stays as it is
        for name in sorted(after.keys() - before.keys(), key=lambda name: int(name.rpartition("-")[2])):
            subtask, number = name.split("-")[2:]
            assert int(number) == last.get(subtask, -1) + 1
            last[subtask] = int(number)
    assert numbers(out) == list(range(1, 41))


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("policy", ["rolling", "checkpoint", "small"])
def test_crashes_of_tasks_lose_nothing_double_nothing_and_leave_nothing(tmp_path, policy, cold):
    out = tmp_path / "out"
    policies = {
        "rolling": RollingPolicy.default_rolling_policy(),
        "checkpoint": RollingPolicy.on_checkpoint_rolling_policy(),
        "small": RollingPolicy.default_rolling_policy(7, 10**9, 10**9),
    }
    TROUBLE.update(dict.fromkeys((3, 17, 18, 40), True))
    crashes = Crashing(tmp_path, sequence_to(row_sink(out, policies[policy])), cold=cold).run()
    assert crashes >= 3
    assert numbers(out) == list(range(1, 41))
    assert hidden(out) == []


def test_a_file_in_progress_is_cut_back_to_what_the_checkpoint_has_of_it(tmp_path):
    out = tmp_path / "out"

    def build(env):
        stream = env.from_sequence(1, 12).set_parallelism(1)
        stream.sink_to(row_sink(out, RollingPolicy.default_rolling_policy())).set_parallelism(1)

    def lost(*_):
        raise JobExecutionError("lost before the checkpoint")

    crashing = Crashing(tmp_path, build, parallelism=1)
    job = crashing.start()
    assert job.run_batch()
    crashing.snapshot = job.snapshot()
    (before,) = hidden(out)
    job.committers.commit = lost
    with pytest.raises(JobExecutionError, match="lost"):
        job.run_batch()
    lines = (out / before).read_text().splitlines()
    assert lines == [str(number) for number in range(1, 9)]  # four of them belong to no checkpoint
    job = crashing.start()
    job.run()
    job.close()
    assert numbers(out) == list(range(1, 13))
    assert hidden(out) == []


@pytest.mark.parametrize("early", [False, True], ids=["log", "early"])
@pytest.mark.parametrize("compacted", [False, True], ids=["plain", "compacted"])
@pytest.mark.parametrize("seed", range(6))
def test_crashes_at_any_step_of_a_commit_are_made_up_for(tmp_path, monkeypatch, seed, compacted, early):
    out, chance = tmp_path / "out", random.Random(seed)
    options = {}
    if compacted:
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
        options = {"strategy": strategy, "compactor": FileCompactor.concat_file_compactor()}
    policy = RollingPolicy.default_rolling_policy(chance.choice([1, 9, 30]), 10**9, 10**9)
    replace, unlink = Path.replace, Path.unlink

    def unreliable(call):
        def step(path, *args, **kwargs):
            if str(path).startswith(str(out)) and chance.random() < 0.15:
                if chance.random() < 0.5:
                    call(path, *args, **kwargs)
                raise OSError("pulled the plug")
            return call(path, *args, **kwargs)

        return step

    monkeypatch.setattr(Path, "replace", unreliable(replace))
    monkeypatch.setattr(Path, "unlink", unreliable(unlink))
    monkeypatch.setattr(committing.FileSinkCommitter, "after_checkpoint", not early)
    crashing = Crashing(tmp_path, sequence_to(row_sink(out, policy, **options)), max_records=3)
    crashes = 0
    for _ in range(200):
        try:
            crashes += crashing.run(attempts=1)
            break
        except AssertionError:
            crashes += 1
    # A crash in the very last clean-up may leave hidden files, never visible ones.
    monkeypatch.undo()
    finish(crashing)
    assert crashes >= 1 or seed in (0, 5)
    assert numbers(out) == list(range(1, 41))


def finish(crashing):
    """What a restart of a finished job does."""
    job = crashing.start()
    job.committers.checkpoint_complete(job.offset.checkpoint_id, final=True)


@pytest.mark.parametrize("kind", ["rows", "bulk", "compacted"])
@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("parallelisms", [(2, 3), (3, 1), (3, 2, 3), (1, 3, 1)], ids=str)
def test_a_job_that_goes_on_with_another_parallelism_loses_no_file_and_no_record(tmp_path, parallelisms, cold, kind):
    """Files in progress go to other subtasks, several of them perhaps to one; numbers of files are never used again."""
    out = tmp_path / "out"
    savepoint = job_id = None

    def build(env):
        stream = env.from_sequence(1, 600).uid("numbers").rebalance()
        if kind == "bulk":
            schema = CsvSchema.builder().add_number_column("n").build()
            stream = stream.map(lambda number: (number,))
            builder = FileSink.for_bulk_format(out, CsvBulkWriters.for_schema(schema))
        else:
            builder = FileSink.for_row_format(out, Encoder.simple_string_encoder())
        if kind == "compacted":
            strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
            builder.enable_compact(strategy, FileCompactor.concat_file_compactor())
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        stream.sink_to(builder.build()).uid("files")

    for line, parallelism in enumerate(parallelisms):
        crashing = Crashing(tmp_path / str(line), build, max_records=30, parallelism=parallelism, cold=cold)
        crashing.job_id = job_id  # as when a running job is rescaled
        job = crashing.start(savepoint)
        job_id = job.job_id
        for _ in range(4):
            job.run_batch()
        if line == len(parallelisms) - 1:
            job.run()
        else:
            savepoint = job.savepoint(str(tmp_path / "savepoints"))
        job.close()
    files = [path for path in out.rglob("*") if path.is_file()]
    assert [path for path in files if path.name.startswith(".")] == []
    found = [int(line) for path in files for line in path.read_text().split()]
    assert sorted(found) == list(range(1, 601))


def test_leftovers_of_an_attempt_before_the_first_checkpoint_are_removed(tmp_path):
    out = tmp_path / "out"
    TROUBLE[1] = True
    crashing = Crashing(tmp_path, sequence_to(row_sink(out), 40, 1), max_records=100)
    job = crashing.start()
    with pytest.raises(PenstockError):
        job.run_batch()
    crashing.run()
    assert hidden(out) == []
    assert numbers(out) == list(range(1, 41))


def test_a_file_of_the_checkpoint_that_somebody_removed_is_a_clear_error(tmp_path):
    out = tmp_path / "out"
    crashing = Crashing(tmp_path, sequence_to(row_sink(out), 40, 1))
    job = crashing.start()
    assert job.run_batch()
    crashing.snapshot = job.snapshot()
    for path in out.glob(".*"):
        path.unlink()
    with pytest.raises(PenstockError, match="part of the checkpoint but is missing"):
        crashing.start().run_batch()
