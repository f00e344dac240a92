"""Windows, assigners, triggers and evictors, under PyFlink's name."""

from penstock.core.window import *  # noqa: F403 - the names are those of the module below
