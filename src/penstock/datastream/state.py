"""State and its descriptors, under PyFlink's name."""

from typing import TYPE_CHECKING, TypeVar

from penstock.core.state import *  # noqa: F403 - the names are those of the module below
from penstock.datastream.pyflink_imports import imported_names

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")

if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
