"""Checks that operators have uids, so that their state can be restored."""

from __future__ import annotations

from penstock.common.errors import InvalidProgramError
from penstock.graph.transformation import (
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)

__all__ = ["check_uids"]

_VIRTUAL = (PartitionTransformation, UnionTransformation, SideOutputTransformation)


def check_uids(sinks: list[Transformation]) -> None:
    """Reject a job with an operator without a uid if generated uids are disabled."""
    waiting, seen = list(sinks), set()
    while waiting:
        transformation = waiting.pop()
        if transformation.id in seen:
            continue
        seen.add(transformation.id)
        waiting += transformation.inputs
        if not isinstance(transformation, _VIRTUAL) and not (transformation.uid or transformation.uid_hash):
            raise InvalidProgramError(
                f"generated uids are disabled, but the operator '{transformation.name}' has none: call uid()"
            )
