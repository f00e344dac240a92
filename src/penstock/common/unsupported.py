"""PyFlink's unsupported names: using one raises an error that says what to use instead.

A module that lacks some names has ``__getattr__ = refuse_missing_names(__name__)``. A missing module is created when it
is imported, so that ``from penstock.datastream.connectors.pulsar import PulsarSource`` says what to do, instead of "No
module named ...". If the real module exists, that one is imported.

You can import the functions of PyFlink's bridge to Java, because programs import more of them than they call. Calling
one raises the error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from penstock.common.errors import UnsupportedFeatureError

__all__ = ["install_missing_modules", "missing_names", "no_java_object", "refuse_missing_names"]

_SPARK = "read or write it by Spark: env.from_dataframe(spark.readStream...), stream.to_dataframe(...)"
_WRITE_ONE = f"write a Source or Sink (see penstock.datastream.connectors.base), or {_SPARK}"
_NO_JAVA = "it belongs to PyFlink's bridge to Java, and there is no Java object here"

# Missing modules of PyFlink, and what to use instead.
_MODULES = {
    "penstock.datastream.connectors.pulsar": _WRITE_ONE,
}

# Modules of PyFlink's bridge to Java. All their names are functions that raise an error when called.
_BRIDGE_MODULES = (
    "penstock.find_flink_home",
    "penstock.java_gateway",
    "penstock.pyflink_gateway_server",
    "penstock.util.java_utils",
)

# Functions of that bridge in modules that exist here.
_BRIDGE_FUNCTIONS = {
    "penstock.common.typeinfo": "_from_java_type",
    "penstock.datastream.checkpoint_storage": "_from_j_checkpoint_storage",
    "penstock.datastream.state_backend": "_from_j_state_backend",
    "penstock.datastream.utils": """
        convert_to_python_obj create_hadoop_configuration create_java_properties pickled_bytes_to_python_obj
    """,
    "penstock.table.types": "_from_java_data_type _from_java_type _to_java_data_type _to_java_type",
}

# Names that our modules lack.
_NAMES: dict[str, tuple[str, str]] = {
    "penstock.datastream.connectors": ("PulsarSource PulsarSourceBuilder StartCursor StopCursor", _WRITE_ONE),
    "penstock.datastream.functions": ("JavaFunctionWrapper", _NO_JAVA),
    "penstock.datastream.window": ("Min WindowOperationDescriptor", "it is a helper within PyFlink"),
}


def missing_names() -> Iterator[tuple[str, str]]:
    """Return each unsupported (module, name). The name is empty for a whole module."""
    for module in _MODULES:
        yield module, ""
    for module, (names, _) in _NAMES.items():
        for name in names.split():
            yield module, name


def refuse_missing_names(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module: missing names of PyFlink raise an error with advice."""
    names, advice = _NAMES.get(module, ("", ""))
    known = frozenset(names.split())
    bridge = frozenset(_BRIDGE_FUNCTIONS.get(module, "").split())

    def refuse(name: str) -> Any:
        if name in known:
            raise UnsupportedFeatureError(f"{module}.{name} is not supported: {advice}")
        if name in bridge:
            return _bridge_function(module, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return refuse


def _bridge_function(module: str, name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFeatureError(f"{module}.{name}() is not supported: {_NO_JAVA}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = module
    return refuse


def no_java_object(self: object) -> NoReturn:
    """Raise the error of methods that return a Java object in PyFlink."""
    raise UnsupportedFeatureError(f"{type(self).__name__} has no Java object: everything here is Python")


class _MissingModules(MetaPathFinder, Loader):
    """Finds missing modules. It is the last finder, so it only gets modules that do not exist."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _MODULES and fullname not in _BRIDGE_MODULES:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        advice = _MODULES.get(name, _NO_JAVA)

        def refuse(attribute: str) -> Any:
            if attribute.startswith("__") or (attribute.startswith("_") and name in _MODULES):
                raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
            if name in _BRIDGE_MODULES:
                return _bridge_function(name, attribute)
            raise UnsupportedFeatureError(f"{name}.{attribute} is not supported: {advice}")

        module.__doc__ = f"Not supported: {advice}."
        module.__getattr__ = refuse  # type: ignore[method-assign]


def install_missing_modules() -> None:
    """Install the finder of missing modules, once per process."""
    if not any(isinstance(finder, _MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(_MissingModules())
