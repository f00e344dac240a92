"""Check emitted records against the type that the user declared.

The check runs only if a type was declared. A predicate compiled for the type accepts records of the usual Python
classes. Only other records go through the type's own `validate`, which is slower, and are converted to the form of the
type. The check also gives rows the field names of their type and rounds FLOATs to 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.errors import TypeMismatchError
from penstock.common.typeinfo import BasicTypeInfo, PickledBytesTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.typeinfo.base import checked_type
from penstock.common.types import Row
from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.operators.record_form import compile_form, compile_serialized, holds_floats
from penstock.runtime.operators.row_check import NameRows, compile_row_loop
from penstock.runtime.records.batch import Timestamps, Values

Predicate = Callable[[Any], bool]

_QUICK = {
    "STRING": "type({v}) is str",
    "BOOLEAN": "type({v}) is bool",
    "BYTE": "type({v}) is int and -128 <= {v} <= 127",
    "SHORT": "type({v}) is int and -32768 <= {v} <= 32767",
    "INT": "type({v}) is int and -2147483648 <= {v} <= 2147483647",
    "LONG": "type({v}) is int and -9223372036854775808 <= {v} <= 9223372036854775807",
    "FLOAT": "type({v}) is float",
    "DOUBLE": "type({v}) is float",
    "BIG_INT": "type({v}) is int",
}
_MAX_DEPTH = 4


def declare_output_type(operator: StreamOperator, output_type: TypeInformation | None) -> None:
    """Check the records that `operator` emits against this type (see `checked_output`)."""
    if output_type is not None and _has_content(checked_type(output_type, "the output type")):
        operator.output_type = output_type


def declare_kept_type(operator: StreamOperator, kept_type: TypeInformation | None) -> None:
    """Round the FLOATs of results with the type of the operator's input: sums of FLOATs are FLOATs."""
    if kept_type is not None and holds_floats(kept_type):
        operator.output_type = kept_type


def checked_output(output: Output, operator: StreamOperator, context: OperatorContext) -> Output:
    """Return the output to give to the operator: `output`, or a checking one in front of it if a type was declared."""
    return typed_output(output, operator.output_type, context, "output")


def typed_output(output: Output, output_type: TypeInformation | None, context: OperatorContext, label: str) -> Output:
    """Return `output`, or a checking one in front of it if a type was declared. `label` names the output in errors."""
    if output_type is None or not _has_content(output_type):
        return output
    return TypeCheckedOutput(output, output_type, context, label)


def _has_content(output_type: TypeInformation | None) -> bool:
    return output_type is not None and type(output_type) is not PickledBytesTypeInfo


class TypeCheckedOutput:
    """Passes records on if they fit the type."""

    __slots__ = (
        "_accept",
        "_context",
        "_form",
        "_label",
        "_name_plain_rows",
        "_output",
        "_serialized",
        "_type",
        "emit_status",
        "emit_watermark",
    )

    def __init__(self, output: Output, output_type: TypeInformation, context: OperatorContext, label: str) -> None:
        self._output = output
        self._label = label
        self._type = output_type
        self._context = context
        self._accept = compile_predicate(output_type)
        self._form = compile_form(output_type)
        self._serialized = compile_serialized(output_type)
        self._name_plain_rows = _compile_plain_rows(output_type)
        self.emit_watermark = output.emit_watermark
        self.emit_status = output.emit_status

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Check the records, then pass them on."""
        if self._name_plain_rows is not None and not self._name_plain_rows(values):
            self._output.emit(values, timestamps)
            return
        accept = self._accept
        strange = [value for value in values if not accept(value)]
        if strange:
            self._validate(strange)
            form = self._form
            if form is not None:
                values = [value if accept(value) else form(value) for value in values]
        serialized = self._serialized
        self._output.emit(values if serialized is None else [serialized(value) for value in values], timestamps)

    def _validate(self, values: Values) -> None:
        found = self._type.first_mismatch(values)
        if found is not None:
            position, reason = found
            raise TypeMismatchError(
                f"a record does not fit the declared {self._label} type {self._type!r}: {reason}",
                operator_name=self._context.operator_name,
                record=values[position],
            )


def compile_predicate(output_type: TypeInformation) -> Predicate:
    """Return a predicate: true for values that certainly fit the type, false for those that `validate` must check.

    >>> from penstock.common.typeinfo import Types
    >>> fits = compile_predicate(Types.TUPLE([Types.STRING(), Types.INT()]))
    >>> fits(("a", 1)), fits(("a", "b")), fits(("a", 2**40))
    (True, False, False)
    """
    source = _expression(output_type, "v", 0)
    # The source consists only of the templates above, numbers and quoted names.
    predicate: Predicate = eval(f"lambda v: {source or 'False'}", {"Row": Row})  # noqa: S307
    return predicate


def _expression(output_type: TypeInformation, value: str, depth: int) -> str | None:
    if isinstance(output_type, BasicTypeInfo):
        template = _QUICK.get(output_type.basic_type.name)
        return None if template is None else template.format(v=value)
    if type(output_type) is TupleTypeInfo:
        return _fields_expression(output_type.get_field_types(), "tuple", value, value, depth)
    if type(output_type) is RowTypeInfo:
        fields = _fields_expression(output_type.get_field_types(), "Row", value, f"{value}._values", depth)
        names = tuple(output_type.get_field_names())
        return fields and f"{fields} and ({value}._fields is None or {value}._fields == {names!r})"
    return None


def _compile_plain_rows(output_type: TypeInformation) -> NameRows | None:
    """Compile the fast path for rows of scalars. Return None for other types."""
    if type(output_type) is not RowTypeInfo or not output_type.get_field_types():
        return None
    types = output_type.get_field_types()
    if holds_floats(output_type) or not all(isinstance(field_type, BasicTypeInfo) for field_type in types):
        return None
    conditions = [_expression(field_type, f"f{position}", 1) for position, field_type in enumerate(types)]
    if None in conditions:
        return None
    return compile_row_loop(output_type.get_field_names(), [condition or "" for condition in conditions])


def _fields_expression(types: list[TypeInformation], kind: str, value: str, fields: str, depth: int) -> str | None:
    parts = [f"type({value}) is {kind} and len({fields}) == {len(types)}"]
    for position, field_type in enumerate(types):
        part = _expression(field_type, f"{fields}[{position}]", depth + 1) if depth < _MAX_DEPTH else None
        if part is None:
            return None
        parts.append(f"({part})")
    return " and ".join(parts)
