"""The functions users write, under PyFlink's name."""

from penstock.core.functions import *  # noqa: F403 - the names are those of the module below
