"""Private regression of numbers, and linear regression."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from expost._common.validation import (
    RegressionLossName,
    check_choice,
    check_positive,
    parameter_error,
    warn_caller,
)
from expost.data.labels import NumberLabel, NumericLabel
from expost.estimators.base import PrivateGLM
from expost.estimators.planned import label_error
from expost.exceptions import UndeclaredWarning
from expost.fitting.prediction import explained
from expost.losses import Loss, PseudoHuber, SquaredLoss
from expost.privacy.plan import row_radius
from expost.privacy.shapes import regression_loss


@dataclass(kw_only=True, eq=False, repr=False)
class NumericRegression(RegressorMixin, PrivateGLM):  # type: ignore[misc]
    """A model of one linear predictor whose outcome is a number with declared bounds."""

    outcome: tuple[float, float] | None = None

    _label: ClassVar[type[NumericLabel]] = NumberLabel
    _order: ClassVar[str] = "low < high"

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share explained, R² of a mean and else D²; each record counts with its sample weight.

        Records come in any form that :meth:`fit` takes. Labels beyond the declared bounds count as the bound,
        as there. Where all labels are the same, it is 1 for perfect predictions and 0 for any others.

        Privacy
        -------
        Private: computed from people's records without noise.
        """
        scores, labels, weights = self._scored(X, y, sample_weight)
        return explained(scores, labels, self.plan_.loss, weights)

    def _set_label(self, y: Any) -> None:
        if self.domain is not None:
            if not isinstance(self.domain.label, self._label):
                raise label_error(f"kind={self._label.model_fields['kind'].default!r}", self.domain.label)
            if self.outcome is not None:
                raise parameter_error("outcome", "None with a domain, which declares it", self.outcome)
        elif self.outcome is not None:
            self._outcome = self._bounded()
        else:
            self._undeclared()

    def _undeclared(self) -> None:
        """Warn that labels are taken as they are."""
        warn_caller(
            "`outcome` was not declared, so `y` is taken as it is, and one that is not scaled to about "
            "[-1, 1] gives a useless model. Declare outcome=(low, high), or `domain` (expost.Domain); "
            "outcome=(-1, 1) where `y` is scaled already. Never compute bounds from the table.",
            UndeclaredWarning,
        )

    def _bounded(self) -> Any:
        """The declared bounds as a label, or ParameterError."""
        with suppress(TypeError, ValueError):  # pydantic's errors are ValueErrors
            low, high = map(float, self.outcome)  # type: ignore[arg-type]
            return self._label.model_validate({"name": "outcome", "low": low, "high": high})
        raise parameter_error("outcome", f"two finite numbers (low, high) with {self._order}", self.outcome)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check of the score fits 200 rows; at epsilon = 1 their R² stays below one half.
        tags.regressor_tags.poor_score = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(NumericRegression):
    """Linear regression, released once with differential privacy.

    Parameters
    ----------
    loss
        ``"pseudo_huber"``, or ``"squared"``, which has no worst case and needs a plan with ``sigma`` and
        ``l2``.
    threshold
        Where the pseudo-Huber loss turns from squared to absolute; by default from ``epsilon``, ``delta`` and
        the length of the row: no gradient is longer than those of the longest rows.
    outcome
        The public bounds ``(low, high)`` of ``y``: declare them. ``None`` takes ``y`` as it is and warns.
    recalibrate
        Whether to publish five noisy moments of predictions and residuals, for 3% of the budget, by which
        predictions are shifted and stretched. It pays for outcomes that are skewed, such as counts of visits
        or limits of credit (docs/calibration.md, "Recalibration").
    epsilon, delta, models, unit, rows_per_person, report, calibration, plan, norm, max_weight, domain
        As in :class:`expost.LogisticRegression`; docs/reference/models.md describes all arguments in full.
    l2, fit_intercept, l1, coef_bounds, random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_, intercept_
        As in scikit-learn, for an outcome on the scale of the fit: [-1, 1] where its bounds were declared.
    calibration_curve_
        With ``recalibrate``: the line by which predictions are corrected, a
        :class:`~expost.fitting.recalibration.CalibrationLine`. Public.
    plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 2001)[:, None]
    >>> model = expost.LinearRegression(norm=1.0, outcome=(0.0, 500.0)).fit(X, 250.0 + 200.0 * X[:, 0])
    >>> bool(abs(model.predict([[0.5]])[0] - 350.0) < 25.0)
    True
    """

    loss: RegressionLossName = "pseudo_huber"
    threshold: float | None = None
    recalibrate: bool = False

    _losses: ClassVar = (PseudoHuber, SquaredLoss)
    _of_plan: ClassVar = (*PrivateGLM._of_plan, "loss", "recalibrate")
    _of_loss: ClassVar = ("threshold",)

    def _make_loss(self, norm: float, max_weight: float) -> Loss:
        check_choice("loss", self.loss, ("pseudo_huber", "squared"))
        if self.loss == "squared":
            return SquaredLoss()
        radius = row_radius(check_positive("norm", norm), fit_intercept=bool(self.fit_intercept))
        return regression_loss(self.epsilon, self.delta, threshold=self.threshold, radius=radius)
