"""A private support vector machine with the smoothed hinge loss."""

from collections.abc import Mapping, Sequence
from typing import Any

from expost._common.validation import CalibrationName, ReportName
from expost.data.domain import Domain
from expost.estimators.classifier import LinearClassifier
from expost.losses import Loss, Regularizer, SmoothedHinge
from expost.privacy.precision import ROWS_AT_MOST


class SmoothedHingeClassifier(LinearClassifier):
    """A linear classifier with the smoothed hinge loss, released once with differential privacy.

    Parameters
    ----------
    scale
        The width over which the hinge's corner is rounded: smaller is closer to a support vector
        machine and needs more regularisation.
    epsilon, delta, norm, l2, fit_intercept, report, split
        As in :class:`expost.LogisticRegression`.
    classes, calibration, sigma, sigma_gradient, sigma_hessian, sigma_eigenvalue
        As in :class:`expost.LogisticRegression`.
    rows_at_most, max_weight, class_weight, regularizer, domain, random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_, intercept_, classes_, plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array(["no", "yes"] * 500)
    >>> expost.SmoothedHingeClassifier(norm=1.0, classes=["no", "yes"]).fit(X, y).predict(X[:2])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        scale: float = 0.5,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        norm: float | None = None,
        l2: float | None = None,
        fit_intercept: bool = True,
        report: ReportName = "independent",
        split: float | Sequence[float] | None = None,
        classes: Sequence[Any] | None = None,
        calibration: CalibrationName = "tight",
        sigma: float | None = None,
        sigma_gradient: float | None = None,
        sigma_hessian: float | None = None,
        sigma_eigenvalue: float | None = None,
        rows_at_most: int = ROWS_AT_MOST,
        max_weight: float = 1.0,
        class_weight: Mapping[Any, float] | None = None,
        regularizer: Regularizer | None = None,
        domain: Domain | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.scale = scale
        self.epsilon = epsilon
        self.delta = delta
        self.norm = norm
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.report = report
        self.split = split
        self.classes = classes
        self.calibration = calibration
        self.sigma = sigma
        self.sigma_gradient = sigma_gradient
        self.sigma_hessian = sigma_hessian
        self.sigma_eigenvalue = sigma_eigenvalue
        self.rows_at_most = rows_at_most
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.regularizer = regularizer
        self.domain = domain
        self.random_state = random_state
        self.verbose = verbose

    def _make_loss(self, norm: float, max_weight: float) -> Loss:
        return SmoothedHinge(self.scale)
