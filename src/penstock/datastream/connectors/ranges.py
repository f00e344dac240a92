"""PyFlink's path to `penstock.connectors.ranges`."""

from penstock.connectors.ranges import *
from penstock.connectors.ranges import __all__ as __all__
