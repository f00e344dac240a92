"""Frames: what crosses an exchange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.errors import SerializationError
from penstock.runtime.exchange.frames import decode_frame, encode_frame

ELEMENTS = st.lists(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.booleans(),
        st.tuples(st.lists(st.text(), min_size=1), st.none()),
        st.tuples(st.just(["x"]), st.just([5])),
    ),
    max_size=6,
)


@given(st.integers(-2, 2**31 - 1), st.integers(0, 100), st.text(max_size=20), st.integers(0, 2**31 - 1), ELEMENTS)
def test_frames_come_back_as_they_were(edge, level, origin, sequence, elements):
    frame = decode_frame(encode_frame(edge, level, origin, sequence, elements, "a record"))
    assert (frame.edge, frame.target_level, frame.origin, frame.sequence) == (edge, level, origin, sequence)
    decoded = frame.elements()
    assert decoded == elements
    assert list(map(type, decoded)) == list(map(type, elements))  # a watermark of 1 is not a status


def test_frames_sort_by_sequence_then_edge_then_origin():
    heads = [(1, "b", 0), (0, "a", 1), (1, "a", 0), (0, "b", 0), (0, "a", 0)]
    frames = [decode_frame(encode_frame(edge, 1, origin, sequence, [], "x")) for edge, origin, sequence in heads]
    assert [(f.sequence, f.edge, f.origin) for f in sorted(frames)] == [
        (0, 0, "a"),
        (0, 0, "b"),
        (0, 1, "a"),
        (0, 1, "b"),
        (1, 0, "a"),
    ]


def test_a_record_that_cannot_be_pickled_is_named():
    with pytest.raises(SerializationError, match="a record on its way to 'map' cannot be pickled"):
        encode_frame(0, 1, "0", 0, [(["x", (n for n in ())], None)], "a record on its way to 'map'")
