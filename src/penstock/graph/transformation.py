"""Transformations: the result of API calls. Nothing runs before the environment executes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.core.source import Source
from penstock.runtime.exchange.partitioner import Partitioner
from penstock.runtime.operators.operator import ChainingStrategy, StreamOperator

_ids = count(1)


@dataclass(eq=False, slots=True, kw_only=True, weakref_slot=True)
class Transformation:
    """A node of the program. Virtual nodes (union, partition, side output) have no operator."""

    name: str
    output_type: TypeInformation | None = None
    parallelism: int | None = None  # None: that of the environment when the job is translated
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_sharing_group: str | None = None
    chaining: ChainingStrategy | None = None  # None: the operator's own
    force_non_parallel: bool = False
    id: int = field(default_factory=lambda: next(_ids))

    @property
    def inputs(self) -> list[Transformation]:
        """The transformations from which this one reads."""
        return []

    @property
    def stream_parallelism(self) -> int | None:
        """The number of subtasks that emit its records. None: the environment's parallelism."""
        return 1 if self.force_non_parallel else self.parallelism


@dataclass(eq=False, slots=True, kw_only=True)
class SourceTransformation(Transformation):
    """A source."""

    source: Source


@dataclass(eq=False, slots=True, kw_only=True)
class DataFrameSourceTransformation(Transformation):
    """A Spark DataFrame as a source. `frame` is passed to the engine unchanged."""

    frame: Any
    to_records: Any  # callable: pyarrow.RecordBatch -> list of records; None: Rows


@dataclass(eq=False, slots=True, kw_only=True)
class OneInputTransformation(Transformation):
    """An operator with one input."""

    input: Transformation
    operator: StreamOperator

    @property
    def inputs(self) -> list[Transformation]:
        """The only input."""
        return [self.input]


@dataclass(eq=False, slots=True, kw_only=True)
class TwoInputTransformation(Transformation):
    """An operator with two inputs (process_batch and process_batch2)."""

    input1: Transformation
    input2: Transformation
    operator: StreamOperator

    @property
    def inputs(self) -> list[Transformation]:
        """Both inputs, in order."""
        return [self.input1, self.input2]


@dataclass(eq=False, slots=True, kw_only=True)
class SinkTransformation(OneInputTransformation):
    """An operator without output. The job consists of everything that its sinks need."""


@dataclass(eq=False, slots=True, kw_only=True)
class UnionTransformation(Transformation):
    """Several streams, read as one."""

    streams: list[Transformation]

    @property
    def inputs(self) -> list[Transformation]:
        """All streams."""
        return list(self.streams)

    @property
    def stream_parallelism(self) -> int | None:
        """The parallelism of the first stream."""
        return self.streams[0].stream_parallelism


@dataclass(eq=False, slots=True, kw_only=True)
class PartitionTransformation(Transformation):
    """The distribution of records over the next operator's subtasks."""

    input: Transformation
    partitioner: Partitioner

    @property
    def inputs(self) -> list[Transformation]:
        """The partitioned stream."""
        return [self.input]

    @property
    def stream_parallelism(self) -> int | None:
        """The parallelism of the stream before partitioning."""
        return self.input.stream_parallelism


@dataclass(eq=False, slots=True, kw_only=True)
class SideOutputTransformation(Transformation):
    """The records that an operator emitted to one side output."""

    input: Transformation
    tag_id: str

    @property
    def inputs(self) -> list[Transformation]:
        """The operator's stream."""
        return [self.input]

    @property
    def stream_parallelism(self) -> int | None:
        """The parallelism of the operator."""
        return self.input.stream_parallelism
