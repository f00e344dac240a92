"""Modules, which provide functions. The only one is `core`, with the built-in functions."""

from __future__ import annotations

from dataclasses import dataclass


class Module:
    """A set of functions. Only the module `core` exists here; register your own functions in the catalog."""


@dataclass(frozen=True, order=True)
class ModuleEntry:
    """A loaded module, and whether it is in use.

    >>> ModuleEntry("core", True).name()
    'core'
    """

    _name: str
    _used: bool

    def name(self) -> str:
        return self._name

    def used(self) -> bool:
        return self._used
