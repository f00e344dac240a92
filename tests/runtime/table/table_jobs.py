"""Table operators in jobs that are put together by hand, for tests of the runtime without the Table API."""

import pyarrow as pa

from penstock.connectors.ranges import RangeEnumerator, range_split
from penstock.connectors.sinks import CollectSink
from penstock.core.source import Source, SourceReader
from penstock.graph.transformation import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
)
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.table.aggregates.numeric import CountAggregate, SumAggregate
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.operators.group_agg import AggregateCall, GroupAggFunction
from penstock.runtime.table.partitioner import ColumnHashPartitioner
from penstock.testing.table_harness import KINDS


class RowsSource(Source):
    """Rows ``(key, value)`` in columns, in one split."""

    def __init__(self, rows):
        self.rows = rows

    def create_enumerator(self, parallelism):
        return RangeEnumerator([range_split(0, len(self.rows))])

    def create_reader(self):
        return RowsReader(self.rows)

    def initial_offset(self, split):
        return 0


class RowsReader(SourceReader):
    def __init__(self, rows):
        self.rows = rows

    def read(self, split, start_offset, end_offset):
        keys, values = zip(*self.rows[start_offset:end_offset], strict=True)
        yield ColumnBatch(pa.record_batch({"k": pa.array(keys), "v": pa.array(values, pa.int64())})), None


class ChangelogSink(CollectSink):
    """Collects rows as ``(kind, value, ...)``."""

    def create_writer(self, context):
        writer = super().create_writer(context)
        write_batch = writer.write_batch

        def write_columns(values, timestamps):
            write_batch([(KINDS[kind], *row) for kind, row in values.rows()], None)

        writer.write_batch = write_columns
        return writer


def sums_by_key(env, rows):
    """SELECT k, SUM(v), COUNT(*) FROM rows GROUP BY k; the sink that collects the changelog."""
    source = SourceTransformation(name="Source: rows", source=RowsSource(rows), parallelism=1, uid="rows")
    exchange = PartitionTransformation(name="Exchange", input=source, partitioner=ColumnHashPartitioner([0]))
    long = pa.int64()
    schema = pa.schema([("k", pa.string()), ("s", long), ("n", long)])
    calls = [AggregateCall(SumAggregate(long, long), [1]), AggregateCall(CountAggregate(), [])]
    aggregate = OneInputTransformation(
        name="GroupAggregate", input=exchange, operator=GroupAggFunction([0], calls, schema), uid="sums"
    )
    sink = ChangelogSink()
    env.register_sink(SinkTransformation(name="Sink", input=aggregate, operator=SinkOperator(sink)))
    return sink


def final_table(changelog):
    """What a changelog adds up to."""
    counts = {}
    for kind, *row in changelog:
        counts[tuple(row)] = counts.get(tuple(row), 0) + (1 if kind in ("+I", "+U") else -1)
    assert all(count in (0, 1) for count in counts.values())
    return sorted(row for row, count in counts.items() if count)
