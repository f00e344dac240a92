"""Functions that take part in checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from penstock.core.functions.base import KeyedStateStore

if TYPE_CHECKING:
    from penstock.core.state import OperatorStateStore

__all__ = [
    "CheckpointListener",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "ListCheckpointed",
]


class FunctionInitializationContext(ABC):
    """The context of :meth:`CheckpointedFunction.initialize_state`."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the task continues from a checkpoint or savepoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint the task continues from, ``None`` if it starts new."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the task."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """State of keys; only for operators on keyed streams."""


class FunctionSnapshotContext(ABC):
    """The context of :meth:`CheckpointedFunction.snapshot_state`."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """The checkpoint's number; later ones are larger."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was started, in milliseconds since the epoch."""


class CheckpointedFunction(ABC):
    """For functions that keep values in plain fields and write them to operator state at checkpoints.

    >>> from penstock.core.functions import MapFunction
    >>> from penstock.core.state import ListStateDescriptor
    >>> class CountAll(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("count"))
    ...         self.count = sum(self.state.get())
    ...
    ...     def snapshot_state(self, context):
    ...         self.state.update([self.count])
    ...
    ...     def map(self, value):
    ...         self.count += 1
    ...         return self.count
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called before ``open``, for new and for restored tasks."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called when a checkpoint is taken."""


class ListCheckpointed(ABC):
    """The simplest way to take part in checkpoints: plain fields, written as a list and given back as a list.

    When the parallelism changes, the elements of all tasks are redistributed: a task may get several, or none. So
    write a value that can be divided in several elements.

    >>> from penstock.core.functions import MapFunction
    >>> class CountAll(MapFunction, ListCheckpointed):
    ...     def restore_state(self, state):
    ...         self.count = sum(state)
    ...
    ...     def snapshot_state(self, checkpoint_id, timestamp):
    ...         return [self.count]
    ...
    ...     def map(self, value):
    ...         self.count += 1
    ...         return self.count
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """Return the elements to keep; the timestamp is the start of the checkpoint in epoch milliseconds."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Called before ``open`` with the restored elements; the list is empty at the first start."""


class CheckpointListener(ABC):
    """For functions that want to know when a checkpoint is complete."""

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable. May come late or, after a failure, not at all."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will not complete; the next one covers everything."""
        return
