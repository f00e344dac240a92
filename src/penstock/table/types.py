"""Data types, under PyFlink's names."""

from typing import TYPE_CHECKING

from penstock.common.types import Row, RowKind
from penstock.common.unsupported import refuse_missing_names
from penstock.core.table.types import *  # noqa: F403
from penstock.core.table.types import __all__ as _types

__all__ = [*_types, "Row", "RowKind"]  # noqa: PLE0604

if not TYPE_CHECKING:
    __getattr__ = refuse_missing_names(__name__)
