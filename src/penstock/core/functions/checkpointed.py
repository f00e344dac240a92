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
        """Whether the task is restored from a checkpoint or savepoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the checkpoint that the task is restored from, or ``None`` for a new task."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of operator state."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state; only for operators on keyed streams."""


class FunctionSnapshotContext(ABC):
    """The context of :meth:`CheckpointedFunction.snapshot_state`."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the checkpoint's id. Ids ascend."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the start time of the checkpoint, in ms since the epoch."""


class CheckpointedFunction(ABC):
    """Implemented by functions that keep values in plain fields and write them to operator state at checkpoints.

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
    """The simplest way to take part in checkpoints: write plain fields as a list and get the list back.

    When the parallelism changes, the elements of all tasks are redistributed: a task may get several elements or none.
    Write a value that can be split as several elements.

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
        """Return the elements to store. The timestamp is the start of the checkpoint in ms since the epoch."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Called before ``open`` with the restored elements, or with an empty list at the first start."""


class CheckpointListener(ABC):
    """Implemented by functions that need to know when a checkpoint completes."""

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when the checkpoint is durable. It may be late or, after a failure, not happen at all."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Called when the checkpoint is aborted. The next one includes its data."""
        return
