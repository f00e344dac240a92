"""PyFlink's path to `penstock.formats.parquet`."""

from penstock.formats.parquet import *
from penstock.formats.parquet import __all__ as __all__
