"""Schemas: how connectors encode records to bytes and decode them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, BinaryIO, Generic, TypeVar

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.common.unsupported import no_java_object

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


T = TypeVar("T")


class SerializationSchema(ABC):
    """Encodes a record to bytes."""

    def open(self) -> None:
        """Called once per task before the first record."""
        return

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """Return the bytes of a record."""


class DeserializationSchema(ABC, Generic[T]):
    """Decodes a record from bytes."""

    def open(self) -> None:
        """Called once per task before the first record."""
        return

    @abstractmethod
    def deserialize(self, message: bytes) -> T | None:
        """Return the record in a message, or ``None`` to skip the message."""

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this record ends the stream."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema[str]):
    r"""Encodes and decodes strings.

    >>> SimpleStringSchema().deserialize(b"caf\xc3\xa9")
    'café'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        try:
            "".encode(charset)
        except LookupError:
            raise InvalidProgramError(f"unknown character set {charset!r}") from None
        self.charset = charset

    def open(self) -> None:
        return None

    def serialize(self, value: Any) -> bytes:
        return str(value).encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        return message.decode(self.charset)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema[bytes]):
    """Passes bytes through unchanged."""

    def open(self) -> None:
        return None

    def serialize(self, value: Any) -> bytes:
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        return message

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Writes the bytes of one field of a row, such as the key of a Kafka record.

    >>> RowFieldExtractorSchema(1).serialize(("a", b"bytes"))
    b'bytes'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise InvalidProgramError(f"Field index must be non-negative, got {field_index}")
        self._field_index = field_index

    def serialize(self, value: Any) -> bytes:
        field = value[self._field_index]
        if field is None:
            return b""
        return field.encode("utf-8") if isinstance(field, str) else bytes(field)


class Encoder(ABC):
    """Writes records to a file, one at a time."""

    @abstractmethod
    def encode(self, value: Any, stream: BinaryIO) -> None:
        """Write one record."""

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        r"""Write one record per line, formatted with ``str()``.

        >>> from io import BytesIO
        >>> stream = BytesIO()
        >>> Encoder.simple_string_encoder().encode(42, stream)
        >>> stream.getvalue()
        b'42\n'
        """
        return _SimpleStringEncoder(charset_name)


class _SimpleStringEncoder(Encoder):
    def __init__(self, charset_name: str) -> None:
        self.charset = charset_name

    def encode(self, value: Any, stream: BinaryIO) -> None:
        stream.write(f"{value}\n".encode(self.charset))


class BulkWriter(ABC):
    """Writes a file in a format that needs more than one record at a time, such as Parquet."""

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Add one record. It may stay in memory until :meth:`finish`."""

    def flush(self) -> None:
        """Write the records that can already be written."""
        return

    @abstractmethod
    def finish(self) -> None:
        """Complete the file. Do not close the stream."""


class BulkWriterFactory(ABC):
    """Creates a :class:`BulkWriter` for each file."""

    @abstractmethod
    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer for a new file."""

    get_java_object = no_java_object


class RowDataBulkWriterFactory(BulkWriterFactory):
    """A :class:`BulkWriterFactory` for rows of one type."""

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type

    def get_row_type(self) -> RowTypeInfo:
        return self._row_type
