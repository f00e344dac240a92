"""The sources of the environment: where streams begin.

This module imports one module for each kind of source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.common.errors import InvalidProgramError, TypeMismatchError, shorten
from penstock.common.io import InputFormat
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.typeinfo.base import checked_type
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.collection import CollectionSource
from penstock.connectors.number_seq import NumberSequenceSource
from penstock.connectors.text_file import TextFileSource
from penstock.core.functions import ParallelSourceFunction, SourceFunction
from penstock.core.source import Source
from penstock.datastream.environment_settings import EnvironmentSettings
from penstock.datastream.source_stream import source_stream
from penstock.graph.transformation import DataFrameSourceTransformation, SourceTransformation
from penstock.runtime.operators.record_form import compile_form

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream


T = TypeVar("T")


class EnvironmentSources(EnvironmentSettings):
    """Creates streams from sources."""

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str | None = None,
        type_info: TypeInformation | None = None,
    ) -> DataStream[T]:
        """Create a stream from a source, with the timestamps and watermarks of the strategy.

        Without a name, the source has the name of its class.
        """
        if watermark_strategy is None:
            watermark_strategy = WatermarkStrategy.no_watermarks()
        if not isinstance(source, Source):
            raise InvalidProgramError(f"from_source() takes a Source, got {shorten(source)}")
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise InvalidProgramError(
                f"from_source() takes a WatermarkStrategy (WatermarkStrategy.no_watermarks() for none), "
                f"got {shorten(watermark_strategy)}"
            )
        return self._source(source, source_name or type(source).__name__, type_info, watermark_strategy)

    def from_collection(self, collection: Iterable[T], type_info: TypeInformation[Any] | None = None) -> DataStream[T]:
        """Create a stream of the elements of a collection. One task reads them in order."""
        if isinstance(collection, (str, bytes)) or not isinstance(collection, Iterable):
            raise InvalidProgramError(f"from_collection() takes a list of elements, got {shorten(collection)}")
        elements = list(collection)
        if type_info is not None:
            mismatch = checked_type(type_info, "the type").first_mismatch(elements)
            if mismatch is not None:
                position, reason = mismatch
                raise TypeMismatchError(
                    f"element {position} of the collection does not fit the type {type_info!r}: {reason}",
                    record=elements[position],
                )
            form = compile_form(type_info)
            if form is not None:
                elements = [form(copy(element)) for element in elements]
        return self._source(CollectionSource(elements), "Collection Source", type_info, parallel=False)

    def from_elements(self, *elements: T, type_info: TypeInformation[Any] | None = None) -> DataStream[T]:
        """Create a stream of the given elements."""
        return self.from_collection(elements, type_info)

    from_data = from_elements

    def from_sequence(self, from_: int, to: int) -> DataStream[int]:
        """Create a stream of the numbers from ``from_`` to ``to``, both inclusive, read in parallel."""
        return self._source(NumberSequenceSource(from_, to), "Sequence Source", Types.LONG())

    def from_parallel_collection(
        self, collection: Iterable[T], type_info: TypeInformation[Any] | None = None
    ) -> DataStream[T]:
        """Create a stream of the elements of a collection, distributed to all subtasks of the next operator."""
        return self.from_collection(collection, type_info).rebalance()

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream[str]:
        """Create a stream of the lines of a file, or of all files below a directory."""
        return self._source(TextFileSource(file_path, encoding=charset_name), "Text File Source", Types.STRING())

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> DataStream[str]:
        """Create a stream of the lines from a socket. One task reads them."""
        from penstock.connectors.socket import SocketTextSource

        source = SocketTextSource(hostname, port, delimiter, max_retry)
        return self._source(source, "Socket Stream", Types.STRING(), parallel=False)

    def add_source(
        self,
        source_func: SourceFunction | Source,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream[Any]:
        """Create a stream from a SourceFunction."""
        if isinstance(source_func, Source):
            strategy = getattr(source_func, "watermark_strategy", None)
            return self._source(source_func, source_name, type_info, strategy)
        if not isinstance(source_func, SourceFunction):
            raise InvalidProgramError(f"add_source() takes a SourceFunction, got {shorten(source_func)}")
        from penstock.connectors.source_function import SourceFunctionSource

        parallel = isinstance(source_func, ParallelSourceFunction)
        return self._source(SourceFunctionSource(source_func, source_name), source_name, type_info, parallel=parallel)

    def create_input(self, input_format: InputFormat, type_info: TypeInformation | None = None) -> DataStream[Any]:
        """Create a stream from an input format that is also a source, such as AvroInputFormat."""
        as_source = getattr(input_format, "as_source", None)
        if as_source is not None:
            return self._source(as_source(), "Input", type_info)
        raise InvalidProgramError("create_input() takes a Java input format in PyFlink: use from_source() instead")

    def from_dataframe(
        self,
        dataframe: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame Source",
        type_info: TypeInformation | None = None,
        to_records: Callable[[Any], list[Any]] | None = None,
    ) -> DataStream[Any]:
        """Create a stream of the rows of a batch or streaming Spark DataFrame: any reader of Spark becomes a source.

        Records are Rows with the DataFrame's field names. ``to_records`` converts them to something else: it takes a
        ``pyarrow.RecordBatch`` and returns a list.
        """
        self.check_open()
        if not hasattr(dataframe, "isStreaming") or not hasattr(dataframe, "schema"):
            raise InvalidProgramError(f"from_dataframe() takes a Spark DataFrame, got {shorten(dataframe)}")
        source = DataFrameSourceTransformation(
            name=f"Source: {source_name}", frame=dataframe, to_records=to_records, output_type=type_info
        )
        return source_stream(self, source, watermark_strategy)  # type: ignore[arg-type]

    def _source(
        self,
        source: Source,
        name: str,
        type_info: TypeInformation | None,
        strategy: WatermarkStrategy | None = None,
        *,
        parallel: bool = True,
    ) -> DataStream[Any]:
        self.check_open()
        produced = getattr(source, "get_produced_type", None)
        if type_info is None and produced is not None:
            type_info = produced()
        if type_info is not None:
            checked_type(type_info, "the type")
        transformation = SourceTransformation(
            name=f"Source: {name}",
            source=source,
            output_type=type_info,
            parallelism=None if parallel else 1,
            force_non_parallel=not parallel,
        )
        return source_stream(self, transformation, strategy)  # type: ignore[arg-type]
