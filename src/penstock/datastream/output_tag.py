"""Side outputs, under PyFlink's name."""

from penstock.core.output_tag import OutputTag

__all__ = ["OutputTag"]
