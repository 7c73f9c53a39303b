"""What a release is refused for before its noise is drawn."""

from expost._common.memory import check_memory
from expost._common.validation import parameter_error
from expost.data.design import Design
from expost.data.encoded import Encoded
from expost.exceptions import DomainError
from expost.losses import Regularizer, SmoothedL1
from expost.privacy.plan import Plan
from expost.privacy.precision import MOST_COEFFICIENTS, MOST_NUMBERS

# The corner of a regulariser is at least so many times as wide as the output's noise.
_SHARPEST = 2.0**14
# Square matrices beside the sums of the parts under way: the last Hessian with and without its penalty, its
# factor, the sum of the rows and the next sum. With several classes that is turned into other coordinates. A
# regulariser has a Hessian of its own, which is added to a copy and factored again.
_MATRICES, _OF_CLASSES, _OF_REGULARIZER = 5, 8, 3
# Copies of a block in a pass, slices included, for each sum; and bytes of a printed number while it is made.
_COPIES, _PRINTED = 3, 400


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


def check_room(plan: Plan, records: Encoded, regularizer: Regularizer | None = None) -> None:
    """Refuse a model whose fit, or whose exact losses, would run out of memory halfway.

    Privacy
    -------
    Decided by public sizes alone: columns, classes, report and threads, never the number of rows. Beside the
    table a fit holds matrices of the coefficients and blocks of rows, and neither grows with the table.
    """
    columns, held = records.design.dimension, records.engine.sums_held
    dimension = plan.loss.coefficient_count(columns)
    matrices = held + (_MATRICES if dimension == columns else _OF_CLASSES)
    matrices += 0 if regularizer is None else _OF_REGULARIZER
    # Exact losses take less: four matrices while the Hessian is inverted, then two and one for each thread.
    numbers = matrices * dimension**2 + held * _COPIES * records.design.block_numbers(dimension)
    check_memory(8 * numbers + _PRINTED * plan.entries(dimension), "this fit")
