"""``expost plan``, and how the domain file and the options of a model become a plan."""

from pathlib import Path
from typing import Any

from expost._common.validation import numeral, parameter_error
from expost.cli.base import console, print_json, say
from expost.cli.commands import PlanOptions
from expost.cli.words import explain
from expost.data.domain import Domain
from expost.data.weights import Weighting
from expost.exceptions import FileError
from expost.fitting.private_fit import corners_for
from expost.losses import AnyLoss, as_loss
from expost.losses.corners import Corners
from expost.privacy.calibration import calibrate
from expost.privacy.plan import Plan, row_radius
from expost.privacy.shapes import classification_loss, default_reduced, regression_loss

# Whether a constant is appended to every record: always, as the estimators do by default.
INTERCEPT = True
TABLES = (".csv", ".parquet", ".pq")


def plan(domain: Path, options: PlanOptions, as_json: bool) -> None:
    """Show what a fit would spend and what noise it would add."""
    declared = load_domain(domain)
    planned = make_plan(declared, options)
    corners = make_corners(declared, options, planned)
    if as_json:
        columns = len(declared.column_names)
        known = {} if corners is None else {"corners": corners.described(columns)}
        print_json(planned.fields() | known)
    else:
        explain(console, planned, len(declared.column_names), corners)
        say("\nThe same in numbers, for experts:\n")
        console.print(planned)


def load_domain(path: Path, table: Path | None = None) -> Domain:
    """Read a domain file; a table in its place is recognised by its name."""
    if path.suffix.lower() in TABLES and path.is_file():
        both = "" if table is None or table.suffix.lower() != ".toml" else f": {table} {path}"
        raise FileError(
            f"the domain file comes first, and then the table{both}; got {path.name!r} in its place."
        )
    return Domain.load(path)


def declared_weighting(weight: str | None, max_weight: float, rows: int | None = None) -> Weighting:
    """What was declared about weights: their column, the largest of them, and a person's ``rows``."""
    if weight is None and max_weight != 1.0:
        hint = "Name their column with --weight."
        raise parameter_error("max_weight", "left out where there are no weights", max_weight, hint)
    return Weighting.declared(max_weight, None, of_records=weight is not None, rows=rows)


def make_plan(domain: Domain, options: PlanOptions) -> Plan:
    """Make the plan for a domain; it is public, and `plan` and `fit` make the same one."""
    classes = 0 if domain.classes is None else len(domain.classes)
    max_weight = Weighting.declared(options.max_weight, None, of_records=False).largest
    name = _loss_for(classes, options)
    budget: Any = {"epsilon": options.epsilon, "delta": options.delta}
    loss: AnyLoss = as_loss(name)
    radius = row_radius(domain.row_norm, fit_intercept=INTERCEPT)
    if name == "logistic":
        penalty = None if options.l2 is None else options.l2 / max_weight
        loss = classification_loss(classes, **budget, cap=options.cap, l2=penalty, radius=radius)
    elif name == "pseudo_huber":
        loss = regression_loss(**budget, threshold=options.threshold, radius=radius)
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
        unit="row" if domain.person is None else "person",
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
    return corners_for(plan, l1, domain.coef_bounds, len(domain.column_names))


def _loss_for(classes: int, options: PlanOptions) -> str:
    """The name of a loss that suits the outcome, whose number of classes is 0 where it is a number."""
    suitable = {0: ["pseudo_huber"], 2: ["logistic", "smoothed_hinge"]}.get(classes, ["logistic"])
    loss = options.loss or suitable[0]
    if loss not in suitable:
        outcome = f"{classes} classes" if classes else "a number"
        wanted = f"{' or '.join(map(repr, suitable))} for {outcome}"
        raise parameter_error("loss", wanted, loss, "The domain says which the outcome is.")
    if options.cap is not None and loss != "logistic":
        only = "Only the logistic loss has a cap."
        raise parameter_error("cap", "left out for this loss", options.cap, only)
    if options.threshold is not None and classes:
        raise parameter_error("threshold", "left out where the outcome has classes", options.threshold)
    return loss
