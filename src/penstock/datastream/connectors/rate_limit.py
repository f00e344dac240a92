"""PyFlink's path to `penstock.connectors.rate_limit`."""

from penstock.connectors.rate_limit import *
from penstock.connectors.rate_limit import __all__ as __all__
