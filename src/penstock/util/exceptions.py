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
    """Something is wrong with a table program."""


class ValidationException(PenstockError):
    """A table program does not make sense: an unknown name, wrong types, a missing key or time attribute."""


class SqlParserException(PenstockError):
    """A text is not an SQL statement."""


class CatalogException(PenstockError):
    """A catalog failed."""


class DatabaseAlreadyExistException(PenstockError):
    """There is a database of that name."""


class DatabaseNotEmptyException(PenstockError):
    """The database still has tables."""


class DatabaseNotExistException(PenstockError):
    """There is no database of that name."""


class FunctionAlreadyExistException(PenstockError):
    """There is a function of that name."""


class FunctionNotExistException(PenstockError):
    """There is no function of that name."""


class ModelAlreadyExistException(PenstockError):
    """There is a model of that name."""


class ModelNotExistException(PenstockError):
    """There is no model of that name."""


class PartitionAlreadyExistsException(PenstockError):
    """The table has that partition."""


class PartitionNotExistException(PenstockError):
    """The table has no such partition."""


class PartitionSpecInvalidException(PenstockError):
    """The partition does not fit the table's partition columns."""


class TableAlreadyExistException(PenstockError):
    """There is a table of that name."""


class TableNotExistException(PenstockError):
    """There is no table of that name."""


class TableNotPartitionedException(PenstockError):
    """The table has no partitions."""
