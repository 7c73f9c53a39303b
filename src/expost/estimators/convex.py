"""A private model with any convex loss."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from expost._common.validation import Simultaneous
from expost.data.convex import open_records
from expost.data.encoding import Encoded
from expost.data.frame_tables import FrameKind
from expost.data.weights import check_rows_per_person
from expost.estimators.planned import PrivateEstimator, check_people
from expost.exceptions import DomainError
from expost.fitting.private_fit import corners_for
from expost.fitting.release import Release
from expost.ledger import Account
from expost.losses.convex import ConvexLoss
from expost.privacy.calibration import calibrate_convex
from expost.privacy.plan import Plan
from expost.reports.base import CONFIDENCE, Bounds
from expost.reports.evaluate import evaluate


@dataclass(kw_only=True, eq=False, repr=False)
class ConvexModel(PrivateEstimator):
    r"""The minimiser of any convex loss, released once with differential privacy.

    .. math:: b \sim N(0, \sigma^2 I), \qquad
              \hat\theta = \arg\min_\theta \sum_i \ell(\theta; z_i) + \frac\lambda2\|\theta\|^2 + b^\top\theta

    There is no publication: no file, no page. A reader would not know the formula of a loss that is not the
    library's. Share the parameters, the loss and ``plan_``; whoever has these three can ask
    :meth:`bounds` of a copy of this model, which holds public values only.

    Parameters
    ----------
    loss
        A :class:`expost.ConvexLoss`: derivatives of each record, and publicly declared bounds on them. One
        that the library does not know is checked by :func:`expost.check_convex_loss` before anything else.
        With a plan it is the plan's.
    l2
        The regularisation :math:`\lambda`, which pulls the parameters towards zero; by default from public
        values. Write the loss so that zero is a sensible guess.
    plan
        What :func:`expost.calibrate_convex` returns, for whoever wants a noise scale of their own. It decides
        what it states; an argument that is not at its default and says otherwise is refused.
    l1, coef_bounds
        Not offered: left as they are, or refused.
    epsilon, delta, models, unit, rows_per_person, random_state, verbose
        As in :class:`expost.LogisticRegression`.

    Attributes
    ----------
    coef_
        The released parameters.
    plan_
        Noise, regularisation and certificate (:class:`~expost.privacy.plan.ConvexPlan`).
    insecure_
        Whether a seed was used, which voids the guarantee.

    Notes
    -----
    **Privacy.** Every ``fit`` spends the budget again. The guarantee is for real arithmetic, and rests on the
    bounds that the loss declares. Records are brought into the loss's declared set, row by row.

    Examples
    --------
    >>> import numpy as np, expost
    >>> records = np.random.default_rng(0).normal([0.3, -0.2], 0.2, size=(4000, 2))
    >>> model = expost.ConvexModel(loss=expost.SmoothedNorm(2)).fit(records)
    >>> bool(np.all(np.abs(model.coef_ - [0.3, -0.2]) < 0.05))
    True
    >>> mine = model.bounds(records[:1], member=True)
    >>> bool(mine.upper[0] < model.plan_.epsilon)
    True
    """

    loss: ConvexLoss | None = None

    _losses: ClassVar = (ConvexLoss,)
    _of_plan: ClassVar = (*PrivateEstimator._of_plan, "loss")

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, account: Account | None = None) -> Self:
        """Release the parameters that fit a table.

        Parameters
        ----------
        X
            Rows of as many numbers as the loss declares: an array of any real type, a sparse matrix, or a
            pandas, polars or pyarrow frame. Rows outside the declared set are brought into it.
        y
            One label per row, where the loss has labels.
        groups
            With ``unit="person"``, whose each row is, as in :meth:`expost.LogisticRegression.fit`.
        account
            Where to count what this spends, as in :meth:`expost.LogisticRegression.fit`.

        Privacy
        -------
        Spends ``plan_.epsilon`` at ``plan_.delta``, each time it is called. What is stored is public, except
        for the private part, which never leaves memory.
        """
        with self._spending(account) as (spending, step):
            # All checks come before any noise is drawn.
            plan = self._given_plan()
            if plan is None:
                loss: Any = self.loss  # None is refused
                plan = self._shared_plan(
                    lambda one: calibrate_convex(
                        loss, epsilon=one.epsilon, delta=one.delta, l2=one.l2, unit=one.unit
                    )
                )
            spending.check(plan)
            check_people(plan, groups)
            # There are none: no theorem holds at the corners of such models.
            corners_for(plan, self.l1, self.coef_bounds, plan.loss.coefficient_count(1))
            records = self._open(X, y, plan, groups, reset=True)
            release = self._release(plan, records, spending, step)
            self.coef_ = np.array(release.coefficients)
            spending.finish(None)
        return self

    def bounds(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        confidence: float = CONFIDENCE,
        member: Any = None,
        simultaneous: Simultaneous = None,
    ) -> Bounds:
        """What the release cost each record, as far as anyone can know it from public values and the record.

        Parameters
        ----------
        X, y
            Records as in the fit.
        groups
            Whose each row is; figures are then one for each person, or with ``unit="row"`` for each family.
        confidence, member, simultaneous
            As in :meth:`expost.Publication.bounds`.

        Privacy
        -------
        As private as the records that are asked about. It reads ``plan_`` and ``coef_``, which are public.
        """
        check_is_fitted(self)
        release = Release(self.plan_, self.coef_, insecure=self.insecure_)
        found = evaluate(
            release,
            self._records(X, y, groups=groups),
            confidence=confidence,
            member=member,
            simultaneous=simultaneous,
        )
        return replace(found, kind=FrameKind.of(X))

    def _records(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Encoded:
        if sample_weight is not None:
            raise DomainError("`sample_weight` must be left out: a convex model has no weights.")
        return self._open(X, y, self.plan_, groups, reset=False)

    def _open(self, X: Any, y: Any, plan: Plan, groups: Any, *, reset: bool) -> Encoded:
        loss: Any = plan.loss
        rows = check_rows_per_person(self.rows_per_person)
        records = open_records(X, y, loss, groups, unit=plan.unit, rows=rows)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return records
