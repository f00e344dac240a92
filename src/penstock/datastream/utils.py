"""Small helpers, under PyFlink's name."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.common.typeinfo import TypeInformation
from penstock.common.unsupported import refuse_missing_names

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """Implemented by functions and sources that know the type of their results."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, or None if it is unknown."""


__getattr__ = refuse_missing_names(__name__)
