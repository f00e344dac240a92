"""Side outputs, under PyFlink's name."""

from typing import TYPE_CHECKING

from penstock.core.output_tag import OutputTag
from penstock.datastream.pyflink_imports import imported_names

__all__ = ["OutputTag"]

if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
