"""PyFlink's path to `penstock.formats.schema_registry`."""

from penstock.formats.schema_registry import *
from penstock.formats.schema_registry import __all__ as __all__
