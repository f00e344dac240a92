"""What tests of several versions of one program share."""

import sys
import types

import pytest


@pytest.fixture
def versions(monkeypatch):
    """Puts the given classes into one module, as the program's version has them."""

    def install(**classes):
        module = types.ModuleType("a_program")
        for name, cls in classes.items():
            cls.__module__, cls.__qualname__, cls.__name__ = "a_program", name, name
            setattr(module, name, cls)
        monkeypatch.setitem(sys.modules, "a_program", module)
        return module

    return install
