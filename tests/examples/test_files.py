"""8-3 to 8-5: files."""

import files as program
import pytest

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_8_3_all_lines_of_all_files_are_read(results):
    assert sorted(results(program.read_files)) == sorted(program.READINGS)


def test_8_4_every_line_is_in_a_part_once(results):
    expected = sorted(f"{sensor} {temperature}" for sensor, temperature in program.READINGS)
    assert results(program.write_rows) == {"lines of all parts": expected}


def test_8_5_every_row_is_in_a_part_once(results):
    assert results(program.write_parquet) == {"rows of all parts": sorted(program.READINGS)}
