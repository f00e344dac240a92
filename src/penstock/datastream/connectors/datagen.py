"""PyFlink's path to `penstock.connectors.datagen`."""

from penstock.connectors.datagen import *
from penstock.connectors.datagen import __all__ as __all__
