"""Descriptors: tables defined in Python, without DDL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.config_options import ConfigOption
from penstock.table.schema import Schema

__all__ = ["FormatDescriptor", "TableDescriptor"]


@dataclass(frozen=True)
class FormatDescriptor:
    """A format and its options."""

    _format: str
    _options: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptorBuilder:  # noqa: A002 - PyFlink's name
        """Create a builder for a format."""
        return FormatDescriptorBuilder(FormatDescriptor(format))

    def get_format(self) -> str:
        return self._format

    def get_options(self) -> dict[str, str]:
        return dict(self._options)


class FormatDescriptorBuilder:
    """Collects the options of a format."""

    def __init__(self, descriptor: FormatDescriptor) -> None:
        self._descriptor = descriptor

    def option(self, key: Any, value: Any) -> FormatDescriptorBuilder:
        """Set an option of the format."""
        options = {**self._descriptor.get_options(), option_key(key): option_text(value)}
        self._descriptor = replace(self._descriptor, _options=options)
        return self

    def build(self) -> FormatDescriptor:
        """Build the descriptor."""
        return self._descriptor


@dataclass(frozen=True)
class TableDescriptor:
    """A table: connector, schema, options."""

    _options: dict[str, str]
    _schema: Schema | None = None
    _partition_keys: tuple[str, ...] = ()
    _comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptorBuilder:
        """Create a builder for a table of a connector."""
        return TableDescriptorBuilder(TableDescriptor({"connector": connector}))

    def get_schema(self) -> Schema | None:
        return self._schema

    def get_options(self) -> dict[str, str]:
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        return list(self._partition_keys)

    def get_comment(self) -> str | None:
        return self._comment


class TableDescriptorBuilder:
    """Collects the parts of a table."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        self._descriptor = descriptor

    def schema(self, schema: Schema) -> TableDescriptorBuilder:
        """Set the schema."""
        self._descriptor = replace(self._descriptor, _schema=schema)
        return self

    def option(self, key: Any, value: Any) -> TableDescriptorBuilder:
        """Set an option of the connector."""
        options = {**self._descriptor.get_options(), option_key(key): option_text(value)}
        self._descriptor = replace(self._descriptor, _options=options)
        return self

    def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptorBuilder:  # noqa: A002
        """Set the format. Its options are prefixed with its name."""
        descriptor = FormatDescriptor(format) if isinstance(format, str) else format
        name = "format" if format_option is None else option_key(format_option)
        prefix = name.removesuffix("format") + descriptor.get_format() if name != "format" else descriptor.get_format()
        self.option(name, descriptor.get_format())
        for key, value in descriptor.get_options().items():
            self.option(f"{prefix}.{key}", value)
        return self

    def partitioned_by(self, *partition_keys: str) -> TableDescriptorBuilder:
        """Set the partition columns."""
        self._descriptor = replace(self._descriptor, _partition_keys=partition_keys)
        return self

    def comment(self, comment: str) -> TableDescriptorBuilder:
        """Set the comment."""
        self._descriptor = replace(self._descriptor, _comment=comment)
        return self

    def build(self) -> TableDescriptor:
        """Build the descriptor."""
        return self._descriptor


TableDescriptor.Builder = TableDescriptorBuilder  # type: ignore[attr-defined]
FormatDescriptor.Builder = FormatDescriptorBuilder  # type: ignore[attr-defined]


def option_key(key: str | ConfigOption[Any]) -> str:
    """Return the key of an option, given as text or as a ConfigOption."""
    return key if isinstance(key, str) else key.key


def option_text(value: Any) -> str:
    """Return the value of an option as text."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
