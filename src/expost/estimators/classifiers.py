"""Linear classifiers: logistic regression of two or more classes, and a support vector machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from expost._common.namespaces import on_host
from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error, warn_caller
from expost.data.labels import ClassLabel
from expost.data.values import attempted, of_one_kind
from expost.data.weights import one_label_per_row
from expost.estimators.base import PrivateGLM
from expost.estimators.planned import label_error
from expost.exceptions import DomainError, ParameterError, PrivacyLeakWarning
from expost.fitting.prediction import likeliest, log_probabilities, probabilities
from expost.inference import ProbabilityIntervals
from expost.losses import AnyLoss, LogisticLoss, SmoothedHinge, SoftmaxLoss
from expost.privacy.plan import row_radius
from expost.privacy.shapes import classification_loss


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(ClassifierMixin, PrivateGLM):  # type: ignore[misc]
    """A private linear classifier of declared classes: two, or more where the estimator takes them."""

    classes: Sequence[Any] | None = None
    class_weight: Mapping[Any, float] | None = None

    _several: ClassVar = False
    """Whether the estimator takes more than two classes."""

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor, positive for the second class; or the score of each of several classes.

        With ``recalibrate`` the logarithm of the odds by ``calibration_curve_``, in the same order.
        """
        return self._linear_predictor(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of records whose most likely class is theirs; each counts with its sample weight.

        Records come in any form that :meth:`fit` takes. A label that was not declared is refused.

        Privacy
        -------
        Private: computed from people's records without noise.
        """
        scores, labels, weights = self._scored(X, y, sample_weight)
        assert self._labels is not None
        values = np.array(self.plan_.loss.labels.values)
        if scores.ndim == 2:
            values = values[np.argsort(self._labels)]  # in the order of `classes_`
        return float(np.average(likeliest(scores, values) == labels, weights=weights))

    def _set_label(self, y: Any) -> None:
        if self.domain is not None and not isinstance(self.domain.label, ClassLabel):
            raise label_error("classes", self.domain.label)
        labels = one_label_per_row(y)
        if self.domain is not None:
            assert isinstance(self.domain.label, ClassLabel)
            count = len(self.domain.label.classes)
            if count > 2 and not self._several:
                raise parameter_error("domain", "one whose label has 2 classes", f"{count} classes")
            if self.classes is not None:
                raise parameter_error("classes", "None with a domain, which declares them", self.classes)
            # In the order of the declaration: of two, positive scores predict the second class.
            self._labels = np.array(self.domain.label.classes)
        elif self.classes is None:
            self._labels = _inferred(on_host(labels), several=self._several)
        else:
            self._labels = _declared(self.classes, several=self._several)
        # scikit-learn's scores take the columns of more than two classes to be in sorted order.
        self.classes_ = self._labels if len(self._labels) == 2 else np.sort(self._labels)

    def _set_coefficients(self, weights: FloatArray, intercepts: FloatArray) -> None:
        assert self._labels is not None
        order = np.argsort(self._labels) if len(weights) > 1 else slice(None)
        self.coef_, self.intercept_ = weights[order], intercepts[order]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._several
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(LinearClassifier):
    r"""Logistic regression of two or more classes, released once with differential privacy.

    Minimises, with Gaussian :math:`b`, labels :math:`s_i = \pm 1` and rows scaled into the ball of
    radius ``norm``,

    .. math:: \sum_i F(-s_i\tilde x_i^\top\theta) + r(\theta)
              + \frac{\lambda}{2}\|\theta\|^2 + b^\top\theta

    where :math:`F(g) = \log(1 + e^g)`, bent to a straight line where the gradient nears its largest length
    (:class:`expost.LogisticLoss`): the noise grows with that length, so a cap on it lowers the noise.

    With :math:`K > 2` classes it is multinomial (softmax) regression in centred coordinates
    (:class:`expost.SoftmaxLoss`): ``coef_`` has one row per class, and its columns sum to zero.

    Parameters
    ----------
    epsilon, delta
        The budget: neighbouring tables differ by one added or removed row, or person.
    models
        How many models of one table share the budget, such as one for each of several outcomes, by
        scikit-learn's ``MultiOutputClassifier`` for example. All must have the same plan: the same
        arguments, and as many classes (docs/ledger.md).
    unit, rows_per_person
        For whom the budget is: ``"row"``, or ``"person"``, for each person with all of her rows; ``fit`` is
        then told whose each is (``groups``). By default each person counts once, and the model is of the
        average person; with a number, rows count alike (docs/domain.md).
    report
        What is published with the model: ``"independent"``, ``"leverage"``, ``"dependent"``, ``"adaptive"``.
    calibration
        The theorem that the noise scale relies on.
    plan
        What :func:`expost.calibrate` returns; it decides whatever it states.
    norm
        The largest norm of a row: declare it. Longer rows are scaled down. ``None`` stands for 1 and warns.
    classes
        The labels, two or more. ``None`` learns them from the table, outside the guarantee, with a warning.
    max_weight, class_weight
        The largest ``sample_weight`` that ``fit`` may be given, and the weight of each class; declared.
    domain
        What is publicly known about a record (:class:`expost.Domain`), ``norm`` and ``classes`` included.
    l2
        The regularisation :math:`\lambda` (scikit-learn's ``1 / C``); by default from public values.
    cap
        By default, as ``"gradient"``, no gradient is longer than a number that follows from the budget. A
        number is the largest slope of the loss on every row; 1, or ``"likelihood"``, is plain logistic
        regression.
    recalibrate
        Whether to publish a noisy histogram of scores and labels, for a tenth of the budget, by which
        probabilities of two classes are corrected; gradients are then cut shorter. It pays at ``epsilon`` of
        1 or more for classes that can be told apart well (an AUC above about 0.9) and a few hundred rows or
        more, ten or more for each column (docs/calibration.md, "Recalibration").
    fit_intercept
        Whether to append a constant 1 to every row. It is regularised and perturbed like the rest.
    l1
        The weight of the sum of the coefficients' absolute values, on the scale of ``l2``: coefficients that
        are mostly noise often become exactly 0. ``"auto"`` is half of the noise, ``0.5 * plan_.sigma``. The
        intercept is exempt, and the promise costs nothing more. It pays where most of more than fifty columns
        may be useless, and hardly elsewhere.
    coef_bounds
        ``(low, high)``, numbers or one for each column, between which coefficients must lie: ``(0, inf)``
        for effects that must not be negative. Public, never learnt from the table. Two classes only.
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
    calibration_curve_
        With ``recalibrate``: how often the second class occurred at each score, with noise. Public.
    insecure_
        Whether the noise came from a seed.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again, also in cross-validation or a grid search:
    :func:`expost.compose` says what several cost together, and ``account=`` counts them.

    docs/reference/models.md describes the arguments in full.

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

    cap: float | str | None = None
    recalibrate: bool = False

    _losses: ClassVar = (LogisticLoss, SoftmaxLoss)
    _of_plan: ClassVar = (*PrivateGLM._of_plan, "recalibrate")
    _of_loss: ClassVar = ("cap",)
    _several: ClassVar = True

    @overload
    def predict_proba(self, X: Any, *, interval: None = None) -> FloatArray: ...

    @overload
    def predict_proba(self, X: Any, *, interval: float) -> ProbabilityIntervals: ...

    def predict_proba(self, X: Any, *, interval: float | None = None) -> FloatArray | ProbabilityIntervals:
        r"""The probability of each class, in the order of ``classes_``.

        The sigmoid of the decision function, or the softmax of the scores, whatever the cap. Under a cap
        :math:`c` on the slope of a row the best model of two classes has odds of
        :math:`F'(\eta)/F'(-\eta)`, which lie between :math:`ce^\eta` and :math:`e^\eta` for the likelier
        class at the default caps: without noise and regularisation the sigmoid would be too sure of it by up
        to a factor of :math:`1/c` in the odds. Those two pull the other way. With ``recalibrate`` the
        published histogram of scores corrects all of it (:attr:`calibration_curve_`); the order of records
        stays.

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

    def _set_label(self, y: Any) -> None:
        super()._set_label(y)
        classes = len(self.classes_)
        if self.plan is None:
            return
        loss = self.plan.loss
        of_plan = len(loss.labels.values or ())
        if of_plan != classes or isinstance(loss, LogisticLoss) != (classes == 2):
            kind = "LogisticLoss()" if classes == 2 else f"SoftmaxLoss({classes})"
            raise ParameterError(
                f"`plan` must be made for {classes} classes, {kind}; this one is for {loss}."
            )

    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        radius = row_radius(check_positive("norm", norm), fit_intercept=bool(self.fit_intercept))
        l2 = None if self.l2 is None else check_positive("l2", self.l2) / max_weight
        classes = len(self.classes_)
        return classification_loss(
            classes,
            self.epsilon,
            self.delta,
            cap=self.cap,
            l2=l2,
            radius=radius,
            recalibrate=bool(self.recalibrate),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SmoothedHingeClassifier(LinearClassifier):
    """A linear classifier with the smoothed hinge loss, released once with differential privacy.

    Parameters
    ----------
    scale
        The width over which the hinge's corner is rounded: smaller is closer to a support vector
        machine and needs more regularisation.
    epsilon, delta, models, unit, rows_per_person, report, calibration, plan, norm, classes
        As in :class:`expost.LogisticRegression`.
    max_weight, class_weight, domain, l2, fit_intercept, l1, coef_bounds, random_state, verbose
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

    scale: float = 0.5

    _losses: ClassVar = (SmoothedHinge,)
    _of_loss: ClassVar = ("scale",)

    def _make_loss(self, norm: float, max_weight: float) -> AnyLoss:
        return SmoothedHinge(self.scale)


def _declared(classes: Sequence[Any], *, several: bool) -> NDArray[Any]:
    try:
        unique = np.unique(np.asarray(classes)) if of_one_kind(classes) else np.empty(0)
    except (TypeError, ValueError):
        unique = np.empty(0)
    if not 2 <= len(unique) == np.size(classes) or (len(unique) > 2 and not several):
        wanted = "two or more different labels" if several else "two different labels"
        wanted += " of one kind: texts, numbers or booleans"
        way_out = "Give them as a list." * (not isinstance(classes, Sequence | np.ndarray))
        raise parameter_error("classes", wanted, classes, way_out)
    return unique


def _inferred(labels: NDArray[Any], *, several: bool) -> NDArray[Any]:
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise DomainError("`y` must be finite; it contains NaN or infinity.")
    if labels.dtype.kind == "c":
        raise DomainError("Complex data not supported; `y` must hold texts or numbers of one kind.")
    classes = _classes_in(labels, several=several)
    if len(classes) < 2:
        raise DomainError("`y` has only one class; declare both with `classes` if that is meant.")
    warn_caller(
        "the class labels were learnt from the table, which the guarantee does not cover; declare them "
        "with `classes`.",
        PrivacyLeakWarning,
    )
    return classes


def _classes_in(labels: NDArray[Any], *, several: bool) -> NDArray[Any]:
    # scikit-learn's own errors would quote labels.
    found = attempted(lambda: (type_of_target(labels, input_name="y"), np.unique(labels)))
    kind, classes = found or ("unknown", labels[:0])
    if kind == "unknown":
        raise DomainError("Unknown label type: `y` must hold texts or numbers of one kind.")
    if several and kind not in ("binary", "multiclass"):
        raise DomainError(f"Unknown label type: {kind}. `y` must hold classes; declare them with `classes`.")
    if not several and kind != "binary":
        raise DomainError(f"Only binary classification is supported. The type of the target is {kind}.")
    return classes
