"""Experiments with the mechanism: seeded draws, exact losses at any coefficients, reports of one's own."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.blocks import Block
from expost.data.convex import open_records
from expost.data.design import labels_error
from expost.data.encoding import Encoded, encode_records
from expost.data.values import attempted
from expost.data.weights import Declared
from expost.exceptions import ParameterError
from expost.fitting.ex_post import LossTerms as LossTerms, ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.fitting.private_fit import PrivateFit as PrivateFit, recover
from expost.fitting.release import Release as Release
from expost.privacy.plan import ConvexPlan, Plan, check_rows
from expost.reports.base import CONFIDENCE, Bounds, Figures as Figures, Scope, check_confidence
from expost.reports.evaluate import evaluate
from expost.reports.laws import Drift as Drift


class Report(Protocol):
    """A report of one's own: a function of what was released and of the records that are asked about.

    Privacy
    -------
    It is given public values and the records alone, so it reveals nothing beyond the release.
    """

    def __call__(
        self, release: Release, rows: FloatArray, labels: FloatArray, *, failure: float, member: bool | None
    ) -> Figures:
        """Figures that each hold with probability ``1 - failure``, for records fixed before the release.

        ``rows`` are some of the records as the mechanism saw them: inside the ball, the intercept's column
        included; for a convex loss in its declared set, with the label as the last column. Do not keep them:
        their memory is used again. :class:`~expost.research.Drift` says what to add because printed
        coefficients are not the exact minimiser.
        """
        ...


def draw(plan: Plan, X: Any, y: Any, *, random_state: Any, groups: Any = None) -> tuple[Release, PrivateFit]:
    r"""Draw one release of a table: its public part, and the private one.

    .. math:: b \sim N(0, \sigma^2I), \qquad \hat\theta = \arg\min_\theta J(\theta; D) + b^\top\theta, \qquad
              J(\theta; D) = \sum_i \ell(\theta; z_i) + \frac\lambda2\|\theta\|^2

    and the noisy statistics that the plan names.

    Parameters
    ----------
    plan
        What :func:`expost.calibrate` or :func:`expost.calibrate_convex` returns, for a budget or for noise
        scales of one's own.
    X, y
        Rows and labels as the loss has them: those of :meth:`expost.Domain.encode`, with outcomes on the
        scale of the fit, of :meth:`expost.Domain.scale_outcome`. A loss of numbers takes those of any size.
    random_state
        A seed or a generator, which makes the release INSECURE; None for exact noise.
    groups
        Whose each row is, for a plan with ``unit="person"``: a row weighs one divided by the number of its
        person's rows.

    Privacy
    -------
    Spends what the plan states; with a seed nothing is private. The second part of the result is private.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.6, 0.8], [0.8, -0.6]] * 50), np.array([1, 0] * 50)
    >>> release, private = draw(expost.calibrate(epsilon=1.0), X, y, random_state=0)
    >>> truth = losses(release, private, X, y, member=True).loss
    >>> bool(np.all(truth <= bounds(release, X, y, confidence=1 - 1e-9, member=True).upper))
    True
    """
    return perturb(plan, _encoded(plan, X, y, groups), noise=noise_source(random_state))


def imagine(
    plan: Plan, X: Any, y: Any, coefficients: Any, *, groups: Any = None
) -> tuple[Release, PrivateFit]:
    r"""The two parts of :func:`draw`, had the mechanism released these coefficients.

    Each :math:`\theta` is the minimiser for one draw, :math:`b = -\nabla J(\theta; D)`. The private part has
    that gradient and the Hessian :math:`\nabla^2J(\theta; D)`, without noise. ``coefficients`` are one
    vector, the intercept last; with several linear predictors, one after the other. ``groups`` are those of
    :func:`draw`.

    Privacy
    -------
    Draws and spends nothing. Coefficients without noise keep no promise: what is imagined is INSECURE. The
    second part of the result is private.
    """
    theta = attempted(lambda: np.array(coefficients, dtype=np.float64))
    if theta is None or theta.ndim != 1 or not np.all(np.isfinite(theta)):
        raise parameter_error("coefficients", "one vector of finite numbers", coefficients)
    release = Release(plan, theta, insecure=True)
    records = _encoded(plan, X, y, groups)
    return release, recover(release, records.checked_for(plan.loss, plan.max_weight))


def losses(
    release: Release, private: PrivateFit, X: Any, y: Any, *, member: Any, groups: Any = None
) -> LossTerms:
    r"""The exact privacy loss of each record, term by term.

    .. math:: |t_1 + t_2 + t_3|, \quad t_1 = -\log\det(I \mp F^\top H^{-1}F), \quad
             t_2 = \frac{\|\nabla\ell\|^2}{2\sigma^2}, \quad t_3 = \mp\frac{\nabla J^\top\nabla\ell}{\sigma^2}

    with :math:`\nabla^2\ell = FF^\top` and the upper signs for members: the Theorem "ex-post pDP of objective
    perturbation" of Redberg and Wang (2021). Assumes that ``member`` is true of the records. With ``groups``
    the losses are those of people, or with ``unit="row"`` of families (docs/mathematics.md, section 15);
    ``member`` may then be one truth value for each row, and the loss that of a change in which those leave
    for whom it is true, and the others enter.

    Privacy
    -------
    The result is private: it is computed from the table.
    """
    records = _encoded(release.plan, X, y, groups)
    return ex_post_terms(private, records, release.plan.loss, member=member)


def bounds(
    release: Release,
    X: Any,
    y: Any,
    *,
    report: Report | None = None,
    confidence: float = CONFIDENCE,
    member: Any = None,
    groups: Any = None,
) -> Bounds:
    """What a reader can know of each record's loss, by the library's report or by one's own.

    ``report`` is a :class:`Report`; None stands for that of :meth:`expost.Publication.bounds`, where
    ``confidence``, ``member`` and ``groups`` are explained. A report of one's own is asked about rows one by
    one, and therefore neither about people nor about families.

    Privacy
    -------
    Public values and the record itself in; the result concerns only that record.
    """
    if report is not None and (groups is not None or release.plan.unit == "person"):
        raise parameter_error("report", "None for people and families", "a report of single rows")
    records = _encoded(release.plan, X, y, groups)
    if report is None:
        return evaluate(release, records, confidence=confidence, member=member)
    if not callable(report):
        raise parameter_error("report", "a function of a release and of records, or None", report)
    failure = check_confidence(confidence)
    ask = partial(report, release, failure=failure, member=member)
    figures = records.sweep(partial(_asked, ask))
    return Bounds.of(figures, confidence=1.0 - failure, scope=Scope(None))


def _asked(report: Callable[[FloatArray, FloatArray], Figures], blocks: Iterator[Block]) -> Figures:
    """The pass that asks a report about every record."""
    return Figures.joined(_figures(report(rows, labels), len(rows)) for rows, labels, *_ in blocks)


def _figures(found: Any, rows: int) -> Figures:
    """What a report gave, or ParameterError where it is not four numbers for each record."""
    if not isinstance(found, tuple) or [np.shape(one) for one in found] != [(rows,)] * 4:
        raise ParameterError("`report` must return Figures: four vectors, with a number for each row.")
    return Figures(*found)


def _encoded(plan: Plan, X: Any, y: Any, groups: Any) -> Encoded:
    if not isinstance(plan, Plan):
        raise parameter_error("plan", "a Plan of expost.calibrate", type(plan).__name__)
    check_rows(plan, groups)
    if isinstance(plan, ConvexPlan):
        return open_records(X, y, plan.loss, groups, unit=plan.unit)
    if attempted(lambda: isinstance(y[0], str)):
        raise labels_error(plan.loss, "Write these numbers in place of the classes' names.")
    return encode_records(X, y, Declared.of(plan), groups=groups)
