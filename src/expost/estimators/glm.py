"""A private generalised linear model of any loss."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import CalibrationName, LossName, ReportName, parameter_error
from expost.data.domain import Domain
from expost.data.features import ClassLabel
from expost.estimators.base import PrivateGLM
from expost.fitting.prediction import predicted_labels
from expost.losses import AnyLoss, Regularizer, as_loss
from expost.privacy.precision import ROWS_AT_MOST


class GeneralizedLinearModel(PrivateGLM):
    r"""A model of any loss of linear predictors, one's own included, released once.

    Minimises, with Gaussian :math:`b` and rows scaled into the ball of radius ``norm``,

    .. math:: \sum_i f(\Theta\tilde x_i; y_i) + r(\Theta) + \frac{\lambda}{2}\|\Theta\|^2
              + \langle b, \Theta\rangle

    for the loss :math:`f` of one linear predictor (:class:`expost.Loss`) or of several
    (:class:`expost.VectorLoss`). The guarantee rests on the derivative curve that the loss declares;
    :func:`expost.check_loss` verifies it, and ``fit`` runs that check on every loss that is not the
    library's. A loss of one's own has no proved rounding errors: its guarantee is for real arithmetic.

    Parameters
    ----------
    loss
        A loss, or the name of one of the library's: ``"logistic"``, ``"smoothed_hinge"``,
        ``"pseudo_huber"`` or ``"squared"``. It is taken as it is: no cap, no threshold is chosen.
    epsilon, delta, norm, l2, fit_intercept, report, split, calibration, sigma
        As in :class:`expost.LogisticRegression`.
    sigma_gradient, sigma_hessian, sigma_eigenvalue, rows_at_most, max_weight, regularizer
        As there.
    domain
        What is publicly known about a record. Its classes stand for the loss's labels in their order; its
        numeric outcome is scaled to [-1, 1].
    random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_
        The coefficients: a vector, or one row for each linear predictor (for each class with
        :class:`expost.SoftmaxLoss`).
    intercept_
        A number, or one for each row of ``coef_``.
    plan_, publication_, insecure_
        As in :class:`expost.LogisticRegression`. The publication of a loss of one's own states its name and
        parameters, and can be read by whoever has its class:
        ``expost.Publication.load(path, losses=[MyLoss])``.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X = np.linspace(-1.0, 1.0, 2001)[:, None]
    >>> model = expost.GeneralizedLinearModel(loss=expost.PseudoHuber(0.2), norm=1.0, fit_intercept=False)
    >>> bool(abs(model.fit(X, 0.5 * X[:, 0]).coef_[0] - 0.5) < 0.1)
    True
    """

    def __init__(
        self,
        *,
        loss: AnyLoss | LossName,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        norm: float | None = None,
        l2: float | None = None,
        fit_intercept: bool = True,
        report: ReportName = "independent",
        split: float | Sequence[float] | None = None,
        calibration: CalibrationName = "tight",
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

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor of each record, or one column for each row of ``coef_``."""
        return self._linear_predictor(X)

    def predict(self, X: Any) -> Any:
        """The predicted class or label where the loss has an obvious one, otherwise the linear predictors.

        The likelier of two classes, the likeliest under :class:`expost.SoftmaxLoss`, the probability under a
        logistic loss of soft labels; else the linear predictor, in the units of the domain's outcome.
        """
        predictor = self.decision_function(X)
        loss = self.plan_.loss
        classes = loss.labels.values if self._labels is None else self._labels
        label = None if self.domain is None else self.domain.label
        return predicted_labels(predictor, loss=loss, classes=classes, label=label)

    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        return as_loss(self.loss)

    def _set_label(self, y: Any) -> None:
        if self.domain is None or not isinstance(self.domain.label, ClassLabel):
            return
        values = as_loss(self.loss).labels.values
        if values is None or len(values) != len(self.domain.label.classes):
            wanted = "whose label is a number" if values is None else f"whose label has {len(values)} classes"
            raise parameter_error("domain", f"one {wanted} for this loss", self.domain.label.values)
        self._labels = np.array(self.domain.label.classes)

    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        alone = len(weights) == 1
        self.coef_ = weights[0] if alone else weights
        self.intercept_: float | FloatArray = float(intercepts[0]) if alone else intercepts
