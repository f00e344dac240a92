"""A complete, checked definition of a windowed operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.core.output_tag import OutputTag
from penstock.core.window import Evictor, MergingWindowAssigner, Trigger, WindowAssigner
from penstock.runtime.records.batch import KeySelect
from penstock.runtime.state.state_types import TypeDescription
from penstock.runtime.windows.contents import Contents
from penstock.runtime.windows.functions import FiredFunction


@dataclass(slots=True)
class WindowDefinition:
    """The assigner, the trigger, the contents and the functions of a windowed operation."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: Contents
    function: FiredFunction
    key_selector: KeySelect
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    second_key_selector: KeySelect | None = None
    """The key selector of the second stream, if the windows contain two streams (window join, co-group)."""
    held_type: TypeDescription | None = None
    """The declared type of the elements or accumulators."""

    @property
    def event_time(self) -> bool:
        """Whether windows end by watermark."""
        return self.assigner.is_event_time()

    @property
    def merging(self) -> bool:
        """Whether windows merge."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def lateness(self) -> int:
        """Return how long a complete window is kept. In processing time, no element is late."""
        return self.allowed_lateness if self.event_time else 0
