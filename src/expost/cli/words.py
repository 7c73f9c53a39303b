"""What a plan promises and which command comes next, in plain words."""

import math
import shlex
from collections.abc import Iterator, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from typer.models import OptionInfo

from expost.cli.base import app, given, legible, say
from expost.data.design import intercept_count
from expost.data.labels import TimeLabel
from expost.losses import AnyLoss, SmoothedPinball
from expost.privacy.plan import Plan

if TYPE_CHECKING:
    from expost.cli.options import PlanOptions
    from expost.data.choices import Choice, RangeChoice
    from expost.data.domain import Domain
    from expost.ledger import Account, Noted
    from expost.losses.corners import Corners
    from expost.publication.readings import Quality

# What is about one run of a command, and not about its table or its model.
_OF_ONE_RUN = ("output", "force", "as_json", "dry_run")


def next_command(name: str, *arguments: object, **options: Any) -> str:
    """A command that goes on with every option that this one was given and that it takes as well.

    So it means the same table, the same model and the same account. ``options`` are added to those, or take
    their place; None leaves one out.
    """
    commands: Any = [one.callback for one in app.registered_commands]
    (command,) = (one for one in commands if one.__name__ == name)
    words = ["expost", name, *map(_as_argument, arguments)]
    for parameter in signature(command).parameters.values():
        option = parameter.default
        if not isinstance(option, OptionInfo):
            continue
        value = given.get().get(parameter.name)
        if parameter.name in _OF_ONE_RUN or value == option.default:
            value = None
        value = options.get(parameter.name, value)
        spelled = min(option.param_decls or (), key=len, default=f"--{parameter.name.replace('_', '-')}")
        words += _as_words(spelled, value)
    return " ".join(map(_quoted, words))


def _as_argument(value: object) -> str:
    """A word that is not taken for an option, whatever the path."""
    return f"./{value}" if str(value).startswith("-") else str(value)


def _quoted(word: str) -> str:
    """A word of a shell; letters that a terminal does not show are spelt out."""
    if word.isprintable():
        return shlex.quote(word)
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in plain) + "'"


def _as_words(option: str, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield from [option] * value
        return
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        yield from (option, str(one).removesuffix(".0") if isinstance(one, float) else str(one))


# What a reader gains by each report and what it costs her, as a steward would say it to a colleague.
REPORTS = {
    "independent": "nothing but the model. It costs nobody anything more. Everyone can look up her own "
    "figure, which is often higher than what she really lost. The default, and right for tables with "
    "fewer than about {rows:,} rows: a thousand for each of {columns} encoded columns.",
    "leverage": "also a noisy Hessian, a summary of how records spread. With about {rows:,} rows or more, a "
    "thousand for each of {columns} encoded columns, most people look up a lower figure, and the model gets "
    "hardly noisier. Recommended there.",
    "dependent": "also a noisy Hessian and gradient. Figures are closer to what people really lost, but the "
    "model gets noisier.",
    "adaptive": "the same as 'dependent' and one number more. Seldom better than that.",
}
# The same of a Hessian that costs people more than it tells them, and what it is good for where it says how
# far outcomes scatter.
_PRECISE = (
    "also a Hessian, a summary of how records spread, with so little noise that it has a price: "
    "people look up a higher figure than without it."
)
_ERROR_BARS = (
    " It gives the coefficients error bars (expost summary), if there are about {rows:,} rows or more: a "
    "thousand for each of {columns} encoded columns."
)
# How many rows a Hessian should have for each encoded column, and the quantile of a reader's confidence.
_ROWS, _QUANTILE = 1000, 1.96


def _report(plan: Plan, columns: int) -> str:
    """What a plan's report is good for: one that costs a record more than it tells has other uses."""
    precise = plan.report == "leverage" and not _lowers_figures(plan)
    words = _PRECISE + _ERROR_BARS * plan.loss.is_likelihood if precise else REPORTS[plan.report]
    if plan.sigma_recalibration is not None:
        words = words.replace("nothing but the model. It costs nobody anything more.", "nothing more.")
    return f"{plan.report}: {words.format(rows=_ROWS * columns, columns=columns)}"


def _lowers_figures(plan: Plan) -> bool:
    r"""Whether a record of the largest kind reads less with the Hessian, if its leverage is next to nothing.

    Without it the determinant counts as :math:`\log(1 + \kappa R^2/\lambda)`, and with it the Hessian's own
    shift :math:`C = \kappa R^2/(\sqrt 2\sigma_H)` is added to that of the model, :math:`A = \xi/\sigma`.
    """
    curved = plan.curve.max_curvature * plan.radius**2
    steep, shift = plan.curve.max_slope * plan.radius / plan.sigma, curved / (plan.sigma_hessian or math.inf)
    both = math.hypot(steep, math.sqrt(0.5) * shift)
    rise = 0.5 * (both**2 - steep**2) + _QUANTILE * (both - steep)
    return rise < math.log1p(curved / plan.l2)


def explain(
    out: Console, plan: Plan, domain: "Domain", corners: "Corners | None" = None, *, budget: "PlanOptions"
) -> None:
    """Say what a plan for a domain promises, and what will be published."""
    columns = len(domain.column_names)
    dimension = columns + intercept_count(domain.label, fit_intercept=plan.fit_intercept)
    lines = Table.grid(padding=(0, 2))
    whole = "" if domain.person is None else ", with all of her rows or none"
    choices = domain.choices
    epsilon = math.ceil(1e4 * whole_promise(plan, choices)) / 1e4 if choices else plan.epsilon
    promise = (
        f"A guess whether a person is in the table{whole}, which is right half of the time without the "
        f"publication, is right at most {right_at_most(epsilon, plan.delta):g}% of the time with it, "
        f"whatever else is known (ε = {epsilon:g} at δ = {plan.delta:g})."
    )
    lines.add_row("[bold]The promise[/bold]", promise)
    if budget.models > 1:
        together = (
            f"One of {budget.models} models, which together spend at most ε = {budget.epsilon:g} at "
            f"δ = {budget.delta:g}, if all are of this kind. Fit each with --models {budget.models} and the "
            "same options."
        )
        lines.add_row("[bold]The budget[/bold]", together)
    if choices:
        lines.add_row("[bold]The ranges[/bold]", _ranges(plan, choices))
    coefficients = plan.loss.coefficient_count(dimension)
    if isinstance(domain.label, TimeLabel):
        lines.add_row("[bold]The outcome[/bold]", _periods(domain.label))
    limits = "" if corners is None else f" {_limits(corners)}"
    modelled = f"{coefficients} coefficients, with noise{_of_what(plan.loss)}.{limits}"
    lines.add_row("[bold]The model[/bold]", modelled)
    if plan.max_weight > 1.0:
        weights = (
            f"A record may weigh up to {plan.max_weight:g}, so the noise is {plan.max_weight:g} times what "
            "weights up to 1 would take. If few are so large, cut weights at a smaller public number first."
        )
        lines.add_row("[bold]The weights[/bold]", weights)
    if plan.sigma_recalibration is not None:
        lines.add_row("[bold]The correction[/bold]", _correction(plan, plan.sigma_recalibration))
    lines.add_row("[bold]The report[/bold]", _report(plan, columns))
    out.print(lines, highlight=False)


def _periods(label: TimeLabel) -> str:
    """What a time is cut into, and from how many rows on its predictions are right."""
    unit = "" if label.unit is None else f" {label.unit}"
    asked = "" if unit else " Is that the unit of the column? Declare `unit`."
    return (
        f"{legible(label.name)}, in {label.periods} periods of {label.length:g}{unit}: 0 to "
        f"{label.ends[-1]:g}{unit}.{asked} "
        f"Predicted times need about {100 * label.periods**2:,} rows at ε = 1."
    )


def _correction(plan: Plan, noise: float) -> str:
    """What is published after the model to recalibrate it."""
    what, share, corrected, shown = (
        ("counts of records by score and outcome", "a tenth", "probabilities", "the curve")
        if plan.loss.is_likelihood
        else ("sums of predictions and of their errors", "3%", "predictions", "the correction")
    )
    return (
        f"{plan.recalibration_entries} {what}, each with noise of {noise:.3g}, for {share} of the budget. "
        f"They correct {corrected}, and `expost summary` shows {shown}."
    )


def _of_what(loss: AnyLoss) -> str:
    """What of an outcome is modelled, where it is not its class or its middle."""
    if isinstance(loss, SmoothedPinball):
        return f", of the {loss.level:g}-quantile"
    return ", of the logarithm of the mean" if loss.log_link else ""


def whole_promise(plan: Plan, choices: "Sequence[Choice]") -> float:
    """The epsilon of the model and of the choices that were made for it."""
    if not choices:
        return plan.epsilon
    from expost.page.promises import promised_together

    together = promised_together((plan,), tuple(choice.plan for choice in choices))
    return math.inf if together is None else together[0]


def _ranges(plan: Plan, choices: "Sequence[RangeChoice]") -> str:
    """What ranges that were chosen from the table cost."""
    names = ", ".join(dict.fromkeys(choice.column for choice in choices))
    spent = sum(choice.epsilon for choice in choices)
    return (
        f"Those of {legible(names)} were chosen from the table for ε = {spent:g}, which is spent. The "
        f"promise and every figure count it beside the model's own ε = {plan.epsilon:g}."
    )


def _limits(corners: "Corners") -> str:
    """What an L1 penalty and bounds do to the coefficients."""
    l1, bounded = float(corners.l1.max()), int(((corners.low > -math.inf) | (corners.high < math.inf)).sum())
    found = [f"Many of those that are mostly noise become exactly 0 (l1 = {l1:.4g})."] * (l1 > 0.0)
    found += [f"{bounded} must stay inside declared bounds."] * (bounded > 0)
    return " ".join(found)


def right_at_most(epsilon: float, delta: float) -> float:
    r"""How often a guess between two neighbouring tables is right at most, in percent, rounded up.

    .. math:: \frac{e^\epsilon + \delta}{e^\epsilon + 1}

    for guesses that start at 50:50 (P. Kairouz, S. Oh and P. Viswanath. The composition theorem for
    differential privacy. ICML 2015). Unlike a bound on one person's belief, it holds on average over what
    could have been published, as the guarantee does.

    Privacy
    -------
    Public.
    """
    chance = (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon))
    return math.ceil(1000.0 * chance - 1e-9) / 10.0


def announce(
    out: Console,
    entering: "Sequence[Noted]",
    output: Path,
    losses: Path | None,
    account: "Account | None",
    *,
    domain: "Domain",
    replaces: bool,
) -> None:
    """Say what a fit will spend and write, and what all fits of the table then have spent together.

    ``entering`` is what an account enters for it, its plan last.
    """
    plan = entering[-1].plan
    whom = "every record alike" if domain.person is None else "each person with all of her rows"
    written = f"\nWill spend   epsilon {plan.epsilon:g} at delta {plan.delta:g}, once, for {whom}"
    written += f"\nWill write   {legible(output)}  (public)"
    if replaces:
        written += "\n             The one that is there has spent already: replacing it refunds nothing."
    if losses is not None:
        written += f"\n             {legible(losses)}  (PRIVATE: never publish)"
    if account is not None:
        written += f"\nWill count   in the account {legible(account.name)}: {_standing(account, entering)}"
    unsaid = unsigned(domain)
    say(written + f"\n\n{unsaid}" * bool(unsaid), to=out)


def unsigned(domain: "Domain") -> str:
    """That the page will not say who publishes it or whom to ask, and what to do; nothing where it does."""
    texts = domain.publication
    absent = [name for name in ("publisher", "contact") if getattr(texts, name, None) is None]
    if not absent:
        return ""
    return (
        f"The page will name no {' and no '.join(absent)}. Declare {legible('[publication]')} in the domain "
        "file now: texts cannot be added after a fit."
    )


def _standing(account: "Account", entering: "Sequence[Noted]") -> str:
    """What an account has spent, and what it will have spent: less than the sum, from the second fit on."""
    before = account.spent.epsilon_at(account.delta)
    spent = account.check(*entering)
    after = f"{spent:.4g} after this fit, of {account.epsilon:g} at delta {account.delta:g}"
    less = " (fits cost less together)" if before > 0.0 else ""
    return f"epsilon {before:.4g} is spent,\n             {after}{less}"


def say_next(
    out: Console,
    plan: Plan,
    publication: Path,
    table: Path,
    *,
    dialect: Path | None,
    person: str | None,
    losses: Path | None,
    counted: bool,
) -> None:
    """Say what can be done with a publication; ``dialect`` is a file that says how tables are written."""
    lines = {
        next_command("page", publication, output="report.html"): "the page for everyone (public)",
        next_command("predict", publication, "new.csv", domain=dialect): "predictions for other records",
    }
    if losses is None:
        options = {"domain": dialect, "person": person, "output": "private-losses.csv"}
        command = next_command("losses", publication, table, **options)
        lines[command] = "what it cost each (PRIVATE)"
    if not counted:
        cap = {"epsilon": f"{3 * plan.epsilon:g}", "delta": f"{plan.delta:g}"}
        command = next_command("ledger", "ledger.db", open_account=table.stem, **cap, enter=publication)
        lines[command] = "count what this table spends in all; the cap is yours to choose (public)"
    say("\n[bold]What next[/bold]", to=out)
    for command, words in lines.items():
        say(f"  {legible(command)}\n      {words}", to=out)


def show_quality(out: Console, quality: "Quality") -> None:
    """Show how well a publication predicts held-out records; private."""
    say("\n[bold]How well it predicts the held-out table (PRIVATE)[/bold]", to=out)
    if quality.auc is not None:
        say(f"  AUC       {quality.auc:.3f}   (0.5 is chance, 1 is perfect)", to=out)
    if quality.concordance is not None:
        say(f"  concordance  {quality.concordance:.3f}   (0.5 is chance, 1 is perfect)", to=out)
    if quality.log_loss is not None:
        guess = f"{quality.guess_log_loss:.3f} without any feature"
        say(f"  log-loss  {quality.log_loss:.3f}   (less is better; {guess})", to=out)
    if quality.r2 is not None:
        say(f"  R²        {quality.r2:.3f}   (0 is no better than the mean, 1 is perfect)", to=out)
    if quality.d2 is not None:
        say(f"  D²        {quality.d2:.3f}   (0 is no better than no features, 1 is perfect)", to=out)
    out.print(
        "For you only: these figures come from people's records without noise. Do not publish them, and "
        "do not refit until they please you: every fit spends again, and no budget pays for the choice.",
        highlight=False,
    )
