"""What a release is refused for before its noise is drawn."""

from expost._common.validation import parameter_error
from expost.data.design import Design
from expost.exceptions import DomainError
from expost.losses import Regularizer, SmoothedL1
from expost.privacy.plan import Plan
from expost.privacy.precision import MOST_COEFFICIENTS, MOST_NUMBERS

MOST_FOLD = 8
"""A Hessian is certified for this many times the rows that the plan was made for."""
# The corner of a regulariser is at least so many times as wide as the output's noise.
_SHARPEST = 2.0**14


def needs_hessian(plan: Plan) -> bool:
    """Whether a statistic is made from the Hessian."""
    return plan.sigma_hessian is not None or plan.sigma_eigenvalue is not None


def check_inputs(
    plan: Plan,
    design: Design,
    regularizer: Regularizer | None,
) -> None:
    """Refuse what the plan was not made for, before anything is drawn.

    Privacy
    -------
    An error names public values only: what the plan and the loss declare, never a row, a label or a count.
    """
    if design.intercept != plan.fit_intercept or design.norm > plan.norm:
        made = f"norm={plan.norm:g} and fit_intercept={plan.fit_intercept}"
        raise parameter_error("plan", "made for the norm and the intercept of the design", made)
    precision = plan.precision
    if precision is not None and isinstance(regularizer, SmoothedL1):
        steepest = plan.curve.max_curvature * plan.radius**2 * precision.rows_at_most
        sharpest = max(_SHARPEST * precision.output_noise, regularizer.weight / steepest)
        if regularizer.scale < sharpest:
            raise parameter_error(
                "scale", f"at least {sharpest:.3g} for a printed release", regularizer.scale
            )
    dimension = plan.loss.coefficient_count(design.dimension)
    numbers = dimension + plan.entries(dimension)
    if dimension > MOST_COEFFICIENTS or numbers > MOST_NUMBERS:
        raise DomainError(
            f"a release has at most {MOST_COEFFICIENTS} coefficients and {MOST_NUMBERS} numbers; this one "
            f"would have {dimension} and {numbers}. Use fewer features, or report='independent'."
        )


def check_rows(plan: Plan, rows: int) -> None:
    """Refuse more rows than a Hessian is certified for.

    Privacy
    -------
    The error names what the plan declares, never the number of rows.
    """
    precision = plan.precision
    if precision is not None and needs_hessian(plan) and rows > MOST_FOLD * precision.rows_at_most:
        raise DomainError(
            f"a report with a Hessian is for at most {MOST_FOLD} times `rows_at_most` rows; raise it "
            f"(got {precision.rows_at_most}), or choose report='independent'."
        )
