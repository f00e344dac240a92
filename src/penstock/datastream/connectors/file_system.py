"""PyFlink's path to `penstock.connectors.file_system`."""

from typing import TYPE_CHECKING

from penstock.connectors.file_system import *
from penstock.connectors.file_system import __all__ as __all__
from penstock.datastream.pyflink_imports import imported_names

if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
