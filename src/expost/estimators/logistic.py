"""Private logistic regression."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import CalibrationName, ReportName, check_positive, parameter_error
from expost.data.domain import Domain
from expost.estimators.classifier import LinearClassifier
from expost.fitting.prediction import log_probabilities, probabilities
from expost.inference import ProbabilityIntervals
from expost.losses import AnyLoss, LogisticLoss, Regularizer, SoftmaxLoss
from expost.privacy.plan import row_radius
from expost.privacy.precision import ROWS_AT_MOST
from expost.privacy.shapes import classification_loss


class LogisticRegression(LinearClassifier):
    r"""Logistic regression of two or more classes, released once with differential privacy.

    Minimises, with Gaussian :math:`b`, labels :math:`s_i = \pm 1` and rows scaled into the ball of
    radius ``norm``,

    .. math:: \sum_i F(-s_i\tilde x_i^\top\theta) + r(\theta)
              + \frac{\lambda}{2}\|\theta\|^2 + b^\top\theta

    where :math:`F(g) = \log(1 + e^g)`, bent to a straight line where its slope nears ``cap``
    (:class:`expost.LogisticLoss`): the noise grows with the largest slope, so a cap below 1 lowers it.

    With :math:`K > 2` classes it is multinomial (softmax) regression in centred coordinates
    (:class:`expost.SoftmaxLoss`): ``coef_`` has one row per class, and its columns sum to zero.

    Parameters
    ----------
    epsilon, delta
        The budget: neighbouring tables differ by one added or removed row.
    norm
        The largest Euclidean norm of a row of features. Longer rows are scaled down to it, here and
        in ``predict``. Declare it; do not compute it from the table. ``None`` stands for 1 and warns; with a
        domain it stays ``None``.
    l2
        The regularisation :math:`\lambda` of the sum (scikit-learn's ``1 / C``); by default chosen from
        public values.
    cap
        The largest slope :math:`c` of the loss, between 1e-6 and 1; ``1.0`` is plain logistic regression.
        By default :math:`(1 + 1/\sqrt{1 + 2\sigma_1})/2`, with :math:`\sigma_1` the multiplier of the
        analytic Gaussian mechanism at ``epsilon`` and ``delta`` (0.56, 0.66, 0.83 at ε = 0.1, 1, 8 and
        δ = 1e-6), or 1 where ``sigma`` is given. ``plan_.loss`` says which, and where its corner is.
    fit_intercept
        Whether to append a constant 1 to every row. It is regularised and perturbed like the rest.
    report
        What is published beside the model: ``"independent"`` nothing, ``"leverage"`` a noisy Hessian,
        ``"dependent"`` also a noisy gradient, ``"adaptive"`` also the Hessian's smallest eigenvalue.
    reduced
        With more than two classes: whether the Hessian of a report is released as a matrix of the features
        alone, which needs less noise and grows with the number of features only, but gives no lower ends
        (docs/reports.md). By default where there are more than 100 coefficients in centred coordinates,
        one fewer than there are classes for each column.
    split
        How the budget is divided between the model and the report, see :func:`expost.calibrate`.
    classes
        The labels, two or more. ``None`` learns them from the table, outside the guarantee, with a warning.
    calibration
        The theorem that the noise scale relies on.
    sigma
        An explicit noise scale; needs ``l2``, and ``plan_.epsilon`` then states what it guarantees.
    sigma_gradient, sigma_hessian, sigma_eigenvalue
        Explicit noise for the statistics of ``report``; they come together with ``sigma``.
    rows_at_most
        Up to how many rows exact losses and intervals keep their stated accuracy; a public guess, no limit.
    max_weight
        The largest ``sample_weight`` that ``fit`` may be given, at least 1. Weights up to 1 cost nothing;
        larger ones cost as much as if every record had the largest.
    class_weight
        The weight of each class, ``{label: weight}``, by which sample weights are multiplied; declared, never
        computed from the table. ``"balanced"`` counts the table's labels and is refused.
    regularizer
        A further convex, twice differentiable regulariser, e.g. :class:`expost.SmoothedL1`.
    domain
        What is publicly known about a record (:class:`expost.Domain`): ``X`` is then a frame of raw records,
        and ``norm`` and ``classes`` come from the domain.
    random_state
        For tests only: a seed makes the noise repeatable and the release INSECURE.
    verbose
        Whether ``fit`` shows which step it is in, in a terminal and in a notebook.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    plan_
        The :class:`expost.Plan`: what was added and what it guarantees.
    publication_
        The :class:`expost.Publication`: everything public about the fit, ready to save.
    insecure_
        Whether the noise came from a seed.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again, also in cross-validation or a grid search:
    :func:`expost.compose` says what several cost together, and ``account=`` counts them.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0] * 500)
    >>> model = expost.LogisticRegression(epsilon=1.0, delta=1e-6, norm=1.0, classes=[0, 1]).fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> losses = model.ex_post_losses(X, y)  # only the curator may see them
    >>> bool(losses.max() < model.plan_.epsilon)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        norm: float | None = None,
        l2: float | None = None,
        cap: float | None = None,
        fit_intercept: bool = True,
        report: ReportName = "independent",
        reduced: bool | None = None,
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
        self.epsilon = epsilon
        self.delta = delta
        self.norm = norm
        self.l2 = l2
        self.cap = cap
        self.fit_intercept = fit_intercept
        self.report = report
        self.reduced = reduced
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

    def _most_classes(self) -> int | None:
        return None

    @overload
    def predict_proba(self, X: Any, *, interval: None = None) -> FloatArray: ...

    @overload
    def predict_proba(self, X: Any, *, interval: float) -> ProbabilityIntervals: ...

    def predict_proba(self, X: Any, *, interval: float | None = None) -> FloatArray | ProbabilityIntervals:
        r"""The probability of each class, in the order of ``classes_``.

        The sigmoid of the decision function, or the softmax of the scores, whatever the cap. Under a cap
        the best model of two classes has odds of
        :math:`F'(\eta)/F'(-\eta)`, which lie between :math:`ce^\eta` and :math:`e^\eta` for the likelier
        class at the default caps: without noise and regularisation the sigmoid would be too sure of it by up
        to a factor of :math:`1/c` in the odds. Those two pull the other way.

        With ``interval``, such as 0.95, the estimate, lower and upper end of each probability without
        shrinkage, as in :meth:`expost.Publication.predict_proba`.
        """
        if interval is not None:
            found = self.publication_.predict_proba(X, interval=interval)
            # Columns in the order of `classes_`, which is sorted where there are more than two.
            assert self._labels is not None
            order = [self._labels.tolist().index(label) for label in self.classes_.tolist()]
            return ProbabilityIntervals(*(figures[:, order] for figures in found))
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithm of ``predict_proba``, always finite."""
        return log_probabilities(self.decision_function(X))

    def _is_reduced(self, loss: AnyLoss, columns: int) -> bool:
        if self.reduced is None:
            return super()._is_reduced(loss, columns)
        several = len(self.classes_) > 2
        if not isinstance(self.reduced, bool | np.bool_) or (self.reduced and not several):
            wanted = "None, True or False" if several else "None or False with two classes"
            raise parameter_error("reduced", wanted, self.reduced)
        return bool(self.reduced)

    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        classes = len(self.classes_)
        scales = (self.sigma, self.sigma_gradient, self.sigma_hessian, self.sigma_eigenvalue)
        given = any(scale is not None for scale in scales)  # there is no budget that the cap could follow
        if classes > 2:
            self._refuse_for_several()
        if given:
            cap = 1.0 if self.cap is None else self.cap
            return LogisticLoss(cap=cap) if classes == 2 else SoftmaxLoss(classes, cap=cap)
        radius = row_radius(check_positive("norm", norm), fit_intercept=bool(self.fit_intercept))
        l2 = None if self.l2 is None else check_positive("l2", self.l2) / max_weight
        return classification_loss(classes, self.epsilon, self.delta, cap=self.cap, l2=l2, radius=radius)

    def _refuse_for_several(self) -> None:
        """Refuse what is not offered for more than two classes."""
        if self.regularizer is not None:
            raise parameter_error(
                "regularizer",
                "None with more than two classes",
                self.regularizer,
                "It would not treat the classes alike.",
            )
