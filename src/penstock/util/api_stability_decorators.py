"""Decorators that state the stability of public names."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["Deprecated", "Experimental", "Internal", "Public", "PublicEvolving"]

T = TypeVar("T", bound=Any)


class BaseAPIStabilityDecorator:
    """Adds a note to the docstring of the decorated object."""

    directive = ""

    def get_directive(self, func_or_cls: Any) -> str:
        return self.directive

    def __call__(self, func_or_cls: T) -> T:
        note = self.get_directive(func_or_cls)
        func_or_cls.__doc__ = f"{(func_or_cls.__doc__ or '').rstrip()}\n\n{note}\n"
        return func_or_cls


class Public(BaseAPIStabilityDecorator):
    """Stable within a major version."""

    directive = ".. note:: This is a stable public API."


class PublicEvolving(BaseAPIStabilityDecorator):
    """May change in a minor version."""

    directive = ".. note:: This is a public API that may change in a minor version."


class Experimental(BaseAPIStabilityDecorator):
    """May change or be removed at any time."""

    directive = ".. caution:: This is experimental and may change or be removed at any time."


class Internal(BaseAPIStabilityDecorator):
    """Not part of the public API."""

    directive = ".. caution:: This is internal and may change at any time."


class Deprecated(BaseAPIStabilityDecorator):
    """Will be removed. ``detail`` names the replacement.

    >>> @Deprecated(since="0.2", detail="Use new() instead.")
    ... def old():
    ...     '''Does it.'''
    >>> print(old.__doc__.strip())
    Does it.
    <BLANKLINE>
    .. deprecated:: 0.2
       Use new() instead.
    """

    def __init__(self, since: str, detail: str = "") -> None:
        self.since = since
        self.detail = detail

    def get_directive(self, func_or_cls: Any) -> str:
        return f".. deprecated:: {self.since}" + (f"\n   {self.detail}" if self.detail else "")
