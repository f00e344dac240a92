"""Names PyFlink has for its Java bridge."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import UnsupportedFeatureError

__all__ = ["JavaObjectWrapper"]


class JavaObjectWrapper:
    """In PyFlink the Python side of a Java object. There is no Java here, so making one fails."""

    def __init__(self, j_object: object) -> None:
        raise UnsupportedFeatureError(f"{type(self).__name__} wraps a Java object: use the Python contract instead")

    def get_java_object(self) -> Any:
        raise UnsupportedFeatureError(f"{type(self).__name__} has no Java object")
