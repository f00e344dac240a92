"""PyFlink's path to `penstock.formats.decoding`."""

from penstock.formats.decoding import *
from penstock.formats.decoding import __all__ as __all__
