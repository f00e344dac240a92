"""Modules: where functions come from. There is one, with the built-in functions."""

from __future__ import annotations

from dataclasses import dataclass


class Module:
    """A set of functions. Only the module `core` exists here; functions of your own go into the catalog."""


@dataclass(frozen=True, order=True)
class ModuleEntry:
    """A module that is loaded, and whether its functions are looked up.

    >>> ModuleEntry("core", True).name()
    'core'
    """

    _name: str
    _used: bool

    def name(self) -> str:
        return self._name

    def used(self) -> bool:
        return self._used
