"""Records get the form of the type that was declared for them, as if they had been written and read by that type.

In PyFlink a record goes through the serializer of its type: behind it, a row has the field names of the type, and so
have the rows inside it; an int where a float was declared is a float, and a list where a tuple was, a tuple. Here
records are not serialized by type, so this is done where they are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.common.typeinfo import BasicType, BasicTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row

Conform = Callable[[Any], Any]
_Compile = Callable[[TypeInformation], Conform | None]


def compile_names(declared: TypeInformation) -> Conform | None:
    """A function that names the rows in a value which fits the type; None if there can be no rows in it.

    >>> from penstock.common.typeinfo import Types
    >>> name = compile_names(Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()]))
    >>> name(Row("a", 1)), name(("b", 2)), name(Row(n=3, word="c"))
    (Row(word='a', n=1), Row(word='b', n=2), Row(word='c', n=3))
    >>> compile_names(Types.INT()) is None
    True
    """
    if isinstance(declared, TupleTypeInfo) and not _nested(declared.get_field_types(), compile_names):
        return None
    return _compile_parts(declared, compile_names)


def compile_form(declared: TypeInformation) -> Conform | None:
    """A function that gives a value which fits the type the form it has behind the type's serializer; None if any has.

    >>> from penstock.common.typeinfo import Types
    >>> form = compile_form(Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    >>> form(["a", 1]), form(("b", None)), compile_form(Types.LIST(Types.INT())) is None
    (('a', 1.0), ('b', None), True)
    """
    if isinstance(declared, BasicTypeInfo):
        return _float if declared.basic_type in (BasicType.FLOAT, BasicType.DOUBLE) else None
    return _compile_parts(declared, compile_form)


def _float(value: Any) -> Any:
    return None if value is None else float(value)


def _compile_parts(declared: TypeInformation, compiled: _Compile) -> Conform | None:
    if isinstance(declared, RowTypeInfo):
        return _rows(declared, compiled)
    if isinstance(declared, TupleTypeInfo):
        return _tuples(_nested(declared.get_field_types(), compiled))
    if isinstance(declared, MapTypeInfo):
        return _maps(compiled(declared.key_type), compiled(declared.value_type))
    inner = getattr(declared, "element_type", None)
    if isinstance(inner, TypeInformation):
        return _elements(compiled(inner))
    inner = getattr(declared, "_type_info", None)
    return compiled(inner) if isinstance(inner, TypeInformation) else None


def _nested(types: Sequence[TypeInformation], compiled: _Compile) -> list[tuple[int, Conform]]:
    found = [(position, compiled(field_type)) for position, field_type in enumerate(types)]
    return [(position, conform) for position, conform in found if conform is not None]


def _rows(declared: RowTypeInfo, compiled: _Compile) -> Conform:
    template = Row()
    template.set_field_names(declared.get_field_names())
    names = template._fields  # the tuple all rows of these names share
    nested = _nested(declared.get_field_types(), compiled)

    def conform(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not Row or value._fields != names:
            value = _named(value)
        for position, inner in nested:
            value._values[position] = inner(value._values[position])
        return value

    def _named(value: Any) -> Row:
        fields = declared._fields(value)
        assert fields is not None  # it was checked against the type
        row = value if isinstance(value, Row) else Row(*fields)
        if isinstance(value, Row) and value._fields is not None:
            if declared.has_default_names:
                return row  # names of its own are better than f0, f1, ...
            row._values = list(fields)
        row._fields = names
        return row

    return conform


def _tuples(fields: list[tuple[int, Conform]]) -> Conform:
    def conform(value: Any) -> Any:
        if value is None:
            return None
        parts = list(value)
        for position, inner in fields:
            parts[position] = inner(parts[position])
        make = getattr(value, "_make", tuple)  # a named tuple is one: functions behind may use its names
        return make(parts)

    return conform


def _elements(inner: Conform | None) -> Conform | None:
    if inner is None:
        return None
    return lambda value: type(value)(map(inner, value)) if isinstance(value, (list, tuple)) else value


def _maps(key: Conform | None, value: Conform | None) -> Conform | None:
    if key is None and value is None:
        return None
    of_key, of_value = key or _same, value or _same
    return lambda mapping: None if mapping is None else {of_key(name): of_value(item) for name, item in mapping.items()}


def _same(value: Any) -> Any:
    return value
