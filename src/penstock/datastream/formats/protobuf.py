"""PyFlink's path to `penstock.formats.protobuf`."""

from penstock.formats.protobuf import *
from penstock.formats.protobuf import __all__ as __all__
