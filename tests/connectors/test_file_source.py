"""FileSource: every record once whatever the ranges, files in order, new files found, nothing that grows forever."""

import gzip
import json
import os
import pickle

import pytest
from crashing import Crashing
from support import collected

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, JobExecutionError, RecordFormatError, UserFunctionError
from penstock.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileSource,
    FileSplitAssignerProvider,
    StreamFormat,
)
from penstock.connectors.file_system.file_log import FileLog
from penstock.formats import file_format as file_formats
from penstock.formats.csv import CsvReaderFormat, CsvSchema
from penstock.formats.json import JsonReaderFormat
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.testing.mini_cluster import ManualClock

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
TEXT = StreamFormat.text_line_format()


def write(path, text, modified=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if modified is not None:
        os.utime(path, (modified, modified))
    return path


def read_all(source, step=1_000_000, parallelism=1):
    source = pickle.loads(pickle.dumps(source))
    enumerator, reader = source.create_enumerator(parallelism), source.create_reader()
    found = []
    for split in enumerator.discover_splits():
        offset = source.initial_offset(split)
        while not enumerator.is_finished(split, offset):
            end = enumerator.latest_offset(split, offset, step)
            assert end > offset
            for values, timestamps in reader.read(split, offset, end):
                assert timestamps is None
                found += values
            offset = end
    return found


def bounded(file_format, *paths):
    return FileSource.for_record_stream_format(file_format, *paths).build()


@pytest.mark.parametrize("charset", ["UTF-16", "UTF-16LE", "UTF-32", "cp037", "UTF-8-sig", "Shift_JIS"])
def test_lines_are_complete_in_any_character_set(tmp_path, charset, monkeypatch):
    """A byte that looks like the end of a line may be half of a character, and the end of a line two bytes."""
    monkeypatch.setattr(file_formats, "_BLOCK", 16)
    lines = [f"{number}: \u30bd" if charset == "Shift_JIS" else f"line {number}" for number in range(5_000)]
    path = write(tmp_path / "a", "\r\n".join(lines).encode(charset))
    assert read_all(bounded(StreamFormat.text_line_format(charset), path), step=3) == lines


def test_bytes_that_are_no_text_name_their_line_or_are_replaced(tmp_path):
    path = write(tmp_path / "a", b"good\n\xff bad\ngood\n")
    with pytest.raises(RecordFormatError, match=r"a: a line is not UTF-8.*\[message b'\\xff bad'\]"):
        read_all(bounded(TEXT, path))
    replacing = StreamFormat.text_line_format(errors="replace")
    assert read_all(bounded(replacing, path)) == ["good", "\ufffd bad", "good"]
    with pytest.raises(InvalidProgramError, match="bytes that are not text"):
        StreamFormat.text_line_format(errors="ignored")


@pytest.mark.parametrize("step", [1, 2, 5, 1_000])
def test_lines_are_complete_whatever_the_byte_ranges(tmp_path, step, monkeypatch):
    monkeypatch.setattr(file_formats, "_BYTES_PER_LINE", 1)
    monkeypatch.setattr(file_formats, "_BLOCK", 11)
    monkeypatch.setattr(file_formats.LineFormat, "split_units", 7)
    lines = ["first", "", "third is longer", "ä€", "last without newline"]
    write(tmp_path / "lines.txt", "\n".join(lines))
    assert read_all(bounded(TEXT, tmp_path / "lines.txt"), step) == lines


@pytest.mark.parametrize("step", [1, 3, 1_000])
def test_header_and_columns_of_csv_hold_for_every_range(tmp_path, step, monkeypatch):
    monkeypatch.setattr(file_formats, "_BYTES_PER_LINE", 3)
    monkeypatch.setattr(file_formats.LineFormat, "split_units", 13)
    write(tmp_path / "people.csv", 'age,name\n36,"Lovelace, Ada"\n#no comment,\n41,Alan\n')
    schema = CsvSchema.builder().add_string_column("name").add_string_column("age").set_use_header().build()
    rows = read_all(bounded(CsvReaderFormat.for_schema(schema), tmp_path / "people.csv"), step)
    assert [tuple(row) for row in rows] == [("Lovelace, Ada", "36"), ("", "#no comment"), ("Alan", "41")]
    assert rows[0].name == "Lovelace, Ada"


def test_files_are_read_in_the_order_of_their_modification_without_hidden_ones(tmp_path):
    for name, modified in {"b.txt": 100, "sub/c.txt": 50, "a.txt": 100, ".hidden": 1, "_tmp/x": 2}.items():
        write(tmp_path / name, name, modified)
    assert read_all(bounded(TEXT, tmp_path)) == ["sub/c.txt", "a.txt", "b.txt"]


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress)])
def test_compressed_files_are_one_split(tmp_path, suffix, compress):
    write(tmp_path / f"a.txt{suffix}", compress(b"one\ntwo\n" * 3_000))
    assert read_all(bounded(TEXT, tmp_path), step=1) == ["one", "two"] * 3_000


def test_json_lines_become_rows_or_dicts(tmp_path):
    write(tmp_path / "a.jsonl", '{"a": 1, "b": [true]}\n\n{"b": [], "a": null}\r\n')
    assert read_all(bounded(JsonReaderFormat(), tmp_path)) == [{"a": 1, "b": [True]}, {"b": [], "a": None}]
    kind = Types.ROW_NAMED(["a"], [Types.INT()])
    source = bounded(JsonReaderFormat(kind), tmp_path)
    assert source.get_produced_type() == kind
    assert [row.a for row in read_all(source)] == [1, None]


def test_broken_lines_name_file_and_line_or_are_left_out(tmp_path):
    write(tmp_path / "a.jsonl", '{"a": 1}\nbroken\n{"a": 2}\n')
    with pytest.raises(RecordFormatError, match=r"a\.jsonl.*broken"):
        read_all(bounded(JsonReaderFormat(), tmp_path))
    assert read_all(bounded(JsonReaderFormat(ignore_parse_errors=True), tmp_path)) == [{"a": 1}, {"a": 2}]
    schema = CsvSchema.builder().add_number_column("n").build()
    write(tmp_path / "c" / "a.csv", '1\n"open\n2\n')
    with pytest.raises(RecordFormatError, match=r"a\.csv"):
        read_all(bounded(CsvReaderFormat.for_schema(schema), tmp_path / "c"))
    tolerant = CsvReaderFormat.for_schema(schema, ignore_parse_errors=True)
    assert [row.n for row in read_all(bounded(tolerant, tmp_path / "c"))] == [1, 2]


def test_a_format_of_ones_own_reads_whole_files(tmp_path):
    class Words(StreamFormat):
        def read_file(self, stream):
            return stream.read().decode().split()

    write(tmp_path / "a", "to be or")
    source = FileSource.for_record_stream_format(Words(), tmp_path).build()
    (split,) = source.create_enumerator(1).discover_splits()
    assert [values for values, _ in source.create_reader().read(split, 0, 1)] == [["to", "be", "or"]]
    with pytest.raises(NotImplementedError, match="read_file"):
        list(StreamFormat().read(str(tmp_path / "a"), 0, 1))


def test_wrong_settings_are_refused_where_they_are_made(tmp_path):
    with pytest.raises(InvalidProgramError, match=r"file or directory .* does not exist"):
        bounded(TEXT, tmp_path / "nope")
    with pytest.raises(InvalidProgramError, match="needs the path"):
        FileSource.for_record_stream_format(TEXT)
    with pytest.raises(InvalidProgramError, match="BulkFormat"):
        FileSource.for_bulk_file_format(TEXT, tmp_path)
    with pytest.raises(InvalidProgramError, match="positive"):
        FileSource.for_record_stream_format(TEXT, tmp_path).monitor_continuously(Duration.of_millis(0))
    with pytest.raises(InvalidProgramError, match="character set"):
        StreamFormat.text_line_format("klingon")
    assert issubclass(BulkFormat, file_formats.FileFormat)


def test_a_file_that_must_not_be_split_is_one_split(tmp_path, monkeypatch):
    monkeypatch.setattr(file_formats.LineFormat, "split_units", 4)
    write(tmp_path / "a", "one\ntwo\nthree\n")
    builder = FileSource.for_record_stream_format(TEXT, tmp_path)
    builder.set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
    assert len(builder.build().create_enumerator(1).discover_splits()) == 4
    builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
    assert len(builder.build().create_enumerator(1).discover_splits()) == 1


# -- in a job ---------------------------------------------------------------------------------------------------------


class Collected:
    """Adds up what jobs deliver with their checkpoints: each one exactly once."""

    def __init__(self, source):
        self.source = source
        self.sinks = []

    def __call__(self, env):
        from penstock.connectors import CollectSink

        sink = CollectSink()
        self.sinks.append(sink)
        env.from_source(self.source, NO_WATERMARKS, "files").rebalance().map(_fail_on_boom).sink_to(sink)

    @property
    def records(self):
        return collected(*self.sinks)


BOOM = []


def _fail_on_boom(value):
    if value == "boom" and not BOOM:
        BOOM.append(value)
        raise RuntimeError("boom")
    return value


def test_a_crashed_job_goes_on_within_its_files(tmp_path, monkeypatch):
    BOOM.clear()
    monkeypatch.setattr(file_formats, "_BYTES_PER_LINE", 2)
    for number in range(5):
        write(tmp_path / "in" / f"{number}.txt", "".join(f"{number}-{line}\n" for line in range(4)) + "x\n", number + 1)
    write(tmp_path / "in" / "boom.txt", "boom\n", 4)
    collected = Collected(bounded(TEXT, tmp_path / "in"))
    assert Crashing(tmp_path, collected, max_records=6).run() == 1
    expected = [f"{number}-{line}" for number in range(5) for line in range(4)] + ["x"] * 5 + ["boom"]
    assert sorted(collected.records) == sorted(expected)


def test_files_that_come_later_do_not_concern_a_bounded_job_that_is_started_again(tmp_path):
    BOOM.clear()
    write(tmp_path / "in" / "a", "1\nboom\n", 1)
    write(tmp_path / "in" / "b", "2\n", 2)
    collected = Collected(bounded(TEXT, tmp_path / "in"))
    again = []

    def build(env):
        if again:
            write(tmp_path / "in" / "c", "not there when the job was started\n", 3)
        again.append(True)
        collected(env)

    assert Crashing(tmp_path, build).run() == 1
    assert sorted(collected.records) == ["1", "2", "boom"]


@pytest.fixture
def monitored(tmp_path):
    (tmp_path / "in").mkdir()

    def make(**options):
        builder = FileSource.for_record_stream_format(TEXT, tmp_path / "in")
        builder.monitor_continuously(Duration.of_millis(1))
        if options.pop("reread", False):
            builder.reread_modified_files()
        collected = Collected(builder.build())
        return collected, Crashing(tmp_path, collected, max_records=1_000, **options)

    return make


def run_until(job, condition):
    for _ in range(2_000):
        job.run()
        if condition():
            return
        with job.coordinator.changed:
            job.coordinator.changed.wait(0.002)
    raise AssertionError("it did not happen")


def test_new_files_are_found_and_each_is_read_once(tmp_path, monitored):
    collected, crashing = monitored()
    job = crashing.start()
    seen = []
    for round_ in range(3):
        write(tmp_path / "in" / f"{round_}.txt", f"line {round_}\n", 10 - round_)  # moved in: older than its elders
        run_until(job, lambda: seen.extend(collected.records) or len(seen) > round_)  # noqa: B023
    assert seen == ["line 0", "line 1", "line 2"]
    crashing.snapshot = job.snapshot()
    again = crashing.start()
    write(tmp_path / "in" / "last.txt", "last\n")
    run_until(again, lambda: seen.extend(collected.records) or len(seen) > 3)
    assert seen[3:] == ["last"]
    again.drain()


def test_a_file_that_changes_is_read_again_only_if_asked_for(tmp_path, monitored):
    for reread, expected in ((False, ["one", "stop"]), (True, ["one", "one", "two", "stop"])):
        collected, crashing = monitored(reread=reread)
        crashing.tmp_path = tmp_path / str(reread)
        file = write(tmp_path / "in" / "a", "one\n", 1)
        job = crashing.start()
        seen = []
        run_until(job, lambda: seen.extend(collected.records) or seen)  # noqa: B023
        write(file, "one\ntwo\n", 2)
        stop = write(tmp_path / "in" / "stop", "stop\n", 3)
        run_until(job, lambda: seen.extend(collected.records) or "stop" in seen)  # noqa: B023
        assert sorted(seen) == sorted(expected)
        job.drain()
        for path in (file, stop):
            path.unlink()


def test_what_is_appended_to_a_file_while_it_is_read_is_not_half_read(tmp_path, monitored):
    """A file has the length it was found with; a line that begins before that is read whole, and nothing twice."""
    collected, crashing = monitored(parallelism=1)
    crashing.max_records = 1
    lines = [f"{n} {'x' * 50}" for n in range(8)]
    file = write(tmp_path / "in" / "growing", "".join(f"{line}\n" for line in lines) + "torn", 1)
    job = crashing.start()
    seen = []
    while len(seen) < 2:
        assert job.run_batch()
        seen += collected.records
    assert len(seen) < 8
    with file.open("a") as end:
        end.write(" no more\n8\n9\n")
    write(tmp_path / "in" / "stop", "stop\n", 3)
    run_until(job, lambda: seen.extend(collected.records) or len(seen) > 9)
    job.drain()
    seen += collected.records
    assert sorted(seen) == sorted([*lines, "torn no more", "stop"])


def test_a_file_that_is_renamed_is_another_file_and_one_that_was_read_may_be_deleted(tmp_path, monitored):
    collected, crashing = monitored()
    first = write(tmp_path / "in" / "first", "one\n", 1)
    job = crashing.start()
    seen = []
    run_until(job, lambda: seen.extend(collected.records) or seen)
    first.rename(tmp_path / "in" / "second")
    run_until(job, lambda: seen.extend(collected.records) or len(seen) > 1)
    (tmp_path / "in" / "second").unlink()
    write(tmp_path / "in" / "third", "three\n", 3)
    run_until(job, lambda: seen.extend(collected.records) or len(seen) > 2)
    crashing.snapshot = job.snapshot()
    again = crashing.start()
    write(tmp_path / "in" / "last", "last\n", 4)
    run_until(again, lambda: seen.extend(collected.records) or len(seen) > 3)
    again.drain()
    assert seen == ["one", "one", "three", "last"]


def test_the_checkpoint_and_the_clocks_do_not_grow_with_the_files_that_were_read(tmp_path, monitored):
    collected, crashing = monitored()
    job = crashing.start()
    seen, sizes = [], []
    for number in range(30):
        write(tmp_path / "in" / f"{number}", f"{number}\n")
        run_until(job, lambda: seen.extend(collected.records) or len(seen) > number)  # noqa: B023
        job.run()
        sizes.append((len(json.dumps(job.offset.to_json())), len(job.snapshot())))
    assert [int(value) for value in seen] == list(range(30))
    (source,) = job.offset.splits.values()
    assert len(source) <= 2
    (coordinated,) = job.coordinator.sources
    assert len(coordinated.splits) <= 2
    assert len(coordinated.last_active) <= 2
    for stage in job.engine.stages.values():
        for task in stage._tasks.values():
            assert len(task.clocks.snapshot()[3]) <= 2
    assert sizes[-1][0] <= sizes[2][0] + 50
    assert sizes[-1][1] <= sizes[2][1] + 200


def test_without_a_place_to_remember_finished_files_the_checkpoint_does_it(tmp_path, monitored):
    collected, crashing = monitored()
    write(tmp_path / "in" / "a", "a\n")
    crashing.tmp_path = None
    cluster_job = _start_without_directory(crashing)
    seen = []
    run_until(cluster_job, lambda: seen.extend(collected.records) or seen)
    write(tmp_path / "in" / "b", "b\n")
    run_until(cluster_job, lambda: seen.extend(collected.records) or len(seen) > 1)
    crashing.snapshot = cluster_job.snapshot()
    again = _start_without_directory(crashing)
    write(tmp_path / "in" / "c", "c\n")
    run_until(again, lambda: seen.extend(collected.records) or len(seen) > 2)
    assert seen == ["a", "b", "c"]


def _start_without_directory(crashing):
    from penstock.datastream import StreamExecutionEnvironment
    from penstock.testing import MiniCluster

    cluster = MiniCluster(max_records=1_000)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
    crashing.build(env)
    return cluster.start(env.sinks, env.job_settings(None), snapshot=crashing.snapshot)


def test_event_time_does_not_end_with_a_file_when_others_may_follow(tmp_path):
    (tmp_path / "in").mkdir()
    builder = FileSource.for_record_stream_format(TEXT, tmp_path / "in").monitor_continuously(Duration.of_millis(1))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Stamp())
    sinks = []

    def build(env):
        from penstock.connectors import CollectSink
        from penstock.datastream import KeyedProcessFunction, RuntimeContext  # noqa: F401

        class Show(KeyedProcessFunction):
            def process_element(self, value, ctx):
                yield value, ctx.timer_service().current_watermark()

        sinks.append(CollectSink())
        env.from_source(builder.build(), strategy, "files").key_by(lambda value: 0).process(Show()).sink_to(sinks[-1])

    job = Crashing(tmp_path, build, max_records=1_000).start()
    seen = []

    def collect():
        while not sinks[0].records.empty():
            seen.extend(sinks[0].records.get_nowait())
        return len(seen)

    write(tmp_path / "in" / "a", "10\n20\n", 1)
    run_until(job, lambda: collect() == 2)
    write(tmp_path / "in" / "b", "30\n", 2)
    run_until(job, lambda: collect() == 3)
    assert seen[2] == ("30", 19)  # the clock stands where the first file left it, not at its end
    job.drain()


class _Stamp:
    def extract_timestamp(self, value, record_timestamp):
        return int(value)


def test_a_file_that_vanishes_before_it_is_read_is_a_clear_error(tmp_path):
    path = write(tmp_path / "in" / "a", "one\n")
    collected = Collected(bounded(TEXT, tmp_path / "in"))
    job = Crashing(tmp_path, collected).start()
    job.coordinator.plan(job.offset)
    path.unlink()
    with pytest.raises((JobExecutionError, UserFunctionError), match="failed reading split"):
        job.run()


def test_the_file_log_survives_a_torn_line_and_forgets_what_is_gone(tmp_path, monkeypatch):
    from penstock.connectors.file_system import file_log

    log = FileLog(str(tmp_path))
    log.take("a", 1, 10)
    log.take("b", 2, 20)
    log.finish({"a": ["a@1@0-10"]})
    with (tmp_path / "files.log").open("a") as file:
        file.write('["c", 3')
    again = FileLog(str(tmp_path))
    assert {path: file.done for path, file in again.files.items()} == {"a": {"a@1@0-10"}, "b": set()}
    again.take("d", 4, 40)  # stands on a line of its own
    assert set(FileLog(str(tmp_path)).files) == {"a", "b", "d"}
    monkeypatch.setattr(file_log, "_COMPACT_AFTER", 0)
    again.drop(["b", "d"])
    assert len((tmp_path / "files.log").read_text().splitlines()) == 2
    assert set(FileLog(str(tmp_path)).files) == {"a"}


def test_a_clock_by_hand_decides_when_directories_are_listed(tmp_path):
    clock = ManualClock(1)
    from penstock.connectors.file_system.enumerator import FileEnumerator

    enumerator = FileEnumerator([str(tmp_path)], TEXT, 1, interval=10, clock=clock)
    assert enumerator.discover_splits() == []
    write(tmp_path / "a", "x")
    assert enumerator.discover_splits() == []
    clock.advance(10)
    assert len(enumerator.discover_splits()) == 1


def test_a_savepoint_takes_the_files_along_that_only_the_source_remembers(tmp_path, monitored):
    collected, crashing = monitored()
    job = crashing.start()
    seen = []
    for number in range(3):
        write(tmp_path / "in" / f"{number}", f"{number}\n", number + 1)
        run_until(job, lambda: seen.extend(collected.records) or len(seen) > number)  # noqa: B023
    location = job.savepoint(str(tmp_path / "savepoints"))
    (source,) = read_manifest(location).sources.values()
    assert len(source["splits"]) == 3
    write(tmp_path / "in" / "3", "3\n", 4)
    run_until(job, lambda: seen.extend(collected.records) or len(seen) > 3)
    (positions,) = job.offset.splits.values()
    assert len(positions) <= 1  # forgotten again
    crashing.tmp_path = tmp_path / "another"
    again = crashing.start(savepoint=location)
    later = []
    run_until(again, lambda: later.extend(collected.records) or later)
    assert later == ["3"]
