"""PyFlink's path to `penstock.formats.json`."""

from penstock.formats.json import *
from penstock.formats.json import __all__ as __all__
