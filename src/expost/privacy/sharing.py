"""One budget for several models of one table: the plan of each."""

from collections.abc import Callable
from typing import TypeVar

from scipy.optimize import brentq

from expost._common.validation import check_count, check_positive, parameter_error
from expost.exceptions import CalibrationError
from expost.privacy.composition import compose
from expost.privacy.profile_curve import AnyPlan
from expost.privacy.recipes import check_delta

SomePlan = TypeVar("SomePlan", bound=AnyPlan)

# More than anybody fits, and as many as are composed in a moment.
_MOST = 1_000
# How much of the budget the search may leave over.
_LEFT = 1e-4


def shared_plan(
    models: int, epsilon: float, delta: float, plan: Callable[[float, float], SomePlan]
) -> SomePlan:
    r"""The plan of each of several models that meet one budget together, if all of them have this plan.

    With :math:`\delta_k(\epsilon)` the certified profile of :math:`k` equal plans together
    (:func:`expost.compose`), each plan is the one for the largest :math:`\epsilon_1 \le \epsilon` at
    :math:`\delta/k` with

    .. math:: \delta_k(\epsilon) \le \delta,

    to one part in ten thousand, and never more. At :math:`k = 1` it is the plan of the budget.

    Assumes equal plans: k of each of two kinds may meet the budget, and a mixture of them not.

    Models of several outcomes of the same people lose nothing by it: an objective in which each outcome has
    coefficients of its own is a sum of as many objectives, with independent noise, and its release is that of
    all models (docs/mathematics.md, section 13, "Several outcomes").

    Parameters
    ----------
    models
        How many there are, with all that will ever be fitted for the budget.
    epsilon, delta
        The budget of all of them together.
    plan
        Makes the plan of one for a budget.

    Privacy
    -------
    Public in, public out.
    """
    if check_count("models", models) > _MOST:
        raise parameter_error("models", f"at most {_MOST:,}", models)
    if models == 1:
        return plan(epsilon, delta)
    epsilon, each = check_positive("epsilon", epsilon), check_delta(delta) / models

    def left(share: float) -> float:
        """What the models leave of the budget."""
        return epsilon - compose([plan(share * epsilon, each)] * models).epsilon_at(delta)

    # The deltas alone may pay for all of it. A part of 1/k always does, but for what a certificate adds.
    share, least = 1.0, 0.5 / models
    if left(share) < 0.0:
        if left(least) < 0.0:
            raise CalibrationError(
                f"models={models} cannot share epsilon={epsilon:g} at delta={delta:g}: what they cost "
                "together is not resolved so finely. Raise `epsilon` or `delta`."
            )
        share = brentq(left, least, share, xtol=0.3 * _LEFT / models)
    while left(share) < 0.0:
        share *= 1.0 - 0.3 * _LEFT
    return plan(share * epsilon, each)
