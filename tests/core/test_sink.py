import pytest

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.sink import Committer, Sink, SinkWriter, WriterInitContext


class Recorder(SinkWriter):
    def __init__(self):
        self.written = []

    def write(self, value, context):
        self.written.append((value, context.timestamp(), context.current_watermark()))


def test_a_batch_is_written_record_by_record_with_its_timestamps():
    writer = Recorder()
    writer.write_batch(["a", "b"], [1, None])
    writer.current_watermark = 5
    writer.write_batch(["c"], None)
    assert writer.written == [("a", 1, MIN_WATERMARK), ("b", None, MIN_WATERMARK), ("c", None, 5)]


def test_values_and_timestamps_must_match():
    with pytest.raises(ValueError):
        Recorder().write_batch(["a", "b"], [1])


def test_a_writer_must_define_one_way_of_writing():
    class Nothing(SinkWriter):
        pass

    class Batches(SinkWriter):
        def write_batch(self, values, timestamps):
            self.count = len(values)

    with pytest.raises(NotImplementedError, match="Nothing"):
        Nothing().write_batch(["a"], None)
    batches = Batches()
    batches.write_batch(["a"], None)
    assert batches.count == 1


def test_a_writer_needs_nothing_else():
    writer = Recorder()
    writer.begin(2)
    writer.flush(end_of_input=True)
    assert writer.prepare_commit() == []
    writer.close()


def test_a_sink_has_no_committer_unless_it_makes_one():
    class Plain(Sink):
        def create_writer(self, context):
            return Recorder()

    class Quiet(Committer):
        def commit(self, committables, checkpoint_id):
            pass

    assert Plain().create_committer() is None
    assert isinstance(Plain().create_writer(WriterInitContext(0, 1, 1)), SinkWriter)
    Quiet().close()


def test_contexts_do_not_share_their_options():
    one, two = WriterInitContext(0, 1, 1), WriterInitContext(0, 1, 1)
    one.options["a"] = 1
    assert two.options == {}
