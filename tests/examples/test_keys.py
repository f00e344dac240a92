"""E22: every form of a key."""

import keys as program
import pytest

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_e22_every_form_gives_its_keys(results):
    ann, bob, cid, dan = program.TRIPLES
    larger = [(3, (3, 3)), (5, (1, 5)), (5, (5, 2))]
    assert results(program.forms_of_keys) == {
        "position, key_by(1)": [(1, ann), (1, cid), (1, dan), (2, bob)],
        "several positions, key_by(1, 2)": [((1, 7), ann), ((1, 7), cid), ((1, 8), dan), ((2, 7), bob)],
        "name, key_by('name')": [("Ann", "Ann"), ("Bob", "Bob"), ("Cid", "Cid")],
        "path, key_by('address.zip')": [("1010", "Ann"), ("1010", "Cid"), ("1020", "Bob")],
        "position in a path, key_by('birthday._2')": [(5, "Ann"), (5, "Cid"), (6, "Bob")],
        "all fields below, key_by('birthday._')": [((1, 5), "Ann"), ((1, 5), "Cid"), ((1, 6), "Bob")],
        "KeySelector, the larger of two": larger,
        "function, the larger of two": larger,
    }
