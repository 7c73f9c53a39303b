"""Private models of quantiles, of counts and of positive amounts."""

from dataclasses import dataclass
from typing import Any, ClassVar

from expost._common.validation import parameter_error
from expost.data.labels import AmountLabel, CountLabel
from expost.estimators.regression import NumericRegression
from expost.losses import BoundedGamma, BoundedPoisson, Loss, SmoothedPinball
from expost.privacy.shapes import amount_loss, count_loss, quantile_loss


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileRegression(NumericRegression):
    """A quantile of a numeric outcome, linear in the features, released once with differential privacy.

    Parameters
    ----------
    level
        The quantile: 0.5 for the median, 0.9 for what one in ten exceeds.
    scale
        The width over which the corner of the pinball loss is rounded, on the scale of the fit, where the
        outcome is from -1 to 1; by default from ``epsilon`` and ``delta``.
    outcome
        As in :class:`expost.LinearRegression`.
    epsilon, delta, models, unit, rows_per_person, report, calibration, plan, norm, max_weight, domain
        As in :class:`expost.LogisticRegression`; docs/reference/models.md describes all arguments in full.
    l2, fit_intercept, l1, coef_bounds, random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_, intercept_, plan_, publication_, insecure_
        As in :class:`expost.LinearRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again. ``score`` is D² of the pinball loss, as scikit-learn's
    ``d2_pinball_score`` has it.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, rank = np.repeat(np.linspace(-1.0, 1.0, 101), 99)[:, None], np.tile(np.arange(1, 100), 101)
    >>> model = expost.QuantileRegression(level=0.9, norm=1.0, outcome=(0.0, 200.0))
    >>> model = model.fit(X, rank + 50.0 * (1.0 + X[:, 0]))
    >>> bool(abs(model.predict([[0.0]])[0] - 140.0) < 15.0)
    True
    """

    level: float = 0.5
    scale: float | None = None

    _losses: ClassVar = (SmoothedPinball,)
    _of_loss: ClassVar = ("level", "scale")

    def _make_loss(self, norm: float, max_weight: float) -> Loss:
        return quantile_loss(self.epsilon, self.delta, level=self.level, scale=self.scale)


@dataclass(kw_only=True, eq=False, repr=False)
class _LogLinear(NumericRegression):
    """A model of the logarithm of an outcome's mean, which needs the outcome's bounds."""

    threshold: float | None = None

    _of_loss: ClassVar = ("threshold",)

    def _undeclared(self) -> None:
        way_out = "Or give a `domain` (expost.Domain). Never compute bounds from the table."
        wanted = f"declared: the public bounds (low, high) of `y`, {self._order}"
        raise parameter_error("outcome", wanted, None, way_out)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PoissonRegression(_LogLinear):
    """Poisson regression of a count, with a logarithmic link, released once with differential privacy.

    Residuals pull with at most ``threshold``, so that the mean of counts with a few very large ones is
    estimated a little too low (:class:`expost.BoundedPoisson`).

    Parameters
    ----------
    outcome
        The public bounds ``(low, high)`` of ``y``, ``0 <= low < high``. They must be declared, here or with a
        domain whose label has ``kind = "count"``; counts beyond them count as the bound.
    threshold
        The residual at which the loss turns from squared to absolute, in units of an eighth of the largest
        count; by default from ``epsilon`` and ``delta``.
    epsilon, delta, models, unit, rows_per_person, report, calibration, plan, norm, max_weight, domain
        As in :class:`expost.LogisticRegression`; docs/reference/models.md describes all arguments in full.
    l2, fit_intercept, l1, coef_bounds, random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_
        As in scikit-learn.
    intercept_
        For a count in units of an eighth of the largest one: add the logarithm of that for the unit 1.
    plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again. ``score`` is D², the explained share of the Poisson
    deviance, as in scikit-learn's ``PoissonRegressor``.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 4001)[:, None]
    >>> model = expost.PoissonRegression(norm=1.0, outcome=(0, 40))
    >>> model = model.fit(X, np.rint(5.0 * np.exp(X[:, 0])))
    >>> bool(abs(model.predict([[0.0]])[0] - 5.0) < 0.5)
    True
    """

    _losses: ClassVar = (BoundedPoisson,)
    _label: ClassVar = CountLabel
    _order: ClassVar = "0 <= low < high"

    def _make_loss(self, norm: float, max_weight: float) -> Loss:
        return count_loss(self.epsilon, self.delta, threshold=self.threshold)


@dataclass(kw_only=True, eq=False, repr=False)
class GammaRegression(_LogLinear):
    """Gamma regression of a positive amount, with a logarithmic link, released once.

    Relative residuals pull with at most ``threshold``, so that the mean of amounts with a long tail is
    estimated too low (:class:`expost.BoundedGamma`); docs/losses.md says by how much.

    Parameters
    ----------
    outcome
        The public bounds ``(low, high)`` of ``y``, ``0 < low < high``. They must be declared, here or with a
        domain whose label has ``kind = "amount"``; amounts beyond them count as the bound.
    threshold
        The relative residual at which the loss turns from squared to absolute; by default from ``epsilon``
        and ``delta``.
    epsilon, delta, models, unit, rows_per_person, report, calibration, plan, norm, max_weight, domain
        As in :class:`expost.LogisticRegression`; docs/reference/models.md describes all arguments in full.
    l2, fit_intercept, l1, coef_bounds, random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_
        As in scikit-learn.
    intercept_
        For an amount in units of the geometric mean of the bounds: add the logarithm of that for the unit 1.
    plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again. ``score`` is D², the explained share of the Gamma
    deviance, as in scikit-learn's ``GammaRegressor``.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 4001)[:, None]
    >>> model = expost.GammaRegression(norm=1.0, outcome=(10.0, 10_000.0)).fit(X, 300.0 * np.exp(X[:, 0]))
    >>> bool(abs(model.predict([[0.0]])[0] - 300.0) < 30.0)
    True
    """

    _losses: ClassVar = (BoundedGamma,)
    _label: ClassVar = AmountLabel
    _order: ClassVar = "0 < low < high"

    def _make_loss(self, norm: float, max_weight: float) -> Loss:
        return amount_loss(self.epsilon, self.delta, threshold=self.threshold)
