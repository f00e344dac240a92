"""PyFlink's path to `penstock.connectors.redis`."""

from penstock.connectors.redis import *
from penstock.connectors.redis import __all__ as __all__
