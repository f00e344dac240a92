import os
import pickle
import time

import pytest

from penstock.common.errors import CheckpointError, InvalidProgramError
from penstock.common.typeinfo import Types
from penstock.connectors import (
    CollectionSource,
    CollectSink,
    DataGeneratorSource,
    DiscardingSink,
    GeneratorFunction,
    NumberSequenceSource,
    PrintSink,
    RateLimiterStrategy,
    TextFileSource,
)
from penstock.core.sink import WriterInitContext


def read_all(source, parallelism=1, step=1_000_000):
    """All records of a source by split, read in steps of about so many records."""
    source = pickle.loads(pickle.dumps(source)) if not isinstance(source, DataGeneratorSource) else source
    enumerator, reader = source.create_enumerator(parallelism), source.create_reader()
    result = []
    for split in enumerator.discover_splits():
        records, offset = [], source.initial_offset(split)
        while not enumerator.is_finished(split, offset):
            end = enumerator.latest_offset(split, offset, step)
            for values, timestamps in reader.read(split, offset, end):
                assert timestamps is None
                records += values
            offset = end
        result.append(records)
    return result


@pytest.mark.parametrize("step", [1, 3, 1_000_000])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_sequence_is_complete_whatever_the_steps(parallelism, step):
    parts = read_all(NumberSequenceSource(-3, 20_000 if step > 3 else 20), parallelism, step)
    assert len(parts) == parallelism
    assert [number for part in parts for number in part] == list(range(-3, 20_001 if step > 3 else 21))


def test_a_sequence_may_be_shorter_than_its_tasks_are_many():
    assert read_all(NumberSequenceSource(5, 6), 4) == [[5], [6]]
    with pytest.raises(InvalidProgramError):
        NumberSequenceSource(2, 1)


@pytest.mark.parametrize("step", [1, 700, 10_000])
def test_a_collection_is_one_split_in_order(step):
    assert read_all(CollectionSource(range(3_000)), 4, step) == [list(range(3_000))]


def test_records_of_a_collection_are_new_objects_at_every_read():
    source = CollectionSource([[1]])
    (split,) = source.create_enumerator(1).discover_splits()
    reader = source.create_reader()
    for _ in range(2):
        ((values, _),) = reader.read(split, 0, 1)
        assert values == [[1]]
        values[0].append("changed")


@pytest.mark.parametrize("step", [1, 2, 5, 1000])
def test_lines_are_complete_whatever_the_byte_ranges(tmp_path, step, monkeypatch):
    from penstock.formats import file_format as formats

    monkeypatch.setattr(formats, "_BYTES_PER_LINE", 1)
    monkeypatch.setattr(formats.LineFormat, "split_units", 7)
    lines = ["first", "", "third is longer", "ä€", "last without newline"]
    path = tmp_path / "lines.txt"
    path.write_bytes("\n".join(lines).encode())
    assert [line for part in read_all(TextFileSource(path), step=step) for line in part] == lines


def test_files_of_a_directory_are_read_in_order_without_hidden_ones(tmp_path):
    (tmp_path / "sub").mkdir()
    texts = {"b.txt": "b\r\n", "a.txt": "a\n", "sub/c.txt": "c", ".hidden": "no", "_tmp": "no"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
        os.utime(tmp_path / name, (1, 1))  # of one age: then their names decide
    assert read_all(TextFileSource(f"file://{tmp_path}")) == [["a"], ["b"], ["c"]]


def test_text_in_other_encodings(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("grün\n".encode("latin-1"))
    assert read_all(TextFileSource(path, encoding="latin-1")) == [["grün"]]


def test_a_missing_file_or_another_file_system_is_refused(tmp_path):
    with pytest.raises(InvalidProgramError, match="does not exist"):
        TextFileSource(tmp_path / "nope")
    with pytest.raises(InvalidProgramError, match="from_dataframe"):
        TextFileSource("s3://bucket/key")


@pytest.mark.parametrize("name", ["a.txt", "a@b.txt"])
def test_positions_of_text_files_of_an_earlier_version_are_refused_clearly(tmp_path, name):
    path = tmp_path / name
    path.write_text("a\n")
    with pytest.raises(CheckpointError, match="was written by an earlier version"):
        TextFileSource(path).create_enumerator(1).restore({f"{path}@0": False})


def test_generated_records_are_a_function_of_their_index():
    assert read_all(DataGeneratorSource(lambda index: index * 2, 5), 2) == [[0, 2], [4, 6, 8]]


def test_a_generator_function_has_a_life_cycle():
    class Opened(GeneratorFunction):
        prefix = None

        def open(self, runtime_context):
            self.prefix = runtime_context

        def map(self, value):
            return f"{self.prefix}{value}"

    source = DataGeneratorSource(Opened(), 2, type_info=Types.STRING())
    assert source.get_produced_type() == Types.STRING()
    reader = source.create_reader()
    reader.open("n")
    (split,) = source.create_enumerator(1).discover_splits()
    assert [values for values, _ in reader.read(split, 0, 2)] == [["n0", "n1"]]


def test_without_a_count_a_generator_is_unbounded():
    assert not DataGeneratorSource(lambda index: index).is_bounded
    assert DataGeneratorSource(lambda index: index, 1).is_bounded


def test_the_rate_is_kept_over_all_splits_and_counts_from_the_start(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    source = DataGeneratorSource(lambda index: index, 1_000, RateLimiterStrategy.per_second(10))
    enumerator = source.create_enumerator(2)
    one, two = enumerator.discover_splits()
    for _ in range(2):
        assert enumerator.latest_offset(one, one.start, 100) == one.start
        assert enumerator.latest_offset(two, two.start + 50, 100) == two.start + 50
    now[0] += 2.0
    assert enumerator.latest_offset(one, one.start, 100) == one.start + 10
    assert enumerator.latest_offset(two, two.start + 50, 100) == two.start + 60
    assert enumerator.latest_offset(one, one.start, 3) == one.start + 3
    now[0] += 1_000.0
    assert enumerator.latest_offset(one, one.end, 100) == one.end


@pytest.mark.parametrize("arguments", [(5,), (str, -1), (str, 1, 0), (str, 1, -2.0)])
def test_impossible_generators_are_refused(arguments):
    with pytest.raises(InvalidProgramError):
        DataGeneratorSource(*arguments)


def writer_of(sink, subtask=0, parallelism=1):
    return sink.create_writer(WriterInitContext(subtask_id=subtask, parallelism=parallelism, checkpoint_id=0))


def test_a_commit_that_is_repeated_prints_once(capsys):
    sink = PrintSink()
    committer = sink.create_committer()
    writer = writer_of(sink)
    for checkpoint_id in range(2):
        writer.write_batch([f"value {checkpoint_id}"], None)
        committables = writer.prepare_commit()
        committer.commit(committables, checkpoint_id)
        committer.commit(committables, checkpoint_id)
    committer.commit([], 2)
    assert capsys.readouterr().out == "value 0\nvalue 1\n"


def test_collected_records_arrive_once_per_commit():
    sink = CollectSink()
    writer, committer = writer_of(pickle.loads(pickle.dumps(sink))), sink.create_committer()
    writer.write_batch([1, 2], None)
    committables = writer.prepare_commit()
    committer.commit(committables, 0)
    committer.commit(committables, 0)
    committer.commit([3], 1)
    assert [sink.records.get_nowait(), sink.records.get_nowait()] == [[1, 2], [3]]
    assert sink.records.empty()
    sink.release()
    committer.commit([4], 2)


def test_the_discarding_sink_takes_anything():
    writer = writer_of(DiscardingSink())
    writer.write_batch([1, object()], [1, None])
    assert writer.prepare_commit() == []


class Clock:
    """Stands in for the time module."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def paced_clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("penstock.connectors.datagen.time", clock)
    return clock


@pytest.mark.parametrize("first_offset", [0, 500])
def test_a_paced_generator_owes_nothing_for_the_time_before_the_first_batch_was_run(paced_clock, first_offset):
    enumerator = DataGeneratorSource(lambda index: index, 10_000, 100).create_enumerator(1)
    (split,) = enumerator.discover_splits()
    paced_clock.now += 60  # the engine starts
    assert enumerator.latest_offset(split, first_offset, 1000) == first_offset
    paced_clock.now += 5  # the first batch starts workers
    assert enumerator.latest_offset(split, first_offset, 1000) == first_offset
    paced_clock.now += 0.5
    assert enumerator.latest_offset(split, first_offset, 1000) == first_offset + 50
    paced_clock.now += 0.25
    assert enumerator.latest_offset(split, first_offset + 50, 1000) == first_offset + 75


def test_a_paced_generator_never_goes_beyond_its_rate_or_the_limit_of_a_batch(paced_clock):
    enumerator = DataGeneratorSource(lambda index: index, 120, 100).create_enumerator(1)
    (split,) = enumerator.discover_splits()
    for _ in range(2):
        enumerator.latest_offset(split, 0, 10)
    paced_clock.now += 1
    assert enumerator.latest_offset(split, 0, 10) == 10
    assert enumerator.latest_offset(split, 10, 1000) == 100
    paced_clock.now += 1
    assert enumerator.latest_offset(split, 100, 1000) == 120
    assert enumerator.is_finished(split, 120)
