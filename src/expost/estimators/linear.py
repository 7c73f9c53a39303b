"""Private linear regression."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import RegressorMixin

from expost._common.typing import FloatArray
from expost._common.validation import check_choice, parameter_error
from expost.data.domain import Domain
from expost.data.features import NumberLabel
from expost.estimators.base import PrivateGLM
from expost.losses import Loss, PseudoHuber, Regularizer, SquaredLoss
from expost.privacy.precision import ROWS_AT_MOST
from expost.privacy.shapes import default_threshold


class LinearRegression(RegressorMixin, PrivateGLM):  # type: ignore[misc]
    """Linear regression, released once with differential privacy.

    Parameters
    ----------
    loss
        ``"pseudo_huber"`` has a bounded slope and so a worst-case guarantee. ``"squared"`` has none at any
        noise scale: it requires ``sigma`` and ``l2``, and ``plan_.epsilon`` is infinite. Exact losses after
        the fact still exist.
    threshold
        Where the pseudo-Huber loss turns from squared to absolute. It is also the largest pull of one record,
        so the noise grows with it. In units of half the range of the label that ``domain`` declares. Without
        a domain it is in units of ``y``: scale ``y`` to [-1, 1] by public constants first. By default chosen
        from ``epsilon`` and ``delta`` (docs/calibration.md), and stated in ``plan_`` and the publication.
    epsilon, delta, norm, l2, fit_intercept, report, split, calibration, sigma
        As in :class:`expost.LogisticRegression`.
    sigma_gradient, sigma_hessian, sigma_eigenvalue, rows_at_most, max_weight, regularizer, domain
        As there.
    random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_, intercept_, plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 2001)[:, None]
    >>> model = expost.LinearRegression(norm=1.0, fit_intercept=False).fit(X, 2.0 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 2.0) < 0.3)
    True
    """

    def __init__(
        self,
        *,
        loss: str = "pseudo_huber",
        threshold: float | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        norm: float | None = None,
        l2: float | None = None,
        fit_intercept: bool = True,
        report: str = "independent",
        split: float | Sequence[float] | None = None,
        calibration: str = "tight",
        sigma: float | None = None,
        sigma_gradient: float | None = None,
        sigma_hessian: float | None = None,
        sigma_eigenvalue: float | None = None,
        rows_at_most: int = ROWS_AT_MOST,
        max_weight: float = 1.0,
        regularizer: Regularizer | None = None,
        domain: Domain | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.threshold = threshold
        self.epsilon = epsilon
        self.delta = delta
        self.norm = norm
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.report = report
        self.split = split
        self.calibration = calibration
        self.sigma = sigma
        self.sigma_gradient = sigma_gradient
        self.sigma_hessian = sigma_hessian
        self.sigma_eigenvalue = sigma_eigenvalue
        self.rows_at_most = rows_at_most
        self.max_weight = max_weight
        self.regularizer = regularizer
        self.domain = domain
        self.random_state = random_state
        self.verbose = verbose

    def predict(self, X: Any) -> FloatArray:
        """The predicted label of each record."""
        predictor = self._linear_predictor(X)
        return predictor if self.domain is None else self.domain.unscale_outcome(predictor)

    def _make_loss(self, norm: float, max_weight: float) -> Loss:
        check_choice("loss", self.loss, ("pseudo_huber", "squared"))
        if self.loss == "pseudo_huber":
            chosen = default_threshold(self.epsilon, self.delta) if self.threshold is None else self.threshold
            return PseudoHuber(chosen)
        if self.threshold is not None:
            raise parameter_error("threshold", "None with loss='squared'", self.threshold)
        return SquaredLoss()

    def _set_classes(self, y: Any) -> None:
        if self.domain is not None and not isinstance(self.domain.label, NumberLabel):
            raise parameter_error("domain", "one whose label is a number", self.domain.label.kind)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check of the score fits 200 rows; at epsilon = 1 their R² stays below one half.
        tags.regressor_tags.poor_score = True
        return tags

    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        self.coef_ = weights[0]
        self.intercept_ = float(intercepts[0])
