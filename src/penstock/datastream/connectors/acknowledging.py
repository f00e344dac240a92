"""PyFlink's path to `penstock.connectors.acknowledging`."""

from penstock.connectors.acknowledging import *
from penstock.connectors.acknowledging import __all__ as __all__
