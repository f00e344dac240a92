"""The entry point of table programs: names, statements, execution (T1 to T7).

This module imports one module for each group of methods: catalogs, statements, execution, bridges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.configuration import Configuration
from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.types import Row, RowKind
from penstock.connectors.sinks import CollectSink
from penstock.core.table.types import DataType, DataTypes
from penstock.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.collect import CloseableIterator as JobRows
from penstock.graph.transformation import SinkTransformation
from penstock.table.catalog import Catalog
from penstock.table.catalog_manager import CatalogManager, TableEntry, ViewEntry
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.connectors.base import ResolvedTable, TableSink
from penstock.table.elements import table_of_elements
from penstock.table.environment_objects import ObjectsOfEnvironment, parse_path
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.plan import build
from penstock.table.plan.bind import Binder
from penstock.table.plan.exec.sink import translate_collect, translate_sink
from penstock.table.plan.explain import explain
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.planner import Planner
from penstock.table.plan.tables import TableResolver, check_insert
from penstock.table.resolved_schema import ResolvedSchema, resolved_schema
from penstock.table.result_kind import ResultKind
from penstock.table.schema import Schema
from penstock.table.statement_set import StatementSet
from penstock.table.stream_bridge import schema_and_names, stream_relation, table_stream, values_of
from penstock.table.table import Table
from penstock.table.table_config import TableConfig
from penstock.table.table_descriptor import TableDescriptor
from penstock.table.table_result import TableResult
from penstock.util.exceptions import ValidationException

__all__ = ["StreamTableEnvironment", "TableEnvironment", "parse_path"]


@dataclass(frozen=True, slots=True)
class Insert:
    """A query and the table it writes to."""

    relation: Rel
    sink: TableSink
    table: ResolvedTable
    path: str


class TableEnvironment(ObjectsOfEnvironment):
    """Creates tables, manages names and options, and runs statements."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self._env = env
        self._settings = settings
        self._batch = not settings.is_streaming_mode()
        self._config = TableConfig()
        self.catalogs = CatalogManager()
        self._config.attach(env)
        self._config.add_configuration(settings.get_configuration())
        self._unnamed = 0

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration | None = None) -> TableEnvironment:
        """Create a separate environment."""
        if isinstance(environment_settings, Configuration):
            environment_settings = EnvironmentSettings.new_instance().with_configuration(environment_settings).build()
        settings = environment_settings or EnvironmentSettings.in_streaming_mode()
        env = StreamExecutionEnvironment.get_execution_environment()
        return TableEnvironment(env, settings)

    # Tables

    def from_elements(
        self, elements: Iterable[Any], schema: DataType | Sequence[str] | None = None, verify_schema: bool = True
    ) -> Table:
        """Create a table of Python values: rows as tuples, lists, dicts or Rows (T22)."""
        return Table(table_of_elements(elements, schema, self._config.get_local_timezone()), self)

    def from_path(self, path: str) -> Table:
        """Return a table or view by its name."""
        return Table(self.relation_of(parse_path(path)), self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Create a table without a name."""
        return Table(self.resolver().scan(self._anonymous(), _entry(descriptor)), self)

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Register a table under a name, as long as the environment lives."""
        table = table_or_data_stream
        if not isinstance(table, Table):
            table = self._table_of_stream(table_or_data_stream, *fields_or_schema)
        self.catalogs.create(parse_path(view_path), ViewEntry(table._relation), temporary=True)

    def create_unnamed_view(self, table: Table) -> str:
        """Register a table under a new name, and return it."""
        self._unnamed += 1
        name = f"UnnamedTable${self._unnamed}"
        self.create_temporary_view(name, table)
        return name

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool | None = False) -> bool:
        """Register a table under a name in the catalog."""
        entry = ViewEntry(table._relation)
        return self.catalogs.create(
            parse_path(view_path), entry, temporary=False, ignore_if_exists=bool(ignore_if_exists)
        )

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool | None = False,  # noqa: N803 - PyFlink's name
    ) -> None:
        """Create a table of a connector, as long as the environment lives."""
        self.catalogs.create(
            parse_path(path), _entry(descriptor), temporary=True, ignore_if_exists=bool(ignoreIfExists)
        )

    def create_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool | None = False,  # noqa: N803 - PyFlink's name
    ) -> bool:
        """Create a table of a connector in the catalog."""
        return self.catalogs.create(
            parse_path(path), _entry(descriptor), temporary=False, ignore_if_exists=bool(ignoreIfExists)
        )

    def drop_temporary_table(self, table_path: str) -> bool:
        return self.catalogs.drop(parse_path(table_path), "TABLE", temporary=True, if_exists=True)

    def drop_temporary_view(self, view_path: str) -> bool:
        return self.catalogs.drop(parse_path(view_path), "VIEW", temporary=True, if_exists=True)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        exists = bool(ignore_if_not_exists)
        return self.catalogs.drop(parse_path(table_path), "TABLE", temporary=False, if_exists=exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        exists = bool(ignore_if_not_exists)
        return self.catalogs.drop(parse_path(view_path), "VIEW", temporary=False, if_exists=exists)

    # Functions

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Register a function under a name without a catalog."""
        from penstock.table.udf import as_function

        self.catalogs.system_functions[name.lower()] = as_function(function, name)

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Register a function in the current database, as long as the environment lives."""
        from penstock.table.udf import as_function

        *prefix, name = parse_path(path)
        full = self.catalogs.qualify((*prefix, name.lower()))
        self.catalogs.temporary_functions[full] = as_function(function, name)

    def drop_temporary_system_function(self, name: str) -> bool:
        return self.catalogs.system_functions.pop(name.lower(), None) is not None

    def drop_temporary_function(self, path: str) -> bool:
        *prefix, name = parse_path(path)
        full = self.catalogs.qualify((*prefix, name.lower()))
        return self.catalogs.temporary_functions.pop(full, None) is not None

    # Names

    def list_catalogs(self) -> list[str]:
        return sorted(self.catalogs.catalogs)

    def list_databases(self) -> list[str]:
        return sorted(self.catalogs.catalogs[self.catalogs.current_catalog].databases)

    def list_tables(self) -> list[str]:
        """Return the tables and views of the current database."""
        return self.catalogs.names()

    def list_views(self) -> list[str]:
        return self.catalogs.names(lambda entry: isinstance(entry, ViewEntry))

    def list_temporary_tables(self) -> list[str]:
        return self.catalogs.names(lambda entry: isinstance(entry, TableEntry), temporary=True)

    def list_temporary_views(self) -> list[str]:
        return self.catalogs.names(lambda entry: isinstance(entry, ViewEntry), temporary=True)

    def list_user_defined_functions(self) -> list[str]:
        catalogs = self.catalogs
        names = {*catalogs.system_functions, *(path[2] for path in catalogs.temporary_functions)}
        return sorted(names | set(catalogs.database(catalogs.current_catalog, catalogs.current_database).functions))

    def list_functions(self) -> list[str]:
        """Return all functions, built-in and user-defined."""
        from penstock.runtime.table.aggregates.registry import aggregate_names
        from penstock.runtime.table.functions.registry import scalar_function_names

        built_in = {name.lower() for name in (*scalar_function_names(), *aggregate_names()) if name[0] != "$"}
        return sorted(built_in | set(self.list_user_defined_functions()))

    def get_current_catalog(self) -> str:
        return self.catalogs.current_catalog

    def get_current_database(self) -> str:
        return self.catalogs.current_database

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """Return a catalog, or None if it does not exist."""
        found = self.catalogs.catalogs.get(catalog_name)
        return None if found is None else Catalog(catalog_name, found)

    def use_catalog(self, catalog_name: str) -> None:
        self.catalogs.use_catalog(catalog_name)

    def use_database(self, database_name: str) -> None:
        self.catalogs.use_database(database_name)

    # SQL

    def sql_query(self, query: str) -> Table:
        """Create a table from a query. The query is checked at once and runs later (T3)."""
        from penstock.table.sql.statements import parse_query

        return Table(parse_query(query, self), self)

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement (T2)."""
        from penstock.table.sql.statements import execute

        return execute(stmt, self)

    def explain_sql(self, stmt: str, *extra_details: Any) -> str:
        """Return the plan of a query or an INSERT."""
        from penstock.table.sql.statements import explain_statement

        return explain_statement(stmt, self)

    def create_statement_set(self) -> StatementSet:
        """Create a set of INSERTs that run as one job."""
        return StatementSet(self)

    # Settings

    def get_config(self) -> TableConfig:
        return self._config

    def add_python_file(self, file_path: str) -> None:
        self._env.add_python_file(file_path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        self._env.add_python_archive(archive_path, target_dir)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        self._env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    # Names, internal

    def binder(self) -> Binder:
        return Binder(self.catalogs.find_function)

    def resolver(self) -> TableResolver:
        return TableResolver(self.binder(), _parse_expression, _parse_type)

    def relation_of(self, path: tuple[str, ...], hints: dict[str, str] | None = None) -> Rel:
        entry = self.catalogs.find(path)
        if entry is None:
            full = ".".join(self.catalogs.qualify(path))
            raise ValidationException(f"Table `{full}` was not found.")
        if isinstance(entry, ViewEntry):
            return entry.relation
        if hints:
            entry = self.catalogs.with_options(entry, hints)
        return self.resolver().scan(".".join(self.catalogs.qualify(path)), entry)

    def _anonymous(self) -> str:
        self._unnamed += 1
        return f"*anonymous_{self._unnamed}*"

    def _table_of_stream(self, stream: Any, *fields_or_schema: Any) -> Table:
        raise ValidationException(f"a view needs a Table, got {stream!r}: use a StreamTableEnvironment for streams")

    # Execution

    @property
    def is_batch(self) -> bool:
        """Whether queries return only final results."""
        return self._batch

    def _planner(self) -> Planner:
        settings = self._config.planner_settings(batch=self._batch)
        settings.database = self.catalogs.current_database
        return Planner(self._env, settings)

    def execute_query(self, relation: Rel) -> TableResult:
        sink = CollectSink()
        transformation = translate_collect(self._planner(), relation, sink)
        rows: JobRows[Row] = JobRows(sink)
        client = self._submit([transformation], "collect")
        rows.attach(client)
        return TableResult(
            resolved_schema(relation),
            ResultKind.SUCCESS_WITH_CONTENT,
            rows,
            client,
            streaming=not self._batch,
            time_zone=self._config.get_local_timezone(),
        )

    def insert_into(
        self,
        relation: Rel,
        target: Any,
        *,
        columns: Sequence[str] | None = None,
        partition: dict[str, Any] | None = None,
        hints: dict[str, str] | None = None,
        overwrite: bool = False,
    ) -> Insert:
        """Check that a query fits a table, and convert its columns."""
        if isinstance(target, TableDescriptor):
            entry, name = _entry(target), self._anonymous()
        else:
            path = parse_path(target) if isinstance(target, str) else target
            found = self.catalogs.find(path)
            name = ".".join(self.catalogs.qualify(path))
            if found is None:
                raise ValidationException(f"Sink `{name}` does not exist: a table of that name was not found.")
            if not isinstance(found, TableEntry):
                raise ValidationException(f"'{name}' is a view: INSERT needs a table")
            entry = self.catalogs.with_options(found, hints) if hints else found
        sink, table, wanted = self.resolver().sink(name, entry)
        if columns is not None or partition:
            relation = build.by_name(relation, [(one.name, one.type) for one in wanted], columns, partition or {})
        check_insert(relation, wanted, name)
        relation = build.cast_columns(relation, [one.type for one in wanted], [one.name for one in wanted])
        return Insert(relation, sink, table, name)

    def parse_insert(self, stmt: str) -> Insert:
        from penstock.table.sql.statements import parse_insert

        return parse_insert(stmt, self)

    def _sinks(self, inserts: Sequence[Insert]) -> list[SinkTransformation]:
        planner = self._planner()
        return [translate_sink(planner, one.relation, one.sink, one.path, one.table) for one in inserts]

    def execute_inserts(self, inserts: Sequence[Insert]) -> TableResult:
        name = f"insert-into_{','.join(insert.path for insert in inserts)}"
        client = self._submit(self._sinks(inserts), name)
        names = [insert.path for insert in inserts]
        schema = ResolvedSchema.physical(names, [DataTypes.BIGINT() for _ in names])
        rows = [Row(*([-1] * len(names)))]
        return TableResult(schema, ResultKind.SUCCESS_WITH_CONTENT, rows, client, affected=True)

    def attach(self, inserts: Sequence[Insert]) -> None:
        for sink in self._sinks(inserts):
            self._env.register_sink(sink)

    def _submit(self, sinks: Sequence[SinkTransformation], default_name: str) -> Any:
        """Run a job of these sinks only. Those of the stream environment wait for its own execution."""
        env = self._env
        waiting = env.take_sinks()
        before = env.get_runtime_mode()
        env.set_runtime_mode(RuntimeExecutionMode.BATCH if self._batch else RuntimeExecutionMode.STREAMING)
        try:
            for sink in sinks:
                env.register_sink(sink)
            return env.execute_async(self._config.get("pipeline.name", default_name))
        finally:
            env.set_runtime_mode(before)
            env.take_sinks()
            for transformation in waiting:
                assert isinstance(transformation, SinkTransformation)
                env.register_sink(transformation)

    def explain_plans(self, plans: Sequence[tuple[Rel, Insert | None]]) -> str:
        return explain(
            self._planner(), [(relation, None if insert is None else insert.path) for relation, insert in plans]
        )


class StreamTableEnvironment(TableEnvironment):
    """A table environment for a stream environment. It converts between tables and streams."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Create an environment that shares settings and executor with a stream environment (T1)."""
        env = stream_execution_environment
        if env is None:
            env = StreamExecutionEnvironment.get_execution_environment()
        if not isinstance(env, StreamExecutionEnvironment):
            raise InvalidProgramError(f"create() takes a StreamExecutionEnvironment, got {env!r}")
        settings = environment_settings
        if settings is None:
            batch = env.get_runtime_mode() is RuntimeExecutionMode.BATCH
            settings = EnvironmentSettings(streaming=not batch)
        return StreamTableEnvironment(env, settings)

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """Convert a stream of inserts to a table. A Schema may add columns, `rowtime` and a watermark (T111)."""
        return self._table_of_stream(data_stream, *fields_or_schema)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """Convert a stream of Rows with row kinds to a table (T112)."""
        mode = changelog_mode or ChangelogMode.all()
        return Table(stream_relation(data_stream, schema, mode, self.resolver(), self._anonymous()), self)

    def to_data_stream(self, table: Table) -> DataStream:
        """Convert an insert-only table to a stream of Rows (T110)."""
        return table_stream(self._planner(), self._env, table._relation, ChangelogMode.insert_only())

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream:
        """Convert a table to a stream of Rows with row kinds (T110)."""
        relation = table._relation
        if target_schema is not None and target_schema.columns:
            wanted = self.resolver().schema(target_schema).columns
            relation = build.cast_columns(relation, [one.type for one in wanted], [one.name for one in wanted])
        return table_stream(self._planner(), self._env, relation, changelog_mode or ChangelogMode.all())

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Convert an insert-only table to a stream of rows or tuples of a type, field by field."""
        return self.to_data_stream(table).map(values_of(type_info), type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Convert a table to a stream of ``(True, added)`` and ``(False, removed)``."""
        values = values_of(type_info)
        kept = (RowKind.INSERT, RowKind.UPDATE_AFTER)
        changes = self.to_changelog_stream(table)
        flag_and_row = Types.TUPLE([Types.BOOLEAN(), type_info])
        return changes.map(lambda row: (row.get_row_kind() in kept, values(row)), flag_and_row)

    def _table_of_stream(self, stream: Any, *fields_or_schema: Any) -> Table:
        if not isinstance(stream, DataStream):
            raise ValidationException(f"expected a DataStream, got {stream!r}")
        schema, names = schema_and_names(fields_or_schema)
        mode = ChangelogMode.insert_only()
        table = Table(stream_relation(stream, schema, mode, self.resolver(), self._anonymous()), self)
        return table.alias(names[0], *names[1:]) if names else table


def _entry(descriptor: TableDescriptor) -> TableEntry:
    return TableEntry(
        descriptor.get_schema() or Schema(),
        descriptor.get_options(),
        tuple(descriptor.get_partition_keys()),
        descriptor.get_comment(),
    )


def _parse_expression(text: str) -> Any:
    from penstock.table.sql.parser import parse_expression

    return parse_expression(text)


def _parse_type(text: str) -> DataType:
    from penstock.table.type_text import parse_type

    return parse_type(text)
