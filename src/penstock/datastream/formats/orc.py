"""PyFlink's path to `penstock.formats.orc`."""

from penstock.formats.orc import *
from penstock.formats.orc import __all__ as __all__
