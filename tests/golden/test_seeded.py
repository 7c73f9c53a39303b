"""Seeded fits publish what they always did, to the last bit: the certificate leaves no freedom."""

import json

import pytest
import seeded

KEPT = json.loads(seeded.FILE.read_text(encoding="utf-8"))


def test_every_case_is_kept():
    assert set(KEPT) == set(seeded.CASES)


@pytest.mark.parametrize("name", [name for name in seeded.CASES if name != "long rows"])
def test_published_numbers_are_the_same_to_the_last_bit(name):
    assert seeded.fitted(name) == KEPT[name]


def test_rows_that_are_scaled_give_the_same_numbers_up_to_rounding():
    """The order in which squares are added to a norm decides the last bit of a row."""
    found = seeded.fitted("long rows")["coefficients"]
    assert found == pytest.approx(KEPT["long rows"]["coefficients"], rel=1e-12)
