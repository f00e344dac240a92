"""The range of 64-bit integers, and the tag of main outputs, under PyFlink's names."""

__all__ = ["DEFAULT_OUTPUT_TAG", "MAX_LONG_VALUE", "MIN_LONG_VALUE"]

MIN_LONG_VALUE = -(1 << 63)
MAX_LONG_VALUE = (1 << 63) - 1
DEFAULT_OUTPUT_TAG = ""
