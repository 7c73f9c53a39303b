"""What the command line promises in plain words is what the guarantee implies."""

import numpy as np
import pytest

from expost.cli.words import REPORTS, right_at_most
from expost.privacy.scales import REPORT_KINDS


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-2)])
def test_no_test_between_two_laws_that_meet_the_promise_is_right_more_often(epsilon, delta):
    """The laws of [KOV15]_ that attain the guarantee: 0, 1, 2, 3 with these chances, and the other way round.

    References
    ----------
    .. [KOV15] P. Kairouz, S. Oh and P. Viswanath. The composition theorem for differential privacy. 2015.
    """
    likely = (1.0 - delta) * np.exp(epsilon) / (1.0 + np.exp(epsilon))
    first = np.array([delta, likely, 1.0 - delta - likely, 0.0])
    second = first[::-1]
    assert np.maximum(first - np.exp(epsilon) * second, 0.0).sum() <= delta * (1 + 1e-12)
    best = np.maximum(first, second).sum() / 2.0  # the likelier of the two is guessed
    assert 0.0 <= right_at_most(epsilon, delta) / 100.0 - best <= 0.001


def test_every_report_is_explained():
    assert set(REPORTS) == set(REPORT_KINDS)
