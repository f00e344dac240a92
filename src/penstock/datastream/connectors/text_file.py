"""PyFlink's path to `penstock.connectors.text_file`."""

from penstock.connectors.text_file import *
from penstock.connectors.text_file import __all__ as __all__
