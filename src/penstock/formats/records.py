"""``Json(Order)``, ``Csv(Order)`` and ``Text()``: formats of messages and files, with a class as the schema.

One object serves all connectors: the value of a Kafka source or sink, the format of a file source or sink.
"""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, BinaryIO, Generic, TypeVar, cast, overload

from penstock.common.errors import InvalidProgramError, RecordFormatError, shorten
from penstock.common.serialization import DeserializationSchema, Encoder, SerializationSchema
from penstock.formats.file_format import FileFormat, LineFormat
from penstock.formats.json import json_bytes, json_value
from penstock.formats.record_classes import Read, plain, reader, record_fields, text_reader

__all__ = ["Csv", "Json", "RecordFormat", "Text"]

T = TypeVar("T")


class RecordFormat(DeserializationSchema[T], SerializationSchema, Generic[T]):
    """A format of single records, in messages and in the lines of files."""

    lines_to_skip = 0

    @abstractmethod
    def read(self, data: bytes) -> T:
        """Return the record in some bytes, or raise a ValueError that says what is wrong."""

    @abstractmethod
    def serialize(self, value: T) -> bytes:
        """Return the bytes of a record, without a line end."""

    def deserialize(self, message: bytes) -> T:
        try:
            return self.read(message)
        except ValueError as error:
            raise RecordFormatError(f"not a record of {self!r}: {error}", message=message) from None

    def file_format(self) -> FileFormat[T]:
        """Return the format of files with one record per line, for a FileSource."""
        return _Lines(self)

    def encoder(self) -> Encoder:
        """Return the encoder of files with one record per line, for a FileSink."""
        return _LineEncoder(self)


class Json(RecordFormat[T]):
    """JSON objects, one per message or line. Without a class, records are the values that JSON contains.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     user: str
    ...     amount: float = 0.0
    >>> Json(Order).deserialize(b'{"user": "ann", "amount": 3, "more": true}')
    Order(user='ann', amount=3.0)
    >>> Json(Order).serialize(Order("ann", 3.0))
    b'{"user":"ann","amount":3.0}'
    """

    @overload
    def __init__(self: Json[Any], record_class: None = None) -> None: ...
    @overload
    def __init__(self, record_class: type[T]) -> None: ...
    def __init__(self, record_class: type[Any] | None = None) -> None:
        self._class = record_class
        self._read: Read | None = None
        if record_class is not None:
            record_fields(record_class)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}

    def read(self, data: bytes) -> T:
        if self._read is None:
            self._read = reader(Any if self._class is None else self._class)
        return cast("T", self._read(json_value(data)))

    def serialize(self, value: T) -> bytes:
        return json_bytes(plain(value))

    def __repr__(self) -> str:
        return f"Json({'' if self._class is None else self._class.__name__})"


class Csv(RecordFormat[T]):
    r"""Lines of values, in the order of the fields of a class.

    :param header: files begin with a line of column names, which is skipped

    >>> from typing import NamedTuple
    >>> class Order(NamedTuple):
    ...     user: str
    ...     amount: float | None
    >>> Csv(Order).deserialize(b'"Lovelace, Ada",'), Csv(Order).serialize(Order("ann", 3.0))
    (Order(user='Lovelace, Ada', amount=None), b'ann,3.0')
    """

    def __init__(self, record_class: type[T], *, separator: str = ",", quote: str = '"', header: bool = False) -> None:
        self._class = record_class
        self._names = list(record_fields(record_class))
        if len(separator) != 1 or len(quote) != 1:
            raise InvalidProgramError(
                f"separator and quote must be one character each, got {separator!r} and {quote!r}"
            )
        self._dialect: dict[str, Any] = {"delimiter": separator, "quotechar": quote, "lineterminator": ""}
        self.lines_to_skip = int(header)
        self._readers: list[Read] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_readers": None}

    def read(self, data: bytes) -> T:
        if self._readers is None:
            self._readers = [text_reader(annotation) for annotation in record_fields(self._class).values()]
        texts = next(csv.reader([data.decode().rstrip("\r\n")], strict=True, **self._dialect), [])
        if len(texts) != len(self._names):
            raise ValueError(f"{len(texts)} values for the {len(self._names)} fields {', '.join(self._names)}")
        values = {}
        for name, read, text in zip(self._names, self._readers, texts, strict=True):
            try:
                values[name] = read(text)
            except ValueError as error:
                is_header = texts == self._names
                advice = f"; to skip a first line of names, use Csv({self._class.__name__}, header=True)" * is_header
                raise ValueError(f"field '{name}' of {self._class.__name__}: {error}{advice}") from None
        return self._class(**values)

    def deserialize(self, message: bytes) -> T:
        try:
            return super().deserialize(message)
        except csv.Error as error:
            raise RecordFormatError(f"not a record of {self!r}: {error}", message=message) from None

    def serialize(self, value: T) -> bytes:
        fields = plain(value)
        if not isinstance(fields, (dict, list)):
            raise TypeError(f"{self!r} writes records with the fields {', '.join(self._names)}, got {shorten(value)}")
        row = [fields[name] for name in self._names] if isinstance(fields, dict) else fields
        line = io.StringIO()
        csv.writer(line, **self._dialect).writerow("" if part is None else _text(part) for part in row)
        return line.getvalue().encode()

    def __repr__(self) -> str:
        return f"Csv({self._class.__name__})"


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


class Text(RecordFormat[str]):
    r"""Lines of text, or messages of text, in UTF-8.

    >>> Text().deserialize(b"caf\xc3\xa9")
    'café'
    """

    def read(self, data: bytes) -> str:
        return data.decode()

    def serialize(self, value: Any) -> bytes:
        return str(value).encode()

    def __repr__(self) -> str:
        return "Text()"


class _Lines(LineFormat[T]):
    """One record per line. Empty lines are skipped unless the records are text."""

    def __init__(self, record_format: RecordFormat[T]) -> None:
        super().__init__()
        self.skips_byte_order_mark = True
        self.lines_to_skip = record_format.lines_to_skip
        self._format = record_format
        self._keeps_empty = isinstance(record_format, Text)

    def decode_lines(self, lines: list[bytes], path: str) -> list[T]:
        read: Callable[[bytes], T] = self._format.deserialize
        records = []
        for line in lines:
            if line.strip() or self._keeps_empty:
                try:
                    records.append(read(line))
                except RecordFormatError as error:
                    raise RecordFormatError(f"{path}: {error.reason}", message=line) from None
        return records


class _LineEncoder(Encoder):
    def __init__(self, record_format: RecordFormat[Any]) -> None:
        self._serialize = record_format.serialize

    def encode(self, value: Any, stream: BinaryIO) -> None:
        stream.write(self._serialize(value) + b"\n")
