"""What a task reports at the end of a batch besides its records: metric changes and sink committables."""

from __future__ import annotations

from typing import Any

from penstock.runtime.chain import OperatorChain
from penstock.runtime.operators.sink import SinkOperator


class MetricDeltas:
    """Counters are reported as what was added in the batch, so that a batch that is replayed counts once."""

    def __init__(self, chain: OperatorChain) -> None:
        self._chain = chain
        self._last: dict[str, Any] = {}

    def take(self) -> dict[str, Any]:
        """Changes since the last call; gauges and the like as they are."""
        current = self._chain.metric_values()
        deltas = {
            name: value - self._last.get(name, 0) if type(value) is int else value for name, value in current.items()
        }
        self._last = current
        return {name: value for name, value in deltas.items() if value != 0}


def collect_committables(chain: OperatorChain) -> list[tuple[str, list[Any]]]:
    """What the sinks of a chain want committed with this batch."""
    return [
        (operator.context.operator_id, committables)
        for operator in chain.operators
        if isinstance(operator, SinkOperator) and (committables := operator.prepare_commit())
    ]
