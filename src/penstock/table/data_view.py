"""Collections in accumulators, under PyFlink's path."""

from penstock.core.table.data_view import DataView, ListView, MapView

__all__ = ["DataView", "ListView", "MapView"]
