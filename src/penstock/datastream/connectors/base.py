"""PyFlink's path to `penstock.connectors.base`."""

from penstock.connectors.base import *
from penstock.connectors.base import __all__ as __all__
