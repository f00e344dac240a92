"""The functions users write, under PyFlink's name."""

from penstock.common.unsupported import refuse_missing_names
from penstock.core.functions import *  # noqa: F403 - the names are those of the module below

__getattr__ = refuse_missing_names(__name__)
