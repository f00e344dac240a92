"""PyFlink's path to `penstock.formats.csv`."""

from penstock.formats.csv import *
from penstock.formats.csv import __all__ as __all__
