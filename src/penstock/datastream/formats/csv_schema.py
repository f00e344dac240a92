"""PyFlink's path to `penstock.formats.csv_schema`."""

from penstock.formats.csv_schema import *
from penstock.formats.csv_schema import __all__ as __all__
