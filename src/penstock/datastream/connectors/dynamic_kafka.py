"""PyFlink's path to `penstock.connectors.dynamic_kafka`."""

from penstock.connectors.dynamic_kafka import *
from penstock.connectors.dynamic_kafka import __all__ as __all__
