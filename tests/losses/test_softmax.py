"""The softmax loss against the textbook, against many digits, and against its own claims."""

import tracemalloc
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from own_losses import Direction

from expost.exceptions import LossError, ParameterError
from expost.losses import LogisticLoss, SoftmaxCurve, SoftmaxLoss, VectorLoss
from expost.losses.check import check_loss
from expost.losses.softmax import centring

LOSSES = [SoftmaxLoss(2), SoftmaxLoss(3), SoftmaxLoss(10), SoftmaxLoss(3, cap=0.6), SoftmaxLoss(5, 0.7, 0.9)]
PLAIN = [loss for loss in LOSSES if loss.corner is None]


def textbook(scores, y):
    """``p``, ``p - e_y`` and ``diag(p) - pp'`` of one record."""
    p = np.exp(scores - scores.max())
    p /= p.sum()
    return p, p - np.eye(len(p))[y], np.diag(p) - np.outer(p, p)


def precise(loss, scores, y):
    """Gradient and Hessian in the scores, with 700 digits, from the definition in terms of q and π."""
    s = [mpmath.mpf(float(score)) for score in scores]
    others = [mpmath.mpf(0) if j == y else mpmath.exp(s[j]) for j in range(len(s))]
    total = mpmath.fsum(others)
    g = mpmath.log(total) - s[y]
    q = 1 / (1 + mpmath.exp(-g))
    kappa = q * (1 - q)
    if loss.corner is not None:
        cap, m0 = mpmath.mpf(loss.cap), mpmath.mpf(loss.link.corner_slope)
        rate = m0 * (1 - m0) / (cap - m0)
        beyond = g - mpmath.log(m0 / (1 - m0))
        if beyond > 0:
            q = cap - (cap - m0) * mpmath.exp(-rate * beyond)
            kappa = m0 * (1 - m0) * mpmath.exp(-rate * beyond)
    pi = mpmath.matrix([part / total for part in others])
    h = pi.copy()
    h[y] -= 1
    A = q * (mpmath.diag(list(pi)) - pi * pi.T) + kappa * h * h.T
    return q * h, A


def draws(loss, spread, n=40, seed=0):
    rng = np.random.default_rng([loss.classes, seed])
    return spread * rng.normal(size=(n, loss.outputs)), rng.integers(0, loss.classes, n).astype(float)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_loss_passes_its_check(loss):
    check_loss(loss)


@pytest.mark.parametrize("loss", PLAIN, ids=str)
def test_derivatives_agree_with_the_textbook(loss):
    eta, y = draws(loss, 3.0)
    Q = centring(loss.classes)
    gradient, factor = loss.derivatives(eta, y)
    for i in range(len(y)):
        p, v, A = textbook(Q @ eta[i], int(y[i]))
        assert loss.value(eta[i : i + 1], y[i : i + 1])[0] == pytest.approx(-np.log(p[int(y[i])]), rel=1e-12)
        np.testing.assert_allclose(gradient[i], Q.T @ v, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(factor[i] @ factor[i].T, Q.T @ A @ Q, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 30.0, 500.0])
def test_tiny_probabilities_keep_their_digits(loss, spread):
    """Against 700 digits, for probabilities from one down to 1e-300 and below."""
    eta, y = draws(loss, spread, n=6, seed=1)
    Q = centring(loss.classes)
    scores = eta @ Q.T
    gradient, factor = loss.derivatives(eta, y)
    scale = np.full(len(y), 0.37)
    logs, norms = loss.log_determinant(eta, y, scale), loss.curvature_norm(eta, y)
    # A double score of a thousand is off by 1e-13, and so is the logarithm of its exponential.
    digits = 1e-13 * (1.0 + np.abs(scores).max())
    with mpmath.workdps(700):
        for i in range(len(y)):
            v, A = precise(loss, scores[i], int(y[i]))
            size = float(mpmath.norm(v))
            if size < 1e-300:
                continue
            seen = Q @ gradient[i]
            truth = np.array(v.tolist(), dtype=float)[:, 0]
            np.testing.assert_allclose(seen, truth, rtol=0, atol=digits * size)
            full = Q @ factor[i] @ factor[i].T @ Q.T
            A_double = np.array(A.tolist(), dtype=float)
            # Relative to q: a Hessian that is far smaller than the gradient does not matter beside it.
            np.testing.assert_allclose(full, A_double, rtol=0, atol=10 * digits * size)
            truth = mpmath.log(mpmath.det(mpmath.eye(loss.classes) + mpmath.mpf(0.37) * A))
            assert abs(logs[i] - truth) <= 10 * digits * abs(truth) + 1e-300
            norm = mpmath.sqrt(mpmath.fsum(entry**2 for entry in A))
            assert abs(norms[i] - norm) <= 10 * digits * norm + 1e-300


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e6])
def test_closed_forms_are_those_of_the_matrix(loss, scale):
    """The base class takes eigenvalues of the factor; a Hessian has none above one half."""
    eta, y = draws(loss, 4.0)
    scales = np.full(len(y), scale)
    np.testing.assert_allclose(
        loss.log_determinant(eta, y, scales),
        VectorLoss.log_determinant(loss, eta, y, scales),
        rtol=1e-9,
        atol=1e-13,
    )
    norms = loss.curvature_norm(eta, y)
    np.testing.assert_allclose(norms, VectorLoss.curvature_norm(loss, eta, y), rtol=1e-11)
    assert np.all(norms <= 0.5 * (1 + 1e-12))
    bound = (loss.classes - 1) * np.log1p(scale / loss.classes)
    assert np.all(loss.log_determinant(eta, y, scales) <= bound * (1 + 1e-12))


@pytest.mark.parametrize("loss", PLAIN, ids=str)
def test_the_closed_forms_of_probabilities(loss):
    eta, y = draws(loss, 2.0)
    scores = eta @ centring(loss.classes).T
    for i, c in enumerate(np.linspace(0.1, 30.0, len(y))):
        p = textbook(scores[i], 0)[0]
        log_det = np.sum(np.log1p(c * p)) + np.log(np.sum(p / (1 + c * p)))
        seen = loss.log_determinant(eta[i : i + 1], y[i : i + 1], np.array([c]))[0]
        assert seen == pytest.approx(log_det, rel=1e-10)
        norm = np.sqrt(np.sum(p**2) - 2 * np.sum(p**3) + np.sum(p**2) ** 2)
        assert loss.curvature_norm(eta[i : i + 1], y[i : i + 1])[0] == pytest.approx(norm, rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_short_rows_are_covered(loss):
    """A shorter row has the gradient of another record of full length, whose Hessian is larger."""
    rng = np.random.default_rng(3)
    Q = centring(loss.classes)
    for t in (0.1, 0.5, 0.9):
        q = rng.uniform(0.01, 0.99) * loss.cap
        pi = rng.dirichlet(np.ones(loss.classes - 1) * 0.5)
        h = np.append(pi, -1.0)
        A_pi = np.diag(np.append(pi, 0.0)) - np.outer(np.append(pi, 0.0), np.append(pi, 0.0))
        kappa = loss.link.curve.curvature(np.array([q, t * q]))
        shorter = t**2 * (q * A_pi + kappa[0] * np.outer(h, h))
        longer = t * q * A_pi + kappa[1] * np.outer(h, h)
        assert np.linalg.eigvalsh(Q.T @ (longer - shorter) @ Q).min() >= -1e-15


@pytest.mark.parametrize("cap", [1.0, 0.6])
def test_two_classes_are_the_logistic_loss(cap):
    loss, scalar = SoftmaxLoss(2, cap), LogisticLoss(cap=cap)
    eta = np.linspace(-40.0, 40.0, 81)[:, None]
    for label in (0.0, 1.0):
        y = np.full(81, label)
        predictor = -np.sqrt(2.0) * eta[:, 0]  # the score of the second class above that of the first
        slope, curvature = scalar.derivatives(predictor, y)
        gradient, factor = loss.derivatives(eta, y)
        np.testing.assert_allclose(loss.value(eta, y), scalar.value(predictor, y), rtol=1e-13)
        np.testing.assert_allclose(gradient[:, 0], -np.sqrt(2.0) * slope, rtol=1e-13)
        np.testing.assert_allclose(np.sum(factor**2, axis=(1, 2)), 2.0 * curvature, rtol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_nothing_overflows_up_to_ten_thousand(loss):
    eta, y = draws(loss, 1e4)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        gradient, factor = loss.derivatives(eta, y)
        assert np.all(np.isfinite(loss.value(eta, y)))
        assert np.all(np.isfinite(loss.log_determinant(eta, y, np.full(len(y), 1e3))))
    assert np.all(np.isfinite(factor))
    assert np.all(np.linalg.norm(gradient, axis=1) <= loss.curve.max_slope * (1 + 1e-14))


@pytest.mark.parametrize("classes", [1, 0, -3, 2.5, "3", True])
def test_classes_are_counted(classes):
    with pytest.raises(ParameterError, match="`classes` must be"):
        SoftmaxLoss(classes)


def test_the_number_of_classes_has_two_names():
    assert SoftmaxLoss(n_classes=3) == SoftmaxLoss(classes=3) == SoftmaxLoss(3)
    assert replace(SoftmaxLoss(n_classes=4), cap=0.5).classes == 4
    with pytest.raises(ParameterError, match="classes"):
        SoftmaxLoss()


def test_a_cap_is_that_of_the_logistic_loss():
    assert SoftmaxLoss(3, cap=0.5).corner == 0.8
    assert str(SoftmaxLoss(3, cap=0.5)) == "SoftmaxLoss(classes=3, cap=0.5, corner=0.8)"
    with pytest.raises(ParameterError, match="`cap`"):
        SoftmaxLoss(3, cap=1.5)
    with pytest.raises(ParameterError, match="`corner`"):
        SoftmaxLoss(3, corner=0.5)


def test_a_users_own_vector_loss_passes_and_its_mistakes_are_found():
    check_loss(Direction())
    with pytest.raises(LossError, match="longer than the declared max_slope"):
        check_loss(Direction(longest=0.9))
    with pytest.raises(LossError, match="factor disagrees with finite differences"):
        check_loss(Direction(factor_scale=0.9))

    class Steeper(Direction):
        def derivatives(self, eta, y):
            gradient, factor = super().derivatives(eta, y)
            return 0.9 * gradient, factor

    with pytest.raises(LossError, match="gradient disagrees with finite differences"):
        check_loss(Steeper())

    class Flat(Direction):
        def derivatives(self, eta, y):
            gradient, factor = super().derivatives(eta, y)
            return gradient[:, 0], factor

    with pytest.raises(LossError, match="the gradient has shape"):
        check_loss(Flat())

    class OneColumn(Direction):
        def derivatives(self, eta, y):
            gradient, factor = super().derivatives(eta, y)
            return gradient, factor[:, :, 0]

    with pytest.raises(LossError, match="the factor has shape"):
        check_loss(OneColumn())


class Softened(SoftmaxLoss):
    """A softmax loss whose Hessians are scaled: no more of the set that it declares where they are larger."""

    scale = 1.0

    def derivatives(self, eta, y):
        gradient, factor = super().derivatives(eta, y)
        return gradient, self.scale * factor


@pytest.mark.parametrize("loss", LOSSES[1:], ids=str)
def test_a_declared_softmax_curve_is_verified_as_a_set(loss):
    """The gradients and Hessians of the loss are in its set; a steeper cap, or larger Hessians, are not."""
    check_loss(loss)
    larger = Softened(loss.classes, loss.cap, loss.corner)
    object.__setattr__(larger, "scale", 1.01)
    with pytest.raises(LossError, match="Hessian exceeds that of the declared softmax curve"):
        check_loss(larger)

    class Lower(SoftmaxLoss):
        curve = SoftmaxCurve(loss.classes, 0.9 * loss.cap)
        link = loss.link

    with pytest.raises(LossError, match="none of the declared softmax curve"):
        check_loss(Lower(loss.classes, loss.cap, loss.corner))


def test_a_gradient_outside_the_simplex_is_found():
    """Direction's gradients point anywhere; as long as √2 they may be, but not anywhere."""

    class Anywhere(Direction):
        curve = SoftmaxCurve(3)

    with pytest.raises(LossError, match="none of the declared softmax curve"):
        check_loss(Anywhere())


def test_a_declared_weight_is_part_of_the_softmax_curve():
    """The twin has the Hessians of weight one beside a curve of weight one half."""
    loss = SoftmaxLoss(3)

    class Halved(SoftmaxLoss):
        curve = SoftmaxCurve(3, weight=0.5)
        link = loss.link

        def derivatives(self, eta, y):
            gradient, factor = super().derivatives(eta, y)
            return 0.5 * gradient, self.bend * factor

        def value(self, eta, y):
            return 0.5 * super().value(eta, y)

    honest, twin = Halved(3), Halved(3)
    object.__setattr__(honest, "bend", np.sqrt(0.5))
    object.__setattr__(twin, "bend", 1.0)
    check_loss(honest)
    with pytest.raises(LossError, match="exceeds that of the declared softmax curve"):
        check_loss(twin)


@pytest.mark.long
def test_many_predictors_are_checked_on_a_sample_in_little_memory():
    tracemalloc.start()
    try:
        check_loss(SoftmaxLoss(60))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e8
    with pytest.raises(LossError, match="may have 1 to 256"):
        check_loss(SoftmaxLoss(300))


def test_a_sign_that_nobody_checks_may_not_be_declared():
    """With one predictor the accountant would rely on it, and this loss pulls both ways."""

    class Signed(Direction):
        @property
        def curve(self):
            return replace(super().curve, sign_fixed=True)

    with pytest.raises(LossError, match="sign_fixed"):
        check_loss(Signed())

    class Peaked(Direction):
        @property
        def curve(self):
            return replace(super().curve, peak=0.9)

    with pytest.raises(LossError, match=r"rise up to peak=0\.9"):
        check_loss(Peaked())


def swapped(loss, eta, y):
    """The derivatives for another label where the first predictor is positive."""
    return SoftmaxLoss.derivatives(loss, eta, (y + (eta[:, 0] > 0.0)) % loss.classes)


VECTOR_BREAKAGES = {
    "the value is not finite at eta=": (Direction, {"value": lambda self, eta, y: np.log(eta[:, 0])}),
    "the curve has outputs=3, the loss 2": (
        Direction,
        {"curve": property(lambda self: replace(Direction.curve.fget(self), outputs=3))},
    ),
    "the curve has outputs=4, the loss 2": (SoftmaxLoss, {"curve": SoftmaxCurve(5)}),
    "the Hessian has more than the declared rank=1 at eta=": (
        Direction,
        {"curve": property(lambda self: replace(Direction.curve.fget(self), rank=1))},
    ),
    "the gradients of the label y=0 do not point away from one class": (
        SoftmaxLoss,
        {"derivatives": swapped},
    ),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
@pytest.mark.parametrize("complaint", VECTOR_BREAKAGES)
def test_the_check_reports_what_is_wrong(complaint):
    kind, members = VECTOR_BREAKAGES[complaint]
    broken = type("Broken", (kind,), members)
    with pytest.raises(LossError, match=f"Broken is not a valid loss: .*{complaint}"):
        check_loss(broken(3) if kind is SoftmaxLoss else broken())
