"""The connector ``blackhole``: accepts all rows and drops them."""

from __future__ import annotations

from penstock.connectors.sinks import DiscardingSink
from penstock.core.sink import Sink
from penstock.table.connectors.base import ConnectorFactory, ResolvedTable, TableSink, connector


class BlackHoleSink(TableSink):
    """Drops all rows."""

    def create(self) -> Sink:
        """Create a sink that does nothing."""
        return DiscardingSink()


@connector("blackhole")
class BlackHoleFactory(ConnectorFactory):
    """``'connector' = 'blackhole'``"""

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink."""
        return BlackHoleSink()
