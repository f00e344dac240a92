"""Data types, under PyFlink's names."""

from penstock.common.types import Row, RowKind
from penstock.core.table.types import *  # noqa: F403
from penstock.core.table.types import __all__ as _types

__all__ = [*_types, "Row", "RowKind"]  # noqa: PLE0604
