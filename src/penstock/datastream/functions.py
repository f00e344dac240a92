"""The base classes of user functions, under PyFlink's name."""

from typing import TYPE_CHECKING, TypeVar

from penstock.core.functions import *  # noqa: F403 - the names are those of the module below
from penstock.datastream.pyflink_imports import imported_names

W = TypeVar("W")
W2 = TypeVar("W2")
IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")

if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
