"""State and its descriptors, under PyFlink's name."""

from penstock.core.state import *  # noqa: F403 - the names are those of the module below
