"""Pages in the checkpoint know where they belong."""

import zlib

import pytest

from penstock.common.errors import CheckpointError
from penstock.spark.page_store import sealed, unsealed


@pytest.mark.parametrize(
    ("data", "place", "name"),
    [
        (sealed(b"state", "1/0", "op/p0"), "1/1", "op/p0"),
        (sealed(b"state", "1/0", "op/p0"), "2/0", "op/p0"),
        (sealed(b"state", "1/0", "op/p0"), "1/0", "op/p1"),
        (b"x" + sealed(b"state", "1/0", "op/p0"), "1/0", "op/p0"),
        (sealed(b"state", "1/0", "op/p0")[:-1], "1/0", "op/p0"),
        (b"", "1/0", "op/p0"),
    ],
    ids=["another channel", "another stage", "another page", "changed", "cut", "empty"],
)
def test_a_page_that_is_damaged_or_belongs_elsewhere_is_refused(data, place, name):
    with pytest.raises(CheckpointError, match=f"page '{name}' .* is damaged"):
        unsealed(data, place, name)


def test_a_page_with_the_former_checksum_is_read():
    assert unsealed(b"state" + zlib.crc32(b"state").to_bytes(4, "big"), "1/0", "op/p0") == b"state"
