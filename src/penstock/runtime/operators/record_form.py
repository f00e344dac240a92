"""Convert records to the form of their declared type, as if that type's serializer had written and read them.

In PyFlink, a record goes through the serializer of its type. After that, a row has the field names of the type, and so
do nested rows; a FLOAT has 32 bits; an int declared as a float is a float; a list declared as a tuple is a tuple. Here
records are not serialized by type, so this conversion runs where they are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.common.typeinfo import BasicType, BasicTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.typeinfo.single import single
from penstock.common.types import Row, make_row

Conform = Callable[[Any], Any]
_Compile = Callable[[TypeInformation], Conform | None]


def compile_serialized(declared: TypeInformation) -> Conform | None:
    """Return a function that does to a value of the type's own classes what its serializer does: rows get field names,
    FLOATs are rounded. Return None if there is nothing to do.

    >>> from penstock.common.typeinfo import Types
    >>> serialized = compile_serialized(Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.FLOAT()]))
    >>> serialized(Row("a", 0.1)), serialized(("b", 2.0)), serialized(Row(n=3.0, word="c"))
    (Row(word='a', n=0.10000000149011612), Row(word='b', n=2.0), Row(word='c', n=3.0))
    >>> compile_serialized(Types.INT()) is None
    True
    """
    if isinstance(declared, BasicTypeInfo):
        return single if declared.basic_type is BasicType.FLOAT else None
    if isinstance(declared, (TupleTypeInfo, MapTypeInfo)) and not any(map(compile_serialized, _parts(declared))):
        return None
    return _compile_parts(declared, compile_serialized)


def compile_form(declared: TypeInformation) -> Conform | None:
    """Return a function that converts any value that fits the type to the form it has after the type's serializer.
    Return None if every value has this form.

    >>> from penstock.common.typeinfo import Types
    >>> form = compile_form(Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    >>> form(["a", 1]), form(("b", None)), compile_form(Types.LIST(Types.INT())) is None
    (('a', 1.0), ('b', None), True)
    """
    if isinstance(declared, BasicTypeInfo):
        return {BasicType.FLOAT: single, BasicType.DOUBLE: _float}.get(declared.basic_type)
    return _compile_parts(declared, compile_form)


def holds_floats(declared: TypeInformation) -> bool:
    """Whether values of the type contain 32-bit floats.

    >>> from penstock.common.typeinfo import Types
    >>> holds_floats(Types.LIST(Types.FLOAT())), holds_floats(Types.DOUBLE())
    (True, False)
    """
    if isinstance(declared, BasicTypeInfo):
        return declared.basic_type is BasicType.FLOAT
    return any(map(holds_floats, _parts(declared)))


def _parts(declared: TypeInformation) -> Sequence[TypeInformation]:
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return declared.get_field_types()
    if isinstance(declared, MapTypeInfo):
        return declared.key_type, declared.value_type
    inner = [getattr(declared, name, None) for name in ("element_type", "_type_info")]
    return [part for part in inner if isinstance(part, TypeInformation)]


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
    names = template._fields  # all rows with these names share this tuple
    nested = _nested(declared.get_field_types(), compiled)

    def conform(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not Row or value._fields != names:
            value = _named(value)
        if not nested:
            return value
        fields = list(value._values)  # a copy: the function may keep the row that it emitted
        for position, inner in nested:
            fields[position] = inner(fields[position])
        return make_row(value._fields, fields, value._row_kind)

    def _named(value: Any) -> Row:
        fields = declared._fields(value)
        assert fields is not None  # the value was checked against the type
        row = value if isinstance(value, Row) else Row(*fields)
        if isinstance(value, Row) and value._fields is not None:
            if declared.has_default_names:
                return row  # its own names are better than f0, f1, ...
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
        make = getattr(value, "_make", tuple)  # keeps named tuples: the next functions may use their names
        return make(parts)

    return conform


def _elements(inner: Conform | None) -> Conform | None:
    if inner is None:
        return None
    return lambda value: type(value)(map(inner, value)) if isinstance(value, (list, tuple, set, frozenset)) else value


def _maps(key: Conform | None, value: Conform | None) -> Conform:
    of_key, of_value = key or _same, value or _same

    def conform(given: Any) -> Any:
        if given is None or (type(given) is dict and key is None and value is None):
            return given
        mapping = MapTypeInfo.mapping_of(given)
        assert mapping is not None  # the value was checked against the type
        return {of_key(name): of_value(item) for name, item in mapping.items()}

    return conform


def _same(value: Any) -> Any:
    return value
