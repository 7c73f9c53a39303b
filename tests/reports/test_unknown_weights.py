"""A weight that nobody knows: figures at the largest one, and no wider than they have to be."""

import numpy as np
import pytest

import expost

rng = np.random.default_rng(3)
X, Y = rng.normal(size=(80, 2)) / 3, rng.integers(0, 2, 80)
LARGEST = 3.0


@pytest.fixture(scope="module", params=["independent", "leverage"])
def publication(request):
    model = expost.LogisticRegression(
        norm=1.0, classes=[0, 1], report=request.param, max_weight=LARGEST, random_state=5
    )
    return model.fit(X, Y, sample_weight=rng.uniform(0.0, LARGEST, 80)).publication_


def test_a_member_reads_what_she_would_at_the_largest_weight(publication):
    """Without a gradient her terms lie on both sides of zero, so nothing is widened."""
    unknown = publication.bounds(X, Y, member=True)
    largest = publication.bounds(X, Y, member=True, sample_weight=np.full(80, LARGEST))
    np.testing.assert_allclose(unknown.upper, largest.upper, rtol=1e-12)
    np.testing.assert_allclose(unknown.total, largest.total, rtol=1e-12)
    assert np.all(unknown.lower == 0.0)
