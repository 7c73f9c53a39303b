"""The table of statistics and of kinds of report: what each row has to satisfy."""

import numpy as np
import pytest

from expost.privacy.scales import REPORT_KINDS, STATISTICS

# The events that a statistic's noise brings with it; the objective's own noise is always there.
EVENTS = {
    "gradient": {"gradient"},
    "hessian": {"hessian_below", "hessian_above"},
    "eigenvalue": {"eigenvalue"},
}


@pytest.mark.parametrize("report", REPORT_KINDS)
def test_a_failure_probability_is_shared_and_not_exceeded(report):
    kind = REPORT_KINDS[report]
    events = {"tilt"}.union(*(EVENTS[name] for name in kind.releases))
    assert kind.failure_shares.keys() == events
    assert all(share > 0.0 for share in kind.failure_shares.values())
    assert sum(kind.failure_shares.values()) == pytest.approx(1.0, abs=1e-15)
    if "gradient" in kind.releases:  # never worse than the better of the two bounds with a third each
        assert min(kind.failure_shares["gradient"], kind.failure_shares["tilt"]) > 1.0 / 3.0


@pytest.mark.parametrize("report", REPORT_KINDS)
def test_model_and_gradient_share_one_precision(report):
    kind = REPORT_KINDS[report]
    assert 0.0 < kind.model_share <= 1.0
    assert (kind.model_share < 1.0) == ("gradient" in kind.releases)


def test_sensitivities_are_distances_of_the_statistics():
    """In units of the noise: the density of the GOE has tr(E²)/4 where a normal one has E²/2."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 3))
    basis, _ = np.linalg.qr(factor)
    hessian = 0.7 * basis @ basis.T  # three equal eigenvalues, the worst of its rank
    assert STATISTICS["gradient"].sensitivity(1.3, 0.7, 3) == 1.3
    distance = np.sqrt(np.trace(hessian @ hessian) / 2.0)
    assert STATISTICS["hessian"].sensitivity(1.3, 0.7, 3) == pytest.approx(distance, rel=1e-12)
    assert STATISTICS["eigenvalue"].sensitivity(1.3, 0.7, 3) == pytest.approx(np.linalg.norm(hessian, 2))
    upper = len(np.triu_indices(4)[0])
    assert [one.entries(5, 4, 32) for one in STATISTICS.values()] == [5, upper, 1, 32]
    assert STATISTICS["recalibration"].sensitivity(1.3, 0.7, 3) == 1.0
