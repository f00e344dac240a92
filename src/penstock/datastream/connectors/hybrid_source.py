"""PyFlink's path to `penstock.connectors.hybrid_source`."""

from penstock.connectors.hybrid_source import *
from penstock.connectors.hybrid_source import __all__ as __all__
