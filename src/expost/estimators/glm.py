"""A private generalised linear model of any loss."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import LossName, parameter_error
from expost.data.labels import ClassLabel
from expost.estimators.base import PrivateGLM
from expost.losses import AnyLoss, Loss, VectorLoss, as_loss


@dataclass(kw_only=True, eq=False, repr=False)
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
        ``"pseudo_huber"`` or ``"squared"``. It is taken as it is: no cap, no threshold is chosen. With a plan
        it is the plan's.
    domain
        What is publicly known about a record. Its classes stand for the loss's labels in their order; its
        numeric outcome is scaled to [-1, 1].
    epsilon, delta, models, unit, rows_per_person, report, calibration, plan, norm, max_weight
        As in :class:`expost.LogisticRegression`.
    l2, fit_intercept, l1, coef_bounds, random_state, verbose
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

    loss: AnyLoss | LossName | None = None

    _losses: ClassVar = (Loss, VectorLoss)
    _of_plan: ClassVar = (*PrivateGLM._of_plan, "loss")

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor of each record, or one column for each row of ``coef_``."""
        return self._linear_predictor(X)

    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        return as_loss(self.loss)

    def _set_label(self, y: Any) -> None:
        if self.domain is None or not isinstance(self.domain.label, ClassLabel):
            return
        loss = as_loss(self.loss) if self.plan is None else self.plan.loss
        values = loss.labels.values
        if values is None or len(values) != len(self.domain.label.classes):
            wanted = "whose label is a number" if values is None else f"whose label has {len(values)} classes"
            raise parameter_error("domain", f"one {wanted} for this loss", self.domain.label.values)
        self._labels = np.array(self.domain.label.classes)
