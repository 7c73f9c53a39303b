"""Compare the accountant's certificate with thousands of real neighbours, and detect a broken one."""

from dataclasses import replace

import numpy as np
import pytest
from problems import with_scales
from rich.console import Console

import expost
from expost import (
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    PseudoHuber,
    SmoothedHinge,
    SmoothedPinball,
    SquaredLoss,
)
from expost.audit import audit_plan, hockey_stick, worst_pair
from expost.exceptions import ParameterError
from expost.privacy.plan import accounting_of
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import capped_logistic

LOSSES = {
    "logistic": LogisticLoss(),
    "soft": LogisticLoss(soft=True),
    "capped": LogisticLoss(cap=0.65, corner=0.8),
    "hinge": SmoothedHinge(0.5),
    "huber": PseudoHuber(0.8),
    "quantile": SmoothedPinball(0.7, 0.5),
    "count": BoundedPoisson(1.5, 0.8),
    "amount": BoundedGamma(0.8),
}
# epsilon, l2, sigma, and the scales of what else is published: strong and weak noise, deltas from 1e-7 to
# one half, regularisation above and below the floor of the calibration.
SETTINGS = [
    (1.0, 0.5, {"sigma": 4.6}),
    (1.0, 5.0, {"sigma": 4.3}),
    (0.2, 3.0, {"sigma": 8.0}),
    (2.0, 0.05, {"sigma": 1.0}),
    (0.5, 20.0, {"sigma": 2.0}),
    (4.0, 1.0, {"sigma": 0.7}),
    (1.0, 0.5, {"sigma": 5.0, "sigma_hessian": 0.6}),
    (0.5, 2.0, {"sigma": 4.0, "sigma_gradient": 5.0}),
    (1.0, 1.0, {"sigma": 3.0, "sigma_gradient": 4.0, "sigma_hessian": 0.8}),
    (2.0, 0.3, {"sigma": 2.0, "sigma_gradient": 2.5, "sigma_hessian": 0.5, "sigma_eigenvalue": 0.9}),
]
PAIRS = 42


def draw_labels(rng, name, size):
    """Labels of all sizes that a loss declares, its ends among them."""
    labels = LOSSES[name].labels
    if labels.values is not None:
        return rng.choice(labels.values, size)
    if name in ("soft", "count"):
        ends_and_middle = np.linspace(labels.low, labels.high, 3)
        inside = rng.uniform(labels.low, labels.high, size)
        return np.where(rng.random(size) < 0.5, inside, rng.choice(ends_and_middle, size))
    if name == "amount":
        return np.where(rng.random(size) < 0.9, 10.0 ** rng.uniform(-3.0, 3.0, size), 0.0)
    return rng.standard_normal(size) * 10.0 ** rng.uniform(-1.0, 2.0, size)


def draw_pair(rng, name, norm, sigma, dimension=1):
    """Up to eight rows, half of them of full norm, half of the data sets with rows that occur often.

    Where rows occur often, the first is short and frequent enough to pull as hard as a few standard
    deviations of the noise. The worst data sets are of this kind.
    """
    n = int(rng.integers(9))
    points = rng.standard_normal((n + 1, dimension))
    points *= norm / np.linalg.norm(points, axis=1, keepdims=True)
    points *= rng.random((n + 1, 1)) ** rng.integers(2, size=(n + 1, 1))
    counts = np.ones(n)
    if n and rng.random() < 0.5:
        counts = np.floor(10.0 ** rng.uniform(0.0, 3.0 * rng.random(), n))
        points[0] *= 1e-2
        counts[0] = np.ceil(rng.uniform(0.0, 8.0) * sigma / (5e-3 * norm))
    labels = draw_labels(rng, name, n + 1)
    return {
        "X": points[:-1],
        "y": labels[:-1],
        "counts": counts,
        "record": points[-1],
        "label": float(labels[-1]),
    }


def sharpest(loss, norm, l2, scales):
    """What a plan with these scales would promise, in real arithmetic."""
    return accounting_of(loss.curve, norm).sharpest(l2, NoiseScales(**scales))


def test_there_are_at_least_two_thousand_pairs():
    assert len(LOSSES) * len(SETTINGS) * PAIRS >= 2000


@pytest.mark.parametrize("name", LOSSES)
def test_labels_are_declared_and_reach_what_is_declared(name):
    """Not only classes: of counts the largest, of amounts many sizes, of numbers both signs."""
    declared, drawn = LOSSES[name].labels, draw_labels(np.random.default_rng(0), name, 1000)
    assert np.all(declared.contains(drawn))
    if declared.values is not None:
        assert set(drawn) == set(declared.values)
        return
    assert len(set(drawn)) > 400
    assert np.min(drawn) == declared.low or np.min(drawn) < -10.0
    assert np.max(drawn) == declared.high or np.max(drawn) > 10.0


# One setting of each loss and a third of its pairs in each run, both norms and every kind of report among
# them; all in the slow one.
PAIRED = [
    *((name, 3 * place % len(SETTINGS), PAIRS // 3) for place, name in enumerate(LOSSES)),
    *(
        pytest.param(name, setting, PAIRS, marks=pytest.mark.slow)
        for name in LOSSES
        for setting in range(len(SETTINGS))
    ),
]


@pytest.mark.parametrize(("name", "setting", "pairs"), PAIRED)
def test_no_pair_exceeds_the_certificate(name, setting, pairs):
    epsilon, l2, scales = SETTINGS[setting]
    norm = 1.0 if setting % 2 else 1.5
    loss, rng = LOSSES[name], np.random.default_rng([setting, list(LOSSES).index(name)])
    certificate = sharpest(loss, norm, l2, scales).delta(epsilon).upper
    found = [
        hockey_stick(loss, **draw_pair(rng, name, norm, scales["sigma"]), epsilon=epsilon, l2=l2, **scales)
        for _ in range(pairs)
    ]
    assert max(audit.delta for audit in found) <= certificate
    # The integrals have far more correct digits than the comparison needs.
    assert all(audit.error <= 1e-6 * certificate for audit in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_no_pair_in_two_dimensions_exceeds_the_certificate(name):
    loss, rng = LOSSES[name], np.random.default_rng(7)
    scales = {"sigma": 1.5, "sigma_hessian": 0.6}
    certificate = sharpest(loss, 1.0, 0.8, scales).delta(1.0).upper
    for _ in range(2):
        pair = draw_pair(rng, name, 1.0, scales["sigma"], dimension=2)
        assert hockey_stick(loss, **pair, epsilon=1.0, l2=0.8, **scales).delta <= certificate


@pytest.mark.parametrize(
    "epsilon", [pytest.param(0.5, marks=pytest.mark.slow), 1.0, pytest.param(2.0, marks=pytest.mark.slow)]
)
def test_strong_regularisation_leaves_no_gap_and_a_broken_certificate_is_caught(epsilon, every_fifth):
    plan = expost.calibrate(loss="logistic", epsilon=epsilon, l2=5.0 / epsilon)
    found = audit_plan(plan, trials=1, random_state=0)
    assert 0.999 < found.ratio <= 1.0
    overstated = with_scales(plan, sigma=1.03 * plan.sigma)
    assert found.audited > overstated.delta_at(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_real_neighbours_attain_the_capped_plan(epsilon):
    """The theorem's noise cannot be lowered: many rows can make a record as steep as the cap."""
    plan = expost.calibrate(loss=capped_logistic(epsilon, 1e-6), epsilon=epsilon)
    found = hockey_stick(
        plan.loss, [[-0.1]], [0.0], [1.0], 0.0, counts=[1e6], epsilon=epsilon, sigma=plan.sigma, l2=plan.l2
    )
    assert 0.999 * plan.delta < found.delta <= plan.delta_at(epsilon)


@pytest.mark.slow
def test_weak_regularisation_leaves_the_gap_that_the_documents_state():
    found = audit_plan(expost.calibrate(loss="logistic", epsilon=1.0, l2=0.5), trials=50, random_state=0)
    assert found.ratio == pytest.approx(0.776, abs=0.001)


@pytest.mark.parametrize(("X", "y"), [(np.empty((0, 1)), []), ([[0.0]], [0.0])], ids=["empty", "zeros"])
def test_a_free_sign_costs_both_tails_of_the_noise(X, y):
    """Without other rows the coefficient follows the noise to either side, and the sign of the slope too."""
    plan = expost.calibrate(loss="pseudo_huber", epsilon=1.0, delta=1e-6, l2=1.164)
    pair = hockey_stick(plan.loss, X, y, [1.0], 0.0, epsilon=1.0, sigma=plan.sigma, l2=plan.l2)
    assert pair.delta / plan.delta_at(1.0) == pytest.approx(0.971, abs=0.001)


@pytest.mark.slow
def test_every_release_of_a_plan_is_audited():
    alone, everything = (
        expost.calibrate(loss="logistic", epsilon=1.0, l2=5.0, report=report, norm=2.0, fit_intercept=True)
        for report in ("independent", "adaptive")
    )
    found = audit_plan(everything, trials=1, random_state=0)
    assert 0.2 < found.ratio <= 1.0
    # Published beside statistics, the model has more noise of its own than it would need alone.
    bare = with_scales(everything, sigma_gradient=None, sigma_hessian=None, sigma_eigenvalue=None)
    assert audit_plan(bare, trials=1, random_state=0).audited < found.audited
    assert everything.sigma > alone.sigma
    assert np.linalg.norm(found.pair.record) == pytest.approx(everything.radius)


@pytest.mark.long
def test_the_result_prints_and_is_reproducible(capsys, every_fifth):
    plan = expost.calibrate(loss="smoothed_hinge", epsilon=1.0)
    first, second = (audit_plan(plan, epsilon=0.7, trials=3, random_state=5) for _ in range(2))
    assert (first.audited, first.certificate) == (second.audited, plan.delta_at(0.7))
    text = str(first)
    for part in ("epsilon = 0.7", f"{first.certificate:.6g}", f"{first.ratio:.5f}", "record ["):
        assert part in text
    Console(width=200).print(first)
    assert capsys.readouterr().out.strip() == text
    assert "no other rows" in str(replace(first.pair, X=np.empty((0, 1)), y=[], counts=[]))


def test_a_plan_without_a_worst_case_needs_an_epsilon():
    plan = expost.calibrate(loss="squared", sigma=2.0, l2=1.0)
    with pytest.raises(ParameterError, match="Give an `epsilon` if the plan has none"):
        audit_plan(plan)


@pytest.mark.long
def test_squared_loss_has_no_worst_case(every_fifth):
    """A label that is far enough away reveals a record completely."""
    found, pair = worst_pair(SquaredLoss(), norm=1.0, epsilon=1.0, sigma=2.0, l2=1.0, trials=1)
    assert found.delta > 0.999
    assert abs(pair.label) == 1000.0


def test_settings_reach_from_small_to_large_deltas():
    curve = LogisticLoss().curve
    deltas = [
        PrivacyProfile(curve, norm=1.0, l2=l2, scales=NoiseScales(**scales)).delta(epsilon, rtol=0.1).upper
        for epsilon, l2, scales in SETTINGS
    ]
    assert min(deltas) < 1e-5
    assert max(deltas) > 0.1
