"""Seeded fits publish what they always did, to the last bit: the certificate leaves no freedom."""

import json

import pytest
import seeded

KEPT = json.loads(seeded.FILE.read_text(encoding="utf-8"))


def test_every_case_is_kept():
    assert set(KEPT) == set(seeded.CASES)


@pytest.mark.parametrize("name", seeded.CASES)
def test_published_numbers_are_the_same_to_the_last_bit(name):
    assert seeded.fitted(name) == KEPT[name]
