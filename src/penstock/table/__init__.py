"""Table API and SQL, under the names of ``pyflink.table``.

>>> from penstock.table import EnvironmentSettings
>>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
False
"""

from penstock.common.types import Row, RowKind
from penstock.core.table.functions import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
)
from penstock.core.table.types import DataTypes
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.data_view import DataView, ListView, MapView
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.explain_detail import ExplainDetail
from penstock.table.expression import Expression
from penstock.table.module import Module, ModuleEntry
from penstock.table.result_kind import ResultKind
from penstock.table.schema import Schema
from penstock.table.sql_dialect import SqlDialect
from penstock.table.statement_set import StatementSet
from penstock.table.table import GroupedTable, Table
from penstock.table.table_config import TableConfig
from penstock.table.table_descriptor import FormatDescriptor, TableDescriptor
from penstock.table.table_environment import StreamTableEnvironment, TableEnvironment
from penstock.table.table_pipeline import TablePipeline
from penstock.table.table_result import TableResult
from penstock.table.table_schema import TableSchema
from penstock.table.windowed_table import GroupWindowedTable, OverWindowedTable, WindowGroupedTable

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "ChangelogMode",
    "DataTypes",
    "DataView",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupWindowedTable",
    "GroupedTable",
    "ListView",
    "MapView",
    "Module",
    "ModuleEntry",
    "OverWindowedTable",
    "ResultKind",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "SqlDialect",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "WindowGroupedTable",
]
