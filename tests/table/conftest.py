"""What tests of tables use: an environment of each mode, queries and their changelogs."""

from dataclasses import replace

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.relational import WatermarkRel
from penstock.table.plan.scope import Scope
from penstock.table.sql.parser import parse_expression
from penstock.table.table import Table
from penstock.testing import MiniCluster


def table_environment(parallelism=1, *, batch=False, **options):
    """Tables in this process; `options` are those of the mini cluster."""
    env = StreamExecutionEnvironment(executor=MiniCluster(**options))
    env.set_parallelism(parallelism)
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    t_env = StreamTableEnvironment.create(env, settings)
    t_env.get_config().set("table.local-time-zone", "UTC")
    return t_env


@pytest.fixture
def t_env():
    return table_environment()


@pytest.fixture
def batch_env():
    return table_environment(batch=True)


class Queries:
    """Runs SQL and gives changelogs as tuples ``(kind, value, ...)``."""

    def __init__(self, t_env):
        self.t_env = t_env

    def table(self, name, columns, *rows):
        """A view of rows."""
        self.t_env.create_temporary_view(name, self.t_env.from_elements(rows, columns))

    def changelog(self, query):
        result = self.t_env.execute_sql(query) if isinstance(query, str) else query.execute()
        with result.collect() as rows:
            return [(str(row.get_row_kind()), *row) for row in rows]

    def rows(self, query):
        """The rows of a query that only inserts."""
        changes = self.changelog(query)
        assert {kind for kind, *_ in changes} <= {"+I"}
        return [tuple(row) for _, *row in changes]

    def final(self, query):
        """What the changelog adds up to, sorted by text."""
        rows = []
        for kind, *row in self.changelog(query):
            if kind in ("+I", "+U"):
                rows.append(tuple(row))
            else:
                rows.remove(tuple(row))
        return sorted(rows, key=repr)

    def value(self, expression):
        """The value of an expression."""
        ((value,),) = self.rows(f"SELECT {expression}")
        return value


@pytest.fixture
def sql(t_env):
    return Queries(t_env)


@pytest.fixture
def batch(batch_env):
    return Queries(batch_env)


def timed(queries, name, columns, *rows, delay=0):
    """A view whose last column `ts` is the rowtime; watermarks are `delay` seconds behind."""
    t_env = queries.t_env
    t_env.create_temporary_view(f"{name}_raw", t_env.from_elements(rows, [*columns, "ts6"]))
    names = ", ".join(columns)
    relation = t_env.sql_query(f"SELECT {names}, CAST(ts6 AS TIMESTAMP(3)) AS ts FROM {name}_raw")._relation
    scope = Scope.of(relation.fields)
    expression = t_env.binder().bind(parse_expression(f"ts - INTERVAL '{delay}' SECOND"), scope)
    column = len(columns)
    fields = [
        replace(field, time=TimeAttribute.ROWTIME) if i == column else field for i, field in enumerate(relation.fields)
    ]
    t_env.create_temporary_view(name, Table(WatermarkRel(tuple(fields), relation, column, expression), t_env))
