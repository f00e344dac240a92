"""Features of the installed Spark. Penstock checks for the features that it uses, and does not compare versions."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from enum import Enum

import pyspark
from pyspark.sql import DataFrame

from penstock.common.errors import InvalidProgramError

__all__ = ["SparkMode", "check_spark_runs", "missing_for"]


class SparkMode(Enum):
    """How a job runs on Spark."""

    MICRO_BATCH = "micro-batch"
    CONTINUOUS = "continuous"
    BATCH = "batch"


def missing_for(mode: SparkMode) -> list[str]:
    """Return the features that this mode needs and the installed Spark lacks."""
    return [what for what, exists in _NEEDS[mode] if not exists()]


def check_spark_runs(mode: SparkMode, job_name: str) -> None:
    """Reject a job whose mode the installed Spark cannot run, before anything starts."""
    missing = missing_for(mode)
    if not missing:
        return
    advice = "install a newer pyspark"
    if mode is SparkMode.MICRO_BATCH and not missing_for(SparkMode.CONTINUOUS):
        advice = f"run it with penstock.execution.mode: continuous, which Spark {pyspark.__version__} can, or {advice}"
    elif mode is SparkMode.BATCH and not missing_for(SparkMode.CONTINUOUS):
        advice = f"run it as a streaming job with penstock.execution.mode: continuous, or {advice}"
    raise InvalidProgramError(
        f"job '{job_name}' cannot run in {mode.value} mode on Spark {pyspark.__version__}, which has no "
        f"{' and no '.join(missing)}: {advice}"
    )


def _has(module: str, name: str) -> Callable[[], bool]:
    def look() -> bool:
        try:
            return hasattr(importlib.import_module(module), name)
        except ImportError:
            return False

    return look


def _has_state_in_rows() -> bool:
    from pyspark import util

    return hasattr(getattr(util, "PythonEvalType", None), "SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF")


def _plans_from_offsets() -> bool:
    try:
        from pyspark.sql.datasource import DataSourceStreamReader
    except ImportError:
        return False
    return len(inspect.signature(DataSourceStreamReader.latestOffset).parameters) > 1


_SOURCES = ("data sources in Python", _has("pyspark.sql.datasource", "DataSource"))
_NEEDS: dict[SparkMode, list[tuple[str, Callable[[], bool]]]] = {
    SparkMode.MICRO_BATCH: [
        _SOURCES,
        ("data sources in Python that plan a batch from the end of the one before", _plans_from_offsets),
        ("transformWithState on rows of Python", _has_state_in_rows),
        ("messages of Python's state store", _has("pyspark.sql.streaming.proto.StateMessage_pb2", "StateRequest")),
    ],
    SparkMode.CONTINUOUS: [("barrier stages in Python", _has("pyspark", "BarrierTaskContext"))],
    SparkMode.BATCH: [_SOURCES, ("repartitionById", lambda: hasattr(DataFrame, "repartitionById"))],
}
