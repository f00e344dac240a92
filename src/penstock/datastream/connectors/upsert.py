"""PyFlink's path to `penstock.connectors.upsert`."""

from penstock.connectors.upsert import *
from penstock.connectors.upsert import __all__ as __all__
