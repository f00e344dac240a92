import pickle

import pytest

from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator


class Letters(Source):
    def create_enumerator(self, parallelism):
        return LettersEnumerator()

    def create_reader(self):
        return LettersReader()

    def initial_offset(self, split):
        return 0


class LettersEnumerator(SplitEnumerator):
    def discover_splits(self):
        return [SourceSplit("abc"), SourceSplit("xyz")]

    def latest_offset(self, split, start_offset, max_records):
        return min(len(split.split_id), start_offset + max_records)

    def is_finished(self, split, offset):
        return offset == len(split.split_id)


class LettersReader(SourceReader):
    def read(self, split, start_offset, end_offset):
        for position in range(start_offset, end_offset):
            yield [split.split_id[position]], [position]


def read_all(source, max_records):
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    enumerator.start()
    reader.open(None)
    values = []
    for split in enumerator.discover_splits():
        offset = source.initial_offset(split)
        while not enumerator.is_finished(split, offset):
            end = enumerator.latest_offset(split, offset, max_records)
            for batch, timestamps in reader.read(split, offset, end):
                assert len(batch) == len(timestamps)
                values += batch
            offset = end
            enumerator.commit({split.split_id: offset})
    reader.close()
    enumerator.close()
    return values


@pytest.mark.parametrize("max_records", [1, 2, 100])
def test_a_source_needs_six_methods_and_gives_the_same_however_it_is_cut(max_records):
    assert read_all(pickle.loads(pickle.dumps(Letters())), max_records) == list("abcxyz")


def test_sources_are_bounded_unless_they_say_otherwise():
    class Endless(Letters):
        def get_boundedness(self):
            return Boundedness.CONTINUOUS_UNBOUNDED

    assert Letters().is_bounded
    assert not Endless().is_bounded


def test_splits_are_values():
    assert SourceSplit("a") == SourceSplit("a")
    assert pickle.loads(pickle.dumps(SourceSplit("a"))) == SourceSplit("a")
