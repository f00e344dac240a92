"""The exceptions of tables and catalogs, under PyFlink's names."""

# ruff: noqa: N818 - PyFlink's names
from __future__ import annotations

from penstock.common.errors import PenstockError

__all__ = [
    "CatalogException",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "FunctionAlreadyExistException",
    "FunctionNotExistException",
    "ModelAlreadyExistException",
    "ModelNotExistException",
    "PartitionAlreadyExistsException",
    "PartitionNotExistException",
    "PartitionSpecInvalidException",
    "SqlParserException",
    "TableAlreadyExistException",
    "TableException",
    "TableNotExistException",
    "TableNotPartitionedException",
    "ValidationException",
]


class TableException(PenstockError):
    """A table program failed."""


class ValidationException(PenstockError):
    """A table program is invalid: it has an unknown name, wrong types, a missing key or time attribute."""


class SqlParserException(PenstockError):
    """The text is not a valid SQL statement."""


class CatalogException(PenstockError):
    """A catalog failed."""


class DatabaseAlreadyExistException(PenstockError):
    """A database with this name already exists."""


class DatabaseNotEmptyException(PenstockError):
    """The database still has tables."""


class DatabaseNotExistException(PenstockError):
    """No database with this name exists."""


class FunctionAlreadyExistException(PenstockError):
    """A function with this name already exists."""


class FunctionNotExistException(PenstockError):
    """No function with this name exists."""


class ModelAlreadyExistException(PenstockError):
    """A model with this name already exists."""


class ModelNotExistException(PenstockError):
    """No model with this name exists."""


class PartitionAlreadyExistsException(PenstockError):
    """The table already has this partition."""


class PartitionNotExistException(PenstockError):
    """The table does not have this partition."""


class PartitionSpecInvalidException(PenstockError):
    """The partition does not match the table's partition columns."""


class TableAlreadyExistException(PenstockError):
    """A table with this name already exists."""


class TableNotExistException(PenstockError):
    """No table with this name exists."""


class TableNotPartitionedException(PenstockError):
    """The table is not partitioned."""
