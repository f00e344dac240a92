"""Settings of an operator in the graph: its name, uid, parallelism, chaining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from penstock.common.checks import is_int, require_name
from penstock.common.errors import InvalidProgramError
from penstock.common.execution_config import ExecutionConfig
from penstock.graph.transformation import (
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)
from penstock.runtime.operators.operator import ChainingStrategy
from penstock.runtime.records.key_groups import UPPER_BOUND_MAX_PARALLELISM

if TYPE_CHECKING:
    from penstock.datastream.slot_sharing_group import SlotSharingGroup
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

_VIRTUAL = (PartitionTransformation, UnionTransformation, SideOutputTransformation)


class StreamSettings:
    """Setters of streams and sinks. Each one changes the operator and returns the same object."""

    _env: StreamExecutionEnvironment
    _transformation: Transformation

    def _operators(self, method: str) -> list[Transformation]:
        """Return the transformations that a setting applies to. Reject streams that no operator emits."""
        self._env.check_open()
        if isinstance(self._transformation, _VIRTUAL):
            kind = type(self).__name__ if type(self).__name__ != "DataStream" else self._transformation.name
            raise InvalidProgramError(
                f"{method}() belongs after an operator (map, process, ...): a {kind} is only a connection between two"
            )
        return [self._transformation]

    def name(self, name: str) -> Self:
        """Set the name shown in plans, metrics and errors."""
        for transformation in self._operators("name"):
            transformation.name = self._shown_name(require_name(name, "the name of an operator"))
        return self

    def _shown_name(self, name: str) -> str:
        return name

    def uid(self, uid: str) -> Self:
        """Set the id of the operator's state in checkpoints and savepoints. Set it on each stateful operator."""
        for transformation in self._operators("uid"):
            transformation.uid = require_name(uid, "the uid of an operator")
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the id itself, 32 hexadecimal digits, as found in a log."""
        try:
            valid = len(uid_hash) == 32 and int(uid_hash, 16) >= 0
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise InvalidProgramError(f"a uid hash must have 32 hexadecimal digits, got {uid_hash!r}")
        for transformation in self._operators("set_uid_hash"):
            transformation.uid_hash = uid_hash.lower()
        return self

    def set_description(self, description: str) -> Self:
        """Set the description shown in plans, which may be longer than the name."""
        for transformation in self._operators("set_description"):
            transformation.description = description
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of parallel subtasks of this operator. The default, also for -1, is the environment's."""
        chosen = None if parallelism == ExecutionConfig.PARALLELISM_DEFAULT else check_parallelism(parallelism)
        for transformation in self._operators("set_parallelism"):
            if transformation.force_non_parallel and parallelism != 1:
                raise InvalidProgramError(f"'{transformation.name}' cannot run in parallel: its parallelism is 1")
            transformation.parallelism = chosen
            self._env.note_default_parallelism(transformation)
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups of this operator, which is the upper limit of its parallelism."""
        check_max_parallelism(max_parallelism)
        for transformation in self._operators("set_max_parallelism"):
            transformation.max_parallelism = max_parallelism
        return self

    def force_non_parallel(self) -> Self:
        """Fix the parallelism to 1."""
        for transformation in self._operators("force_non_parallel"):
            transformation.parallelism = 1
            transformation.max_parallelism = 1
            transformation.force_non_parallel = True
        return self

    def start_new_chain(self) -> Self:
        """Do not chain this operator to the one before it."""
        for transformation in self._operators("start_new_chain"):
            transformation.chaining = ChainingStrategy.HEAD
        return self

    def disable_chaining(self) -> Self:
        """Do not chain this operator to any other."""
        for transformation in self._operators("disable_chaining"):
            transformation.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Set the slot sharing group. Operators of different groups are not chained."""
        if isinstance(slot_sharing_group, str):
            group = require_name(slot_sharing_group, "the name of a slot sharing group")
        else:
            self._env.register_slot_sharing_group(slot_sharing_group)
            group = slot_sharing_group.get_name()
        for transformation in self._operators("slot_sharing_group"):
            transformation.slot_sharing_group = group
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Accepted without effect: records leave with their micro-batch and never wait in a buffer."""
        if not is_int(timeout_millis) or timeout_millis < -1:
            raise InvalidProgramError(f"the buffer timeout must be at least -1, got {timeout_millis!r}")
        self._operators("set_buffer_timeout")
        return self


def check_parallelism(parallelism: int) -> int:
    """Return the value if it is a valid parallelism."""
    if not is_int(parallelism) or not 1 <= parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise InvalidProgramError(
            f"the parallelism must be an int from 1 to {UPPER_BOUND_MAX_PARALLELISM}, got {parallelism!r}"
        )
    return parallelism


def check_max_parallelism(max_parallelism: int) -> int:
    """Return the value if it is a valid max parallelism."""
    if not is_int(max_parallelism) or not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise InvalidProgramError(
            f"max parallelism must be an int from 1 to {UPPER_BOUND_MAX_PARALLELISM}, got {max_parallelism!r}"
        )
    return max_parallelism
