"""Exact losses of convex models against brute-force ratios of densities."""

import numpy as np
import pytest
from convex_losses import CONVEX, AsConvex, VectorAsConvex, draw_records
from problems import design_of, rows_in_ball

from expost import LogisticLoss, PseudoHuber, SmoothedNorm, SoftmaxLoss
from expost.data.convex import open_records
from expost.exceptions import ParameterError
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.objective import Objective
from expost.fitting.solvers import minimize
from expost.privacy.plan import ConvexPlan

SIGMA, L2 = 1.3, 0.4


def plan_of(loss, sigma=SIGMA, l2=L2):
    return ConvexPlan.of(loss, epsilon=1.0, delta=1e-6, l2=l2, sigma=sigma)


def opened(loss, X, y):
    return open_records(X, y, loss)


def as_seen(loss, X, y):
    """All records as the loss sees them, as one array."""
    records = opened(loss, X, y)
    return np.concatenate([block.X for part in records.sweep(list) for block in part])


def part(y, chosen):
    return None if y is None else y[chosen]


def log_density(loss, records, theta, sigma=SIGMA, l2=L2):
    """The log density of a release, up to a constant, with every Hessian written out."""
    gradient, hessian = l2 * theta, l2 * np.eye(len(theta))
    for record in records:
        one = record[None]
        gradient = gradient + loss.gradient(theta, one)[0]
        hessian = hessian + loss.hessian(theta, one)[0]
    return -gradient @ gradient / (2 * sigma**2) + np.linalg.slogdet(hessian)[1]


@pytest.mark.parametrize("loss", [*CONVEX, AsConvex(PseudoHuber(0.7), 2), SmoothedNorm(8)], ids=str)
def test_exact_losses_are_the_ratio_of_densities(loss):
    rng = np.random.default_rng(0)
    n = 14
    X, y = draw_records(loss, rng, n + 3)
    inside, outside = np.arange(n), np.arange(n, n + 3)
    table = opened(loss, X[inside], part(y, inside))
    release, private = perturb(plan_of(loss), table, noise=SeededNoise(1))
    theta, everyone = release.coefficients, as_seen(loss, X, y)
    here = log_density(loss, everyone[inside], theta)
    members = ex_post_terms(private, table, loss, member=True)
    truth = [here - log_density(loss, everyone[np.delete(inside, i)], theta) for i in inside]
    np.testing.assert_allclose(members.signed, truth, rtol=1e-9, atol=1e-11)
    assert np.all(members.determinant >= 0)
    others = opened(loss, X[outside], part(y, outside))
    outsiders = ex_post_terms(private, others, loss, member=False)
    truth = [here - log_density(loss, everyone[np.append(inside, i)], theta) for i in outside]
    np.testing.assert_allclose(outsiders.signed, truth, rtol=1e-9, atol=1e-11)
    assert np.all(outsiders.determinant <= 0)


@pytest.mark.parametrize("loss", [CONVEX[1], CONVEX[2], CONVEX[3]], ids=str)
def test_the_density_is_that_of_the_noise_pushed_through_the_fit(loss):
    """Without any Hessian: the Jacobian of the map from noise to parameters, by finite differences."""
    rng = np.random.default_rng(3)
    X, y = draw_records(loss, rng, 9)
    records, noise = opened(loss, X, y), SIGMA * rng.normal(size=loss.n_parameters)

    def fitted(chosen, tilt):
        objective = Objective(opened(loss, X[chosen], part(y, chosen)), loss, l2=L2, tilt=tilt)
        return minimize(objective, tolerance=1e-13).theta

    everyone = np.arange(9)
    theta = fitted(everyone, noise)

    def density(chosen):
        objective = Objective(opened(loss, X[chosen], part(y, chosen)), loss, l2=L2)
        tilt = -objective.evaluate(theta).gradient
        step = 1e-4
        ahead, behind = (
            np.array([fitted(chosen, tilt + sign * step * axis) for axis in np.eye(len(tilt))])
            for sign in (1.0, -1.0)
        )
        # The density of θ is that of the noise over the Jacobian of noise ↦ θ.
        return -tilt @ tilt / (2 * SIGMA**2) - np.linalg.slogdet((ahead - behind) / (2 * step))[1]

    _, private = perturb(plan_of(loss), records, noise=_Given(noise))
    np.testing.assert_allclose(private.coefficients, theta, atol=1e-10)
    truth = [density(everyone) - density(np.delete(everyone, i)) for i in range(3)]
    seen = ex_post_terms(private, records, loss, member=True).signed[:3]
    np.testing.assert_allclose(seen, truth, rtol=1e-5, atol=1e-6)


class _Given(SeededNoise):
    """Noise that was drawn before."""

    def __init__(self, noise):
        super().__init__(0)
        self._noise = noise

    def tilt(self, sigma, size, *, rounding=np.inf):
        return super().tilt(sigma, size, rounding=rounding)._replace(parts=(self._noise,))


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize(
    ("inner", "kind"),
    [(LogisticLoss(), AsConvex), (PseudoHuber(0.5), AsConvex), (SoftmaxLoss(4, cap=0.8), VectorAsConvex)],
    ids=str,
)
def test_models_of_linear_predictors_have_the_losses_of_their_own_code(inner, kind, member):
    rng = np.random.default_rng(4)
    X = rows_in_ball(rng, 60, 3)
    y = rng.choice(inner.labels.values or (-1.0, 0.2, 1.0), 60)
    convex = kind(inner, 3)
    records = opened(convex, X, y)
    release, private = perturb(plan_of(convex), records, noise=SeededNoise(2))
    seen = ex_post_terms(private, records, convex, member=member)
    truth = ex_post_terms(private, design_of(X).labelled(y), inner, member=member)
    for term in ("determinant", "quadratic", "inner_product"):
        np.testing.assert_allclose(getattr(seen, term), getattr(truth, term), rtol=1e-10, atol=1e-12)
    assert release.insecure


def test_many_records_in_blocks_agree_with_one_at_a_time():
    rng = np.random.default_rng(5)
    loss = SmoothedNorm(5)
    X = rng.normal(size=(60_000, 5))
    records = opened(loss, X, None)
    _, private = perturb(plan_of(loss), records, noise=SeededNoise(3))
    losses = ex_post_terms(private, records, loss, member=True).loss
    for i in (0, 1, 31_234, 59_999):
        alone = ex_post_terms(private, opened(loss, X[i : i + 1], None), loss, member=True).loss
        assert losses[i] == pytest.approx(alone[0], rel=1e-10)


def test_an_impossible_member_has_an_infinite_loss():
    loss = AsConvex(PseudoHuber(1.0), 2, radius=100.0)
    records = opened(loss, np.full((3, 2), 0.01), np.zeros(3))
    _, private = perturb(plan_of(loss), records, noise=SeededNoise(0))
    at = private.coefficients @ np.array([60.0, 80.0])
    stranger = opened(loss, np.array([[60.0, 80.0]]), np.array([at]))
    assert ex_post_terms(private, stranger, loss, member=True).loss[0] == np.inf


def test_membership_is_true_or_false():
    loss = SmoothedNorm(1)
    records = opened(loss, np.zeros((2, 1)), None)
    _, private = perturb(plan_of(loss), records, noise=SeededNoise(0))
    with pytest.raises(ParameterError, match="member"):
        ex_post_terms(private, records, loss, member=None)
