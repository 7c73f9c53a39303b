"""The table of statistics and of kinds of report: what each row has to satisfy."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from expost.exceptions import ParameterError
from expost.privacy.scales import REPORT_KINDS, STATISTICS, NoiseScales

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


SCALES = NoiseScales(
    6.0, sigma_gradient=2.0, sigma_hessian=5.0, sigma_eigenvalue=7.0, sigma_recalibration=9.0
)


@pytest.mark.parametrize("name", [field.name for field in fields(NoiseScales)])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_every_noise_scale_is_positive_and_finite(name, scale):
    with pytest.raises(ParameterError, match=f"^`{name}` must be"):
        replace(SCALES, **{name: scale})


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_rows_that_come_together_count_as_often_in_what_recalibrates(count):
    """Each adds a vector of its own; the objective's noise and that of its statistics are as they were."""
    assert SCALES.for_rows(count) == replace(SCALES, sigma_recalibration=9.0 / count)
    silent = replace(SCALES, sigma_recalibration=None)
    assert silent.for_rows(count) == silent


def test_an_objective_divided_by_a_weight_has_noise_divided_by_it():
    """Its gradient and its Hessian are divided too; what rows add to recalibrate the model is not."""
    assert SCALES.over(4.0) == NoiseScales(1.5, 0.5, 1.25, 1.75, 9.0)
    assert NoiseScales(6.0).over(0.5) == NoiseScales(12.0)


def test_a_shift_is_the_distance_of_all_that_is_published():
    """By default for a Hessian of rank one, and a row that adds a unit vector to what recalibrates."""
    squares = (1.2 / 2.0) ** 2 + (0.7 / 5.0) ** 2 / 2.0 + (0.7 / 7.0) ** 2
    assert SCALES.shift(1.2, 0.7) == pytest.approx(math.sqrt(squares + (1.0 / 9.0) ** 2), rel=1e-12)
    assert SCALES.shift(1.2, 0.7, added=0.5) == pytest.approx(
        math.sqrt(squares + (0.5 / 9.0) ** 2), rel=1e-12
    )
    assert SCALES.shift(1.2, 0.7, added=0.0) == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert NoiseScales(6.0).shift(1.2, 0.7) == 0.0
