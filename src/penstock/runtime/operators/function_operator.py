"""The base of operators that run one user function, and the function's part in checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.functions import (
    CheckpointedFunction,
    CheckpointListener,
    Function,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    ListCheckpointed,
)
from penstock.core.state import ListState, ListStateDescriptor, OperatorStateStore
from penstock.runtime.operators.operator import OperatorContext, StreamOperator
from penstock.runtime.operators.udf import close_function, method_of, open_function
from penstock.runtime.operators.user_errors import user_error


class InitializationContext(FunctionInitializationContext):
    """The context of initialize_state."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def is_restored(self) -> bool:
        """Whether there is state from an earlier run."""
        return self._context.operator_state.restored

    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint that the task continues from."""
        return self._context.job.checkpoint_id - 1 if self.is_restored() else None

    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the task, without keys."""
        return self._context.operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        """State of the current key."""
        return self._context.runtime_context


class SnapshotContext(FunctionSnapshotContext):
    """The context of snapshot_state."""

    def __init__(self, checkpoint_id: int, timestamp: int) -> None:
        self._checkpoint_id = checkpoint_id
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        """The checkpoint's id."""
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """Processing time of the batch in ms."""
        return self._timestamp


def kept_elements(kept: Any, operator_name: str) -> list[Any]:
    """Check the elements that a ListCheckpointed function returned. None means no elements, as in Flink."""
    if kept is not None and not isinstance(kept, Iterable):
        raise InvalidProgramError(
            f"snapshot_state() of operator '{operator_name}' returned {shorten(kept)}: "
            "return a list of the elements to keep"
        )
    return [] if kept is None else list(kept)


class FunctionOperator(StreamOperator):
    """An operator for one user function: a plain callable, or a Function object with a life cycle."""

    method = ""
    """The method of the function that processes records."""

    def __init__(self, function: Any) -> None:
        self.function = function
        if isinstance(function, (CheckpointedFunction, ListCheckpointed)):
            self.stateful = True

    def user_functions(self) -> list[Any]:
        """The user's function."""
        return [self.function]

    @property
    def call(self) -> Callable[..., Any]:
        """Return the function to call for a record."""
        return method_of(self.function, self.method)

    def open(self) -> None:
        """Restore the function's operator state, then open it."""
        function = self.function
        if isinstance(function, ListCheckpointed):
            try:
                function.restore_state(list(self._list_state().get()))
            except Exception as error:
                raise user_error(self.context, error, "restore_state") from None
        if isinstance(function, CheckpointedFunction):
            if isinstance(function, Function):
                function.set_runtime_context(self.context.runtime_context)
            try:
                function.initialize_state(InitializationContext(self.context))
            except Exception as error:
                raise user_error(self.context, error, "initialize_state") from None
        open_function(function, self.context)

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Let the function write its operator state."""
        if isinstance(self.function, Function):
            self.function.check_declared_states()
        if isinstance(self.function, ListCheckpointed):
            try:
                kept = self.function.snapshot_state(checkpoint_id, self.context.processing_time())
            except Exception as error:
                raise user_error(self.context, error, "snapshot_state") from None
            self._list_state().update(kept_elements(kept, self.context.operator_name))
        elif isinstance(self.function, CheckpointedFunction):
            try:
                self.function.snapshot_state(SnapshotContext(checkpoint_id, self.context.processing_time()))
            except Exception as error:
                raise user_error(self.context, error, "snapshot_state") from None

    def _list_state(self) -> ListState[Any]:
        return self.context.operator_state.get_list_state(ListStateDescriptor("list-checkpointed"))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notify the function if it has this method."""
        if isinstance(self.function, CheckpointListener):
            try:
                self.function.notify_checkpoint_complete(checkpoint_id)
            except Exception as error:
                raise user_error(self.context, error, "notify_checkpoint_complete") from None

    def close(self) -> None:
        """Close the function."""
        close_function(self.function, self.context)
