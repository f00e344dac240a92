"""PyFlink's path to `penstock.connectors.collection`."""

from penstock.connectors.collection import *
from penstock.connectors.collection import __all__ as __all__
