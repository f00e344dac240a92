"""Predicates that decide when to retry an asynchronous call, under PyFlink's name."""

from penstock.core.functions.async_io import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]
