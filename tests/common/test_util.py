import pickle

import pytest

from penstock.common.errors import PenstockError
from penstock.util import exceptions
from penstock.util.api_stability_decorators import Deprecated, Experimental, Internal, Public, PublicEvolving


@pytest.mark.parametrize("name", exceptions.__all__)
def test_table_exceptions_are_penstock_errors_and_survive_pickling(name):
    error = getattr(exceptions, name)("orders")
    assert isinstance(error, PenstockError)
    assert str(pickle.loads(pickle.dumps(error))) == "orders"


@pytest.mark.parametrize("mark", [Public(), PublicEvolving(), Experimental(), Internal(), Deprecated("1.0")])
def test_marks_add_a_note_and_change_nothing_else(mark):
    def function():
        """Does it."""
        return 5

    assert mark(function) is function
    assert function() == 5
    assert function.__doc__.startswith("Does it.")
    assert mark.get_directive(function) in function.__doc__
