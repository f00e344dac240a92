"""How a driver hands its measurement to the runner: one marked line of JSON on standard output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

_MARK = "BENCHMARK-RESULT "


def hand_over(result: dict[str, object]) -> None:
    """Print the measurement; engines may print around it."""
    print("\n" + _MARK + json.dumps(result), flush=True)


def take_over(output: str) -> dict[str, object]:
    """Find the measurement in a driver's output."""
    for line in reversed(output.splitlines()):
        if line.startswith(_MARK):
            result: dict[str, object] = json.loads(line.removeprefix(_MARK))
            return result
    raise LookupError("the driver printed no result")


def digest(values: Iterable[object]) -> dict[str, object]:
    """Count and fingerprint of a multiset of results, to compare two systems.

    >>> digest([(2, 1.5), (1, 0.5)]) == digest([(1, 0.5), (2, 1.5)])
    True
    """
    texts = sorted(map(repr, values))
    return {
        "count": len(texts),
        "digest": hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16],
        "first": texts[:3],
    }
