"""PyFlink's path to `penstock.formats`."""

from penstock.formats import DeadLetter, decode

__all__ = ["DeadLetter", "decode"]
