"""PyFlink's path to `penstock.connectors.elasticsearch`."""

from penstock.connectors.elasticsearch import *
from penstock.connectors.elasticsearch import __all__ as __all__
