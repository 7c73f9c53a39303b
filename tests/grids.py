"""Grids of settings: a run of `make test` has some of their cells, the slow one has all."""

from collections import Counter
from itertools import combinations, product

import pytest


def grid(*axes, together=2, slow=lambda *_: False):
    """Return the cells of a grid, marked slow but for a few.

    The few show every ``together`` settings of different axes in one cell: each pair of settings if it is 2,
    each setting if it is 1. Cells for which ``slow`` holds are not among them, and what they alone show is
    left to the slow run.
    """
    cells = list(product(*axes))
    places = list(product(*(range(len(axis)) for axis in axes)))
    shows = {
        place: set(combinations(enumerate(place), together))
        for place, cell in zip(places, cells, strict=True)
        if not slow(*cell)
    }
    missing, chosen, used = set().union(*shows.values()), set(), Counter()

    def gain(place):
        """What a cell would show that no other does yet; among equals, with settings that were used least."""
        return len(shows[place] & missing), -sum(used[setting] for setting in enumerate(place))

    while missing:
        best = max(shows, key=gain)
        chosen.add(best)
        used.update(enumerate(best))
        missing -= shows[best]
    return [
        pytest.param(*cell, marks=[pytest.mark.slow] * (place not in chosen))
        for place, cell in zip(places, cells, strict=True)
    ]
