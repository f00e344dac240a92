"""The range of whole numbers of 64 bits, and the tag of main outputs, under PyFlink's names."""

__all__ = ["DEFAULT_OUTPUT_TAG", "MAX_LONG_VALUE", "MIN_LONG_VALUE"]

MIN_LONG_VALUE = -(1 << 63)
MAX_LONG_VALUE = (1 << 63) - 1
DEFAULT_OUTPUT_TAG = ""
