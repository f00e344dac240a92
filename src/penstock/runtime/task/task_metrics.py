"""The parts of a task's report besides its records: metric changes and sink committables."""

from __future__ import annotations

from typing import Any

from penstock.runtime.exchange.frames import Level
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.task.chain import OperatorChain


class MetricDeltas:
    """Reports totals as the amount added in the batch. A replayed batch therefore counts once, and totals continue
    after a task has ended. Other values (gauges, maxima, rates) are reported as they are.
    """

    def __init__(self, chain: OperatorChain) -> None:
        self._chain = chain
        self._last: dict[str, Any] = {}

    def take(self) -> dict[str, Any]:
        """Return the changes since the last call."""
        current, totals = self._chain.metric_values()
        last, self._last = self._last, current
        changed = {name: value for name, value in current.items() if name not in last or last[name] != value}
        return {
            name: value - last.get(name, 0) if name in totals else Level(value)
            for name, value in changed.items()
            if name not in totals or value != last.get(name, 0)
        }


def collect_committables(chain: OperatorChain, *, at_once: bool = False) -> list[tuple[str, list[Any]]]:
    """Collect the committables of a chain's sinks. With `at_once`, only those that need no checkpoint."""
    return [
        (operator.context.operator_id, committables)
        for operator in chain.operators
        if isinstance(operator, SinkOperator)
        and (operator.sink.publishes_at_once or not at_once)
        and (committables := operator.prepare_commit())
    ]
