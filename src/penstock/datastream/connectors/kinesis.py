"""PyFlink's path to `penstock.connectors.kinesis`."""

from penstock.connectors.kinesis import *
from penstock.connectors.kinesis import __all__ as __all__
