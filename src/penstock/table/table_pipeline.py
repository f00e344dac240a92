"""Pipelines: INSERTs of a table into another one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from penstock.table.table_result import TableResult

if TYPE_CHECKING:
    from penstock.table.table import Table
    from penstock.table.table_environment import TableEnvironment

__all__ = ["TablePipeline"]


class TablePipeline:
    """An INSERT that is not executed yet."""

    def __init__(self, table: Table, target: Any, t_env: TableEnvironment, *, overwrite: bool = False) -> None:
        self._table = table
        self._t_env = t_env
        self.insert = t_env.insert_into(table._relation, target, overwrite=overwrite)

    def execute(self) -> TableResult:
        """Start the job. It runs while the program continues."""
        return self._t_env.execute_inserts([self.insert])

    def explain(self, *extra_details: Any) -> str:
        """Return the plan of the job."""
        return self._t_env.explain_plans([(self._table._relation, self.insert)])

    def print_explain(self, *extra_details: Any) -> None:
        """Print the plan of the job."""
        sys.stdout.write(self.explain(*extra_details) + "\n")

    def get_sink_identifier(self) -> Any:
        """Return the path of the target table."""
        return self.insert.path
