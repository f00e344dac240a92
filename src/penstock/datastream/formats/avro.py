"""PyFlink's path to `penstock.formats.avro`."""

from penstock.formats.avro import *
from penstock.formats.avro import __all__ as __all__
