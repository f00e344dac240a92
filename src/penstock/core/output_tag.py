"""Tags of side outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

from penstock.common.checks import require_name
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.typeinfo.base import checked_type
from penstock.common.unsupported import no_java_object

__all__ = ["OutputTag"]

T = TypeVar("T")


class OutputTag(Generic[T]):
    """The name of a side output, with the type of its records. Tags with the same id denote the same output.

    >>> late = OutputTag("late-data")
    >>> late == OutputTag("late-data")
    True
    """

    __slots__ = ("__orig_class__", "tag_id", "type_info")

    @overload
    def __init__(self, tag_id: str, type_info: TypeInformation[T]) -> None: ...
    @overload
    def __init__(
        self: OutputTag[Any], tag_id: str, type_info: Sequence[TypeInformation[Any]] | None = None
    ) -> None: ...
    def __init__(
        self, tag_id: str, type_info: TypeInformation[Any] | Sequence[TypeInformation[Any]] | None = None
    ) -> None:
        if isinstance(type_info, Sequence):
            type_info = RowTypeInfo(list(type_info))
        elif type_info is not None:
            checked_type(type_info, "the type of an OutputTag")
        self.tag_id = require_name(tag_id, "the id of an OutputTag")
        self.type_info: TypeInformation[Any] | None = type_info

    get_java_output_tag = no_java_object

    def __eq__(self, other: object) -> bool:
        return self.tag_id == other.tag_id if isinstance(other, OutputTag) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return OutputTag, (self.tag_id, self.type_info)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
