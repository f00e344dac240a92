"""Names of PyFlink's Java bridge."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import UnsupportedFeatureError

__all__ = ["JavaObjectWrapper"]


class JavaObjectWrapper:
    """The Python side of a Java object in PyFlink. There is no Java here, so the constructor fails."""

    def __init__(self, j_object: object) -> None:
        raise UnsupportedFeatureError(f"{type(self).__name__} wraps a Java object: use the Python contract instead")

    def get_java_object(self) -> Any:
        raise UnsupportedFeatureError(f"{type(self).__name__} has no Java object")
