"""Descriptors: tables written down in Python, without DDL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.table.schema import Schema

__all__ = ["FormatDescriptor", "TableDescriptor"]


@dataclass(frozen=True)
class FormatDescriptor:
    """A format and its options."""

    _format: str
    _options: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptorBuilder:  # noqa: A002 - PyFlink's name
        """A builder for a format."""
        return FormatDescriptorBuilder(FormatDescriptor(format))

    def get_format(self) -> str:
        return self._format

    def get_options(self) -> dict[str, str]:
        return dict(self._options)


class FormatDescriptorBuilder:
    """Collects options."""

    def __init__(self, descriptor: FormatDescriptor) -> None:
        self._descriptor = descriptor

    def option(self, key: Any, value: Any) -> FormatDescriptorBuilder:
        """One option of the format."""
        options = {**self._descriptor.get_options(), option_key(key): option_text(value)}
        self._descriptor = replace(self._descriptor, _options=options)
        return self

    def build(self) -> FormatDescriptor:
        """The descriptor."""
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
        """A builder for a table of a connector."""
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
        """The schema."""
        self._descriptor = replace(self._descriptor, _schema=schema)
        return self

    def option(self, key: Any, value: Any) -> TableDescriptorBuilder:
        """One option of the connector."""
        options = {**self._descriptor.get_options(), option_key(key): option_text(value)}
        self._descriptor = replace(self._descriptor, _options=options)
        return self

    def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptorBuilder:  # noqa: A002
        """The format; its options get the name of the format in front."""
        descriptor = FormatDescriptor(format) if isinstance(format, str) else format
        name = "format" if format_option is None else option_key(format_option)
        prefix = name.removesuffix("format") + descriptor.get_format() if name != "format" else descriptor.get_format()
        self.option(name, descriptor.get_format())
        for key, value in descriptor.get_options().items():
            self.option(f"{prefix}.{key}", value)
        return self

    def partitioned_by(self, *partition_keys: str) -> TableDescriptorBuilder:
        """The partition columns."""
        self._descriptor = replace(self._descriptor, _partition_keys=partition_keys)
        return self

    def comment(self, comment: str) -> TableDescriptorBuilder:
        """A comment."""
        self._descriptor = replace(self._descriptor, _comment=comment)
        return self

    def build(self) -> TableDescriptor:
        """The descriptor."""
        return self._descriptor


TableDescriptor.Builder = TableDescriptorBuilder  # type: ignore[attr-defined]
FormatDescriptor.Builder = FormatDescriptorBuilder  # type: ignore[attr-defined]


def option_key(key: Any) -> str:
    """The key of an option, given as text or as a ConfigOption."""
    return key if isinstance(key, str) else str(key.key())


def option_text(value: Any) -> str:
    """The value of an option as text."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
