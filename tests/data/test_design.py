import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from problems import all_rows, design_of

from expost.exceptions import DomainError


def encoded(X, norm=1.0, fit_intercept=False):
    design = design_of(np.asarray(X, dtype=float), norm=norm, fit_intercept=fit_intercept)
    return design.design, all_rows(design)


def test_long_rows_are_scaled_and_short_ones_left_alone():
    _, rows = encoded([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0]], norm=2.0)
    np.testing.assert_allclose(rows, [[1.2, 1.6], [0.3, -0.4], [0.0, 0.0]], rtol=1e-14)
    assert rows[1].tolist() == [0.3, -0.4]


def test_the_intercept_is_one_more_feature():
    design, rows = encoded([[3.0, 4.0]], fit_intercept=True)
    assert design.dimension == 3
    assert design.radius == pytest.approx(np.sqrt(2.0))
    assert rows[0, 2] == 1.0


@pytest.mark.long
@given(
    hnp.arrays(
        float,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(-1.7e308, 1.7e308, allow_subnormal=True),
    ),
    st.floats(1e-6, 1e6),
)
@settings(deadline=None, max_examples=300)
def test_no_encoded_row_is_longer_than_the_ball(X, norm):
    """Checked in exact rational arithmetic: rounding must never make a row too long."""
    from fractions import Fraction

    _, rows = encoded(X, norm=norm)
    assert np.all(np.isfinite(rows))
    for row in rows:
        assert sum(Fraction(float(entry)) ** 2 for entry in row) <= Fraction(norm) ** 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_without_saying_where(bad):
    X = np.zeros((7, 3))
    X[4, 1] = bad
    with pytest.raises(DomainError, match="NaN or infinity") as caught:
        encoded(X)
    assert "4" not in str(caught.value)
