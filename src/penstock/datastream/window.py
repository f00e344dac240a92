"""Windows, assigners, triggers and evictors, under PyFlink's name."""

from typing import TYPE_CHECKING, TypeVar

from penstock.core.window import *  # noqa: F403 - the names are those of the module below
from penstock.datastream.pyflink_imports import imported_names

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")
IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")

if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
