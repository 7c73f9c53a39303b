"""Compare the certificate of a plan with the worst neighbouring data sets that a search finds."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.text import Text

from expost._common.validation import check_positive
from expost.audit.search import Pair, worst_pair
from expost.privacy.plan import Plan


@dataclass(frozen=True, eq=False)
class PlanAudit:
    """The delta that a plan certifies and the delta that real neighbouring data sets attain; print it.

    Privacy
    -------
    Public: a function of the plan and of rows that the search made up.
    """

    epsilon: float
    """The epsilon of both deltas."""
    certificate: float
    """The certified upper bound, ``plan.delta_at(epsilon)``."""
    audited: float
    """The delta that ``pair`` attains, less the estimated error of its integral."""
    pair: Pair
    """The neighbours that attain it."""

    @property
    def ratio(self) -> float:
        """``audited / certificate``: above 1 the certificate is wrong, near 1 it cannot be improved."""
        return self.audited / self.certificate

    def __str__(self) -> str:
        return (
            f"At epsilon = {self.epsilon:g} the plan certifies delta <= {self.certificate:.6g}.\n"
            f"Real neighbours attain delta >= {self.audited:.6g}, a share of {self.ratio:.5f}:\n"
            f"{self.pair}."
        )

    def __rich__(self) -> Text:
        return Text(str(self))


def audit_plan(
    plan: Plan,
    *,
    epsilon: float | None = None,
    dimension: int = 1,
    trials: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> PlanAudit:
    r"""Try to refute a plan: compare its certified delta with the largest of many neighbouring data sets.

    .. math:: \max_{D, z} \max\{H_\epsilon(P_{D+z}\|P_D),\, H_\epsilon(P_D\|P_{D+z})\}
              \;\le\; \sup_{D, z}(\cdot) \;\le\; \mathtt{plan.delta\_at}(\epsilon)

    The maximum on the left is over the pairs that :func:`worst_pair` tries. Each pair proves, up to
    quadrature, that no valid certificate is smaller. A search that finds nothing near the certificate
    proves nothing: the worst data set may be one that it did not try.

    Parameters
    ----------
    plan
        The plan of :func:`expost.calibrate`.
    epsilon
        The epsilon at which to compare; by default ``plan.epsilon``.
    dimension
        The number of features: 1 or 2, and 1 for three classes; plans for more classes are refused. More
        features cannot lower the worst case: a data set along one direction is also a data set in more
        dimensions.
    trials
        How many random pairs to try after the structured ones. These take about two seconds for one
        coefficient; for three classes a minute or two, and each random pair a few seconds.
    random_state
        Seed or generator of the search. It has nothing to do with the noise of a release.

    Notes
    -----
    The certificate covers every row of norm at most ``plan.radius``, and the search tries such rows. With an
    intercept all rows end in a constant 1, and the worst case of these rows may be smaller.

    Privacy
    -------
    Output is public: no rows are read, all are made up.

    Examples
    --------
    >>> from expost import calibrate
    >>> found = audit_plan(calibrate(loss="logistic", epsilon=1.0, l2=5.0), trials=1, random_state=0)
    >>> 0.999 < found.ratio <= 1.0
    True
    """
    at = check_positive(
        "epsilon",
        plan.epsilon if epsilon is None else epsilon,
        way_out="Give an `epsilon` if the plan has none." if epsilon is None else "",
    )
    # Everything over the largest weight: an objective and its noise may be divided by a constant.
    scales: dict[str, Any] = asdict(plan.scales.over(plan.max_weight))
    audit, pair = worst_pair(
        plan.loss,
        norm=plan.radius,
        epsilon=at,
        l2=plan.l2 / plan.max_weight,
        **scales,
        reduced=plan.reduced,
        dimension=dimension,
        trials=trials,
        random_state=random_state,
    )
    return PlanAudit(at, plan.delta_at(at), audit.delta, pair)
