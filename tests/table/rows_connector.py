"""A connector for tests: a source of given changes and a sink that keeps what it gets.

    ROWS["orders"] = [("+I", 1, "a"), ("-D", 1, "a")]
    CREATE TABLE orders (id INT, v STRING) WITH ('connector' = 'test-rows', 'name' = 'orders')

`mode` is what the sink accepts (insert, upsert, all), or upsert for a source whose changes come without -U.
"""

from typing import ClassVar

import pyarrow as pa

from penstock.core.sink import Sink, SinkWriter
from penstock.core.table.arrow import to_column
from penstock.runtime.table.batch import ColumnBatch
from penstock.table.connectors.base import ConnectorFactory, TableSink, TableSource, connector
from penstock.table.connectors.values import ValuesSource
from penstock.table.plan.nodes.base import ALL_CHANGES, INSERT_ONLY, schema_of

KINDS = ("+I", "-U", "+U", "-D")
ROWS = {}
RESULTS = {}


class RowsSource(TableSource):
    parallel = False

    def __init__(self, table):
        self._fields = table.fields
        self._rows = ROWS[table.option("name")]
        self.changelog = ALL_CHANGES if any(kind != "+I" for kind, *_ in self._rows) else INSERT_ONLY
        self.upsert = table.option("mode") == "upsert"

    def create(self):
        columns = list(zip(*(row[1:] for row in self._rows), strict=True)) or [()] * len(self._fields)
        arrays = [to_column(list(column), one.type) for column, one in zip(columns, self._fields, strict=True)]
        kinds = pa.array([KINDS.index(kind) for kind, *_ in self._rows], pa.int8())
        return ValuesSource(ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=schema_of(self._fields)), kinds))


class _Keep(Sink):
    def __init__(self, name):
        self._name = name

    def create_writer(self, context):
        return _Writer(self._name)


class _Writer(SinkWriter):
    def __init__(self, name):
        self._name = name

    def write_batch(self, values, timestamps):
        RESULTS.setdefault(self._name, []).extend((KINDS[kind], *row) for kind, row in values.rows())


class RowsSink(TableSink):
    def __init__(self, table):
        self._name = table.option("name")
        self.accepts = table.option("mode", "all")
        RESULTS.pop(self._name, None)

    def create(self):
        return _Keep(self._name)


@connector("test-rows")
class RowsFactory(ConnectorFactory):
    options: ClassVar = {"name": None, "mode": None}

    def source(self, table):
        return RowsSource(table)

    def sink(self, table):
        return RowsSink(table)
