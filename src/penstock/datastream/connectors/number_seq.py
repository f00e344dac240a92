"""PyFlink's path to `penstock.connectors.number_seq`."""

from penstock.connectors.number_seq import *
from penstock.connectors.number_seq import __all__ as __all__
