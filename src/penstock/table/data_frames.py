"""Rows of a table as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.table.types import DataType

__all__ = ["data_frame"]

_DTYPES = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
}


def data_frame(rows: list[list[Any]], names: Sequence[str], types: Sequence[DataType]) -> Any:
    """Return a DataFrame whose columns of numbers are as wide as those of the table, unless they contain NULL."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=names)
    for name, type_ in zip(names, types, strict=True):
        dtype = _DTYPES.get(type_.root)
        if dtype is not None and not frame[name].isna().any():
            frame[name] = frame[name].astype(dtype)
    return frame
