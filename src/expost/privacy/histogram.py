"""The cells of a histogram of scores and labels that recalibrates a model: public, from its noise alone."""

SHARE = 0.1
"""The histogram's share of the precision that the budget buys."""
LARGEST_NOISE = 2.0**32
"""Counts are whole steps of the histogram's grid up to this noise."""
# From this noise on cells are few; and where those of positive scores end.
_NOISY = 20.0
_FEW, _MANY = (0.6, 1.5, 3.0), (0.5, 1.0, 1.5, 2.25, 3.0, 4.0, 6.0)


def cell_ends(noise: float) -> tuple[float, ...]:
    """The scores at which the cells of either class end, for counts with this noise.

    Examples
    --------
    >>> cell_ends(30.0)
    (-3.0, -1.5, -0.6, 0.0, 0.6, 1.5, 3.0)
    """
    positive = _FEW if noise >= _NOISY else _MANY
    return (*(-end for end in reversed(positive)), 0.0, *positive)


def cell_count(noise: float) -> int:
    """How many cells both classes have together."""
    return 2 * (len(cell_ends(noise)) + 1)
