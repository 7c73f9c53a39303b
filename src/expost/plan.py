"""Plan: every noise scale and what it guarantees, fixed before any data is touched."""

import math
from dataclasses import dataclass
from typing import Any

from expost._validation import check_choice, check_positive, refuse
from expost.exceptions import CalibrationError
from expost.losses import LogisticLoss, Loss, PseudoHuber, SmoothedHinge, SquaredLoss

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (LogisticLoss, SmoothedHinge, PseudoHuber, SquaredLoss)
}
CALIBRATIONS = ("kifer2012",)


@dataclass(frozen=True)
class Plan:
    """What a release will add and what that guarantees: public, printable, comparable, made without data.

    ``epsilon`` is infinite where the loss has no worst case.
    """

    loss: Loss
    norm: float
    fit_intercept: bool
    epsilon: float
    delta: float
    sigma: float
    l2: float
    calibration: str

    @property
    def radius(self) -> float:
        """The largest norm of an encoded row: the intercept is one more feature, constant 1."""
        return math.hypot(self.norm, 1.0) if self.fit_intercept else self.norm


def calibrate(
    *,
    loss: Loss | str = "logistic",
    norm: float = 1.0,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    l2: float | None = None,
    sigma: float | None = None,
    fit_intercept: bool = False,
    calibration: str = "kifer2012",
) -> Plan:
    r"""Choose the noise scale and the regularisation that meet a budget, without seeing any data.

    With :math:`\xi` the largest gradient norm and :math:`\beta` the largest curvature of one record's loss,
    the classical recipe ([KST12]_; Theorem 1 of [RW21]_, which prints the variance as a standard
    deviation) is

    .. math:: \lambda \ge 2\beta/\epsilon, \qquad
              \sigma^2 = \xi^2 \, \frac{8\log(2/\delta) + 4\epsilon}{\epsilon^2}

    Parameters
    ----------
    loss
        A loss or the name of one.
    norm
        The largest norm of a row of features.
    epsilon, delta
        The budget. Where ``sigma`` is given, ``epsilon`` is not a budget but a result.
    l2
        The regularisation :math:`\lambda`; by default the smallest that the theorem allows.
    sigma
        Take this noise scale as it is (``l2`` is then required) and state what it guarantees at ``delta``.
    fit_intercept
        Whether a constant 1 is appended to every row; it counts towards the row's norm.
    calibration
        The theorem to rely on.

    Privacy
    -------
    Public in, public out.

    References
    ----------
    .. [KST12] D. Kifer, A. Smith and A. Thakurta. Private convex empirical risk minimization and
       high-dimensional regression. COLT 2012.
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.

    Examples
    --------
    >>> plan = calibrate(loss="logistic", epsilon=1.0, delta=1e-6)
    >>> round(plan.sigma, 4), plan.l2
    (10.9576, 0.5)
    """
    loss = _as_loss(loss)
    norm = check_positive("norm", norm)
    delta = check_positive("delta", delta, below=1.0)
    calibration = check_choice("calibration", calibration, CALIBRATIONS)
    radius = math.hypot(norm, 1.0) if fit_intercept else norm
    slope = loss.curve.max_slope * radius
    curvature = loss.curve.max_curvature * radius**2
    if sigma is not None:
        sigma = check_positive("sigma", sigma)
        l2 = check_positive("l2", l2, way_out="An explicit `sigma` needs an explicit `l2`.")
        epsilon = _kifer_epsilon(sigma, l2, delta, slope, curvature)
        return Plan(loss, norm, fit_intercept, epsilon, delta, sigma, l2, calibration)
    epsilon = check_positive("epsilon", epsilon)
    if math.isinf(slope):
        raise CalibrationError(
            f"no noise scale gives {type(loss).__name__} a worst-case guarantee: its slope is unbounded. "
            "Give `sigma` and `l2` to fit without one, or choose loss='pseudo_huber'."
        )
    floor = 2.0 * curvature / epsilon
    l2 = floor if l2 is None else check_positive("l2", l2)
    if l2 < floor:
        raise CalibrationError(
            f"calibration='kifer2012' needs l2 >= {floor:.6g} at epsilon={epsilon:g}; got l2={l2:g}. "
            f"Raise `l2` to {floor:.6g} or `epsilon` to {2.0 * curvature / l2:.6g}."
        )
    scale = slope * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    return Plan(loss, norm, fit_intercept, epsilon, delta, scale, l2, calibration)


def _as_loss(loss: Any) -> Loss:
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise refuse("loss", "a Loss or one of " + ", ".join(map(repr, LOSSES)), loss)


def _kifer_epsilon(sigma: float, l2: float, delta: float, slope: float, curvature: float) -> float:
    """The smallest budget whose classical recipe asks for no more than these scales."""
    if math.isinf(slope):
        return math.inf
    share = (slope / sigma) ** 2
    # The positive root of epsilon² = share (8 log(2/delta) + 4 epsilon).
    root = 2.0 * share + math.sqrt(4.0 * share**2 + 8.0 * share * math.log(2.0 / delta))
    return max(root, 2.0 * curvature / l2) * (1.0 + 1e-12)
