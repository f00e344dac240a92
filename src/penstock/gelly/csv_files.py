"""Graphs from CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from penstock.common.errors import InvalidProgramError
from penstock.gelly.environment import ExecutionEnvironment
from penstock.gelly.partitions import CollectionsEngine

_KINDS = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def read_csv(
    env: ExecutionEnvironment,
    path: str,
    columns: Mapping[str, type | None],
    delimiter: str,
    *,
    skip_first_line: bool,
) -> Any:
    """Return the lines of a file, or of all files of a directory, as a local table or a DataFrame."""
    wanted = {name: kind for name, kind in columns.items() if kind is not None}
    wrong = [kind for kind in wanted.values() if kind not in _KINDS]
    if wrong:
        raise InvalidProgramError(f"CSV files do not support the type {wrong[0]!r}: use int, float, str or bool")
    if not isinstance(env.engine, CollectionsEngine):
        from penstock.spark.arrow_partitions import read_csv_files

        return read_csv_files(env.engine, path, wanted, delimiter, skip_first_line=skip_first_line)
    files = sorted(Path(path).iterdir()) if Path(path).is_dir() else [Path(path)]
    return pa.concat_tables([_read(file, wanted, delimiter, skip_first_line) for file in files])


def _read(file: Path, wanted: Mapping[str, type], delimiter: str, skip_first_line: bool) -> Any:
    try:
        return pc.read_csv(
            file,
            read_options=pc.ReadOptions(column_names=list(wanted), skip_rows=int(skip_first_line)),
            parse_options=pc.ParseOptions(delimiter=delimiter),
            convert_options=pc.ConvertOptions(column_types={name: _KINDS[kind] for name, kind in wanted.items()}),
        )
    except pa.ArrowInvalid as error:
        raise InvalidProgramError(
            f"{file} does not have the columns {', '.join(wanted)} with the given types: {error}"
        ) from None
