"""The connector ``blackhole``: takes everything, keeps nothing."""

from __future__ import annotations

from penstock.connectors.sinks import DiscardingSink
from penstock.core.sink import Sink
from penstock.table.connectors.base import ConnectorFactory, ResolvedTable, TableSink, connector


class BlackHoleSink(TableSink):
    """Drops all rows."""

    def create(self) -> Sink:
        """A sink that does nothing."""
        return DiscardingSink()


@connector("blackhole")
class BlackHoleFactory(ConnectorFactory):
    """``'connector' = 'blackhole'``"""

    def sink(self, table: ResolvedTable) -> TableSink:
        """A sink."""
        return BlackHoleSink()
