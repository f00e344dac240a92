"""Sources over a range, continued by a program in which the range is another: the range belongs to the checkpoint."""

import logging
from dataclasses import replace

import pytest

from penstock.common import WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors import DataGeneratorSource, NumberSequenceSource, RateLimiterStrategy
from penstock.connectors.sinks import CollectSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

NEW = {
    "from_sequence": lambda env, size: env.from_sequence(0, size - 1),
    "generator": lambda env, size: env.from_source(
        DataGeneratorSource(lambda index: index, size), WatermarkStrategy.no_watermarks(), "generator"
    ),
    "limited generator": lambda env, size: env.from_source(
        DataGeneratorSource(lambda index: index, size, RateLimiterStrategy.per_checkpoint(40)),
        WatermarkStrategy.no_watermarks(),
        "generator",
    ),
}


class Program:
    """A job that reads a source of a size, in batches of a few records."""

    def __init__(self, source, size, parallelism=2):
        self.found = CollectSink()
        self.env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10)).set_parallelism(parallelism)
        source(self.env, size).uid("source").sink_to(self.found).set_parallelism(1)
        self.job = None

    def start(self, **restore):
        self.job = self.env._executor.start(list(self.env.sinks), self.env.job_settings(None), **restore)
        return self

    def records(self):
        queue = self.found.records
        return [record for _ in range(queue.qsize()) for record in queue.get()]


def stopped_halfway(source, size, tmp_path):
    """What a job has read of a source before it was stopped, and where it can be continued."""
    program = Program(source, size).start()
    for _ in range(4):
        program.job.run_batch()
    savepoint = program.job.stop_with_savepoint(str(tmp_path))
    seen = program.records()
    assert 0 < len(seen) < size
    return seen, savepoint


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("size", [50, 100, 200])
def test_every_number_of_the_checkpoint_is_read_once_whatever_the_size_is_now(name, size, tmp_path, caplog):
    seen, savepoint = stopped_halfway(NEW[name], 100, tmp_path)
    program = Program(NEW[name], size).start(savepoint=savepoint)
    program.job.run()
    assert sorted(seen + program.records()) == list(range(100))
    expected = f"The checkpoint reads the numbers 0 to 99. The program now says 0 to {size - 1}, which has no effect"
    assert (expected in caplog.text) == (size != 100)


def test_the_ranges_stay_when_parallelism_and_size_change_together(tmp_path):
    seen, savepoint = stopped_halfway(NEW["from_sequence"], 100, tmp_path)
    program = Program(NEW["from_sequence"], 400, parallelism=3).start(savepoint=savepoint)
    program.job.run()
    assert sorted(seen + program.records()) == list(range(100))


def from_collection(env, size):
    return env.from_collection(list(range(size)))


@pytest.mark.parametrize("size", [50, 200])
def test_a_collection_that_is_not_read_to_its_end_must_keep_its_size(size, tmp_path):
    _, savepoint = stopped_halfway(from_collection, 100, tmp_path)
    program = Program(from_collection, size).start(savepoint=savepoint)
    with pytest.raises(InvalidProgramError, match=f"had 100 elements when the checkpoint was written and has {size}"):
        program.job.run()


def test_a_collection_of_the_same_size_is_continued(tmp_path):
    seen, savepoint = stopped_halfway(from_collection, 100, tmp_path)
    program = Program(from_collection, 100).start(savepoint=savepoint)
    program.job.run()
    assert seen + program.records() == list(range(100))


def test_a_collection_that_was_read_to_its_end_is_not_read_again(caplog):
    caplog.set_level(logging.WARNING)
    program = Program(from_collection, 5).start()
    program.job.run()
    snapshot = program.job.snapshot()
    again = Program(from_collection, 7).start(snapshot=snapshot)
    again.job.engine.offset = replace(again.job.offset, is_last=False)  # another source of the job has more
    again.job.run()
    assert again.records() == []
    assert "had 5 elements when the checkpoint was written and has 7 now. It was read to its end" in caplog.text


def test_positions_as_ids_of_splits_are_understood():
    """As checkpoints had them before the ids of splits were their ranges."""
    enumerator = NumberSequenceSource(0, 99).create_enumerator(2)
    enumerator.restore({"0": False, "1": False})
    assert [(split.split_id, split.start, split.end) for split in enumerator.discover_splits()] == [
        ("0", 0, 50),
        ("1", 50, 100),
    ]
