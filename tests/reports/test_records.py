"""What both ends of an interval and both sides of membership share."""

import numpy as np
import pytest
from problems import linear_records

from expost.reports.records import WEIGHTS, Pencil, ScalarRecords, by_mixtures, mixtures, smallest_ratio


def made(rng, count=40, dimension=5):
    rows, slope = rng.normal(size=(count, dimension)), rng.normal(size=count)
    curvature = np.append(rng.uniform(0.0, 0.3, count - 3), [0.0, 1e-300, 1e300])
    return linear_records(rows, slope, curvature)


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize("lowest", [-2.0, 1.0])
def test_the_smallest_of_all_mixtures_is_that_of_plain_inverses(member, lowest):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    lower, floor = np.array([lowest, 2.0, 3.0, 5.0, 8.0]), 1.5
    records, pencil = made(rng), mixtures(basis, lower, floor, 0.5, WEIGHTS)
    expected = np.full(len(records.norm), np.inf)
    for weight in pencil.weights:
        matrix = (basis * (weight * lower + (1.0 - weight) * floor)) @ basis.T
        leverage = records.at.curvature * np.vecdot(
            records.at.rows.stored, np.linalg.solve(matrix, records.at.rows.stored.T).T
        )
        left = 1.0 - (weight * leverage if member else 0.0)
        here = np.where(left > 0.0, leverage / np.where(left > 0.0, left, 1.0), np.inf)
        expected = np.minimum(expected, np.log1p(here))
    found = records.above(pencil, pencil.weights if member else 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_ratios_at_the_edges():
    """Nothing at all, so little that its reciprocal overflows, as much as there is, and more."""
    forms = np.array([[0.0, 1e-310, 0.5, 1.0, 2.0], [0.0, 1e-310, 0.25, 2.0, 4.0]])
    found = smallest_ratio(forms, by_mixtures(np.array([0.5, 1.0])))
    np.testing.assert_allclose(found, [0.0, 1e-310, 1.0 / 3.0, 2.0, np.inf], rtol=1e-15, atol=1e-308)


def test_a_record_that_is_more_than_there_is_has_no_smallest_determinant():
    """Of an upper bound of the Hessian: where it is below the record's part, nothing is known of a member."""
    records = linear_records(np.ones((5, 1)), np.ones(5), np.array([0.25, 0.5, 1.0, 1.5, 3.0]))
    one = Pencil.single(np.eye(1), np.ones(1))
    known = [-np.log(0.75), np.log(2.0), 0.0, 0.0, 0.0]
    np.testing.assert_allclose(records.below(one, member=True), known, rtol=1e-14)
    np.testing.assert_allclose(records.below(one, member=False), np.log1p(records.at.curvature), rtol=1e-14)


def test_a_basis_is_turned_to_once_and_another_one_again(monkeypatch):
    """Also where a basis is gone and another has its place in memory."""
    calls = 0
    rotated = ScalarRecords.rotated

    def counted(records, basis):
        nonlocal calls
        calls += 1
        return rotated(records, basis)

    monkeypatch.setattr(ScalarRecords, "rotated", counted)
    rng = np.random.default_rng(1)
    records = made(rng)
    basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    public, upper = mixtures(basis, np.arange(1.0, 6.0), 1.0, 0.1, WEIGHTS), Pencil.single(basis, np.ones(5))
    for member in (True, False):
        records.above(public, public.weights if member else 0.0)
        records.below(upper, member=member)
    assert calls == 1
    for scale in range(2, 6):
        own = Pencil.single(scale * np.eye(5), np.ones(5))
        with np.errstate(over="ignore"):
            expected = np.log1p(records.at.curvature * scale**2 * records.norm**2)
        np.testing.assert_allclose(records.below(own, member=False), expected, rtol=1e-12)
        del own
    assert calls == 5
