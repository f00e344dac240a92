"""PyFlink's path to `penstock.connectors.sinks`."""

from penstock.connectors.sinks import *
from penstock.connectors.sinks import __all__ as __all__
