"""Several INSERTs as one job (T125)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from penstock.table.table_result import TableResult
from penstock.util.exceptions import TableException

if TYPE_CHECKING:
    from penstock.table.table import Table
    from penstock.table.table_environment import Insert, TableEnvironment
    from penstock.table.table_pipeline import TablePipeline

__all__ = ["StatementSet"]


class StatementSet:
    """Collects INSERTs. They share their common scans."""

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env
        self._inserts: list[Insert] = []

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add a pipeline."""
        self._inserts.append(table_pipeline.insert)
        return self

    def add_insert(self, target_path_or_descriptor: Any, table: Table, overwrite: bool = False) -> StatementSet:
        """Add an INSERT of a table into another one."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT INTO statement."""
        self._inserts.append(self._t_env.parse_insert(stmt))
        return self

    def execute(self) -> TableResult:
        """Start the job. Afterwards the set is empty."""
        inserts = self._take()
        return self._t_env.execute_inserts(inserts)

    def attach_as_datastream(self) -> None:
        """Add the INSERTs to the next job of the stream environment."""
        self._t_env.attach(self._take())

    def explain(self, *extra_details: Any) -> str:
        """Return the plan of the job."""
        return self._t_env.explain_plans([(insert.relation, insert) for insert in self._inserts])

    def print_explain(self, *extra_details: Any) -> None:
        """Print the plan of the job."""
        sys.stdout.write(self.explain(*extra_details) + "\n")

    def _take(self) -> list[Insert]:
        inserts, self._inserts = self._inserts, []
        if not inserts:
            raise TableException("the statement set is empty: add an INSERT first")
        return inserts
