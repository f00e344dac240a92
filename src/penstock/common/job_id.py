"""Ids of jobs."""

from __future__ import annotations

import re
import secrets

from penstock.common.errors import InvalidProgramError

__all__ = ["JobID"]

_HEX = re.compile("[0-9a-f]{32}")


class JobID:
    """The id of a job: 32 hexadecimal digits, random by default.

    >>> str(JobID("00000000000000000000000000000001"))
    '00000000000000000000000000000001'
    >>> len(str(JobID()))
    32
    """

    __slots__ = ("_hex",)

    def __init__(self, hex_string: str | None = None) -> None:
        text = secrets.token_hex(16) if hex_string is None else hex_string.lower()
        if not _HEX.fullmatch(text):
            raise InvalidProgramError(f"a job id must have 32 hexadecimal digits, got {hex_string!r}")
        self._hex = text

    def to_hex_string(self) -> str:
        return self._hex

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID({self._hex!r})"

    def __eq__(self, other: object) -> bool:
        return self._hex == other._hex if isinstance(other, JobID) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._hex)
