"""The version, where PyFlink has its own."""

from penstock import __version__

__all__ = ["__version__"]
