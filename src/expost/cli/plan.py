"""``expost plan``, and how the domain file and the options of a model become a plan."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from expost._common.validation import numeral, parameter_error
from expost.cli.base import console, error_console, legible, print_json, say
from expost.cli.options import PlanOptions
from expost.cli.words import explain
from expost.data.choices import check_unit
from expost.data.design import intercept_count
from expost.data.domain import Domain, domain_text
from expost.data.labels import RowsLabel
from expost.data.ranges import with_stand_ins
from expost.data.weights import Weighting
from expost.exceptions import FileError, ParameterError
from expost.fitting.private_fit import corners_for
from expost.losses import AnyLoss, as_loss
from expost.losses.corners import Corners
from expost.privacy.calibration import calibrate
from expost.privacy.plan import Plan, row_radius
from expost.privacy.shapes import (
    amount_loss,
    classification_loss,
    count_loss,
    default_reduced,
    quantile_loss,
    regression_loss,
)
from expost.privacy.sharing import shared_plan

# Whether a constant is appended to every record: always, as the estimators do by default.
INTERCEPT = True
# The quantile of a pinball loss that is asked for without a level.
_MEDIAN = 0.5
TABLES = (".csv", ".parquet", ".pq")


def plan(domain: Path, options: PlanOptions, as_json: bool) -> None:
    """Show what a fit would spend and what noise it would add."""
    declared = imagined_domain(domain)
    planned = make_plan(declared, options)
    corners = make_corners(declared, options, planned)
    if as_json:
        columns = len(declared.column_names)
        known = {} if corners is None else {"corners": corners.described(columns)}
        print_json(planned.fields() | known)
    else:
        explain(console, planned, declared, corners, budget=options)
        say("\nThe same in numbers, for experts:\n")
        console.print(planned)


def load_domain(path: Path, table: Path | None = None) -> Domain:
    """Read a domain file; a table in its place is recognised by its name."""
    check_order(path, table)
    return Domain.load(path)


def imagined_domain(path: Path) -> Domain:
    """Read a domain file before anything is spent; ranges to be chosen are as wide as their grids."""
    check_order(path, None)
    declared, to_choose = with_stand_ins(domain_text(path))
    if to_choose:
        names = ", ".join(dict.fromkeys(legible(one["column"]) for one in to_choose))
        words = f"To be chosen, for a budget of its own: the range of {names}. Here it is the whole grid.\n"
        say(words, to=error_console)
    return declared


def check_order(path: Path, table: Path | None) -> None:
    """Refuse a table in the place of a domain file."""
    if path.suffix.lower() in TABLES and path.is_file():
        both = "" if table is None or table.suffix.lower() != ".toml" else f": {table} {path}"
        raise FileError(
            f"the domain file comes first, and then the table{both}; got {path.name!r} in its place."
        )


def declared_weighting(weight: str | None, max_weight: float, rows: int | None = None) -> Weighting:
    """What was declared about weights: their column, the largest of them, and a person's ``rows``."""
    if weight is None and max_weight != 1.0:
        hint = "Name their column with --weight."
        raise parameter_error("max_weight", "left out where there are no weights", max_weight, hint)
    return Weighting.declared(max_weight, None, of_records=weight is not None, rows=rows)


def make_plan(domain: Domain, options: PlanOptions) -> Plan:
    """Make the plan for a domain; it is public, and `plan` and `fit` make the same one."""
    check_unit(domain.choices, domain.unit)
    _check_recalibration(domain, options)

    def planned(epsilon: float, delta: float) -> Plan:
        return _plan_of_one(domain, replace(options, epsilon=epsilon, delta=delta))

    return shared_plan(options.models, options.epsilon, options.delta, planned)


def _check_recalibration(domain: Domain, options: PlanOptions) -> None:
    """Refuse to recalibrate a model for which nothing is published that corrects its predictions."""
    if not options.recalibrate:
        return
    kind, classes = domain.label.kind, len(domain.classes or ())
    problem = "the domain names a `person`" if domain.person else None
    if kind == "number" and options.level is not None:
        problem = "a quantile is modelled"
    elif kind != "number" and (kind, classes) != ("classes", 2):
        problem = f"the outcome is {_OUTCOMES[kind].format(classes=classes)}"
    if problem is not None:
        raise ParameterError(
            '`--recalibrate` is for two classes and for the mean of an outcome with kind = "number", one row '
            f"a person. Here {problem}: leave it out."
        )


def _plan_of_one(domain: Domain, options: PlanOptions) -> Plan:
    max_weight = Weighting.declared(options.max_weight, None, of_records=False).largest
    budget: Any = {"epsilon": options.epsilon, "delta": options.delta}
    loss = make_loss(domain, options, max_weight)
    return calibrate(
        loss=loss,
        norm=domain.row_norm,
        **budget,
        l2=options.l2,
        report=options.report,
        split=options.split,
        fit_intercept=INTERCEPT,
        rows_at_most=options.rows_at_most,
        max_weight=max_weight,
        reduced=default_reduced(loss, options.report, len(domain.column_names) + INTERCEPT),
        unit=domain.unit,
        recalibrate=options.recalibrate,
    )


def make_corners(domain: Domain, options: PlanOptions, plan: Plan) -> Corners | None:
    """The L1 penalty of the options and the bounds of the domain, where there are any; public."""
    if options.l1 is None and domain.coef_bounds is None:
        return None
    l1: Any = options.l1 or 0.0
    if isinstance(l1, str) and l1 != "auto":
        try:
            l1 = numeral(l1)
        except ValueError:
            raise parameter_error("l1", "a number or 'auto'", options.l1) from None
    intercepts = intercept_count(domain.label, fit_intercept=INTERCEPT)
    return corners_for(plan, l1, domain.coef_bounds, len(domain.column_names), intercept=intercepts)


# The losses that suit each kind of outcome, the default first; several classes have the first of theirs.
_SUITABLE = {
    "classes": ("logistic", "smoothed_hinge"),
    "number": ("pseudo_huber", "smoothed_pinball"),
    "count": ("bounded_poisson",),
    "amount": ("bounded_gamma",),
    "ordered": ("logistic",),
    "time": ("logistic",),
}
_OUTCOMES = {
    "classes": "{classes} classes",
    "number": "a number",
    "count": "a count",
    "amount": "an amount",
    "ordered": "{classes} ordered classes",
    "time": "a time",
}
# Which losses an option is about.
_ABOUT = {
    "cap": ("logistic",),
    "level": ("smoothed_pinball",),
    "threshold": ("pseudo_huber", "bounded_poisson", "bounded_gamma"),
}
# What to declare for one, where that is not told by the loss.
_WHERE = {"level": ' A quantile is of an outcome that is declared with kind = "number".'}


def make_loss(domain: Domain, options: PlanOptions, max_weight: float) -> AnyLoss:
    """The loss that suits the outcome and the budget, in public values alone."""
    radius = row_radius(domain.row_norm, fit_intercept=INTERCEPT)
    budget: Any = {"epsilon": options.epsilon, "delta": options.delta}
    level, penalty = options.level, None if options.l2 is None else options.l2 / max_weight
    classes: Any = {"cap": options.cap, "l2": penalty, "radius": radius, "recalibrate": options.recalibrate}
    made: dict[str, Callable[[], AnyLoss]] = {
        "logistic": lambda: classification_loss(_compared(domain), **budget, **classes),
        "smoothed_hinge": lambda: as_loss("smoothed_hinge"),
        "pseudo_huber": lambda: regression_loss(**budget, threshold=options.threshold, radius=radius),
        "smoothed_pinball": lambda: quantile_loss(**budget, level=_MEDIAN if level is None else level),
        "bounded_poisson": lambda: count_loss(**budget, threshold=options.threshold),
        "bounded_gamma": lambda: amount_loss(**budget, threshold=options.threshold),
    }
    return made[_loss_for(domain, options)]()


def _compared(domain: Domain) -> int:
    """How many classes the loss tells apart: two in each row, where a record is several."""
    return 2 if isinstance(domain.label, RowsLabel) else len(domain.classes or ())


def _loss_for(domain: Domain, options: PlanOptions) -> str:
    """The name of a loss that suits the outcome; a level asks for a quantile."""
    kind, classes = domain.label.kind, len(domain.classes or ())
    suitable = _SUITABLE[kind][: 1 if classes > 2 else None]
    quantile = kind == "number" and options.level is not None
    loss = options.loss or suitable[1 if quantile else 0]
    if loss not in suitable:
        wanted = f"{' or '.join(map(repr, suitable))} for {_OUTCOMES[kind].format(classes=classes)}"
        raise parameter_error("loss", wanted, loss, "The domain says which the outcome is.")
    for option, losses in _ABOUT.items():
        value = getattr(options, option)
        if value is not None and loss not in losses:
            only = f"It belongs to {' and '.join(losses)}; here the loss is {loss}.{_WHERE.get(option, '')}"
            raise parameter_error(option, "left out for this loss", value, only)
    return loss
