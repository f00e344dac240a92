"""PyFlink's path to `penstock.connectors.jdbc`."""

from penstock.connectors.jdbc import *
from penstock.connectors.jdbc import __all__ as __all__
