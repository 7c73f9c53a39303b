"""`expost rehearse`: fits of invented tables, to see what a model would be good for before it is paid for."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.special import expit, logit

from expost._common.typing import FloatArray
from expost._common.validation import check_count, parameter_error
from expost.cli.base import console, print_json, say, show_progress
from expost.cli.commands import Effect
from expost.cli.options import ROWS_AT_MOST, PlanOptions
from expost.cli.plan import imagined_domain, make_plan
from expost.data.dates import Date, Month, Weekday
from expost.data.domain import Domain
from expost.data.encoding import encode_records
from expost.data.features import Category, Feature, Number
from expost.data.labels import CountLabel, NumericLabel, OrderedLabel, TimeLabel
from expost.data.weights import Declared, Weighting
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.privacy.plan import Plan
from expost.publication import Publication
from expost.publication.readings import Quality, held_out_quality

# The spread of the linear predictor of an invented class, in units of its logistic noise, and the share of an
# invented number's spread that the features explain.
_SPREADS: dict[str, float] = {"none": 0.0, "weak": 0.8, "medium": 1.6, "strong": 3.2}
_SHARES: dict[str, float] = {"none": 0.0, "weak": 0.1, "medium": 0.3, "strong": 0.6}
# The spread of an invented number, as a part of half its declared range, and that of the logarithm of a mean.
_SPREAD, _LOG_SPREAD = 0.4, 1.0
# Invented records on which a model is tried, and people whose figures are looked up.
_TRIED, _ASKED = 4_000, 200
# Invented rows at most, and tables, where a fit asks whether its model can be good for anything.
_MOST_INVENTED, _FEW = 20_000, 3
# The budgets next to the one asked for, as multiples of its epsilon.
_BUDGETS = (1.0 / 3.0, 1.0, 3.0)
# More rows are not invented, and a larger mean is not drawn from.
_MOST_ROWS, _MOST_COUNTED = 10_000_000, 1e18


@dataclass(frozen=True)
class Rehearsed:
    """What fits of invented tables gave at one budget: medians over the tables; about no real person."""

    epsilon: float
    quality: Quality
    told: float
    """The total that half of the invented people are told at most, at 95%."""
    told_most: float
    """The total that 95% of them are told at most."""

    @property
    def useless(self) -> bool:
        """Whether the model predicts no better than no features would."""
        found = self.quality
        if found.log_loss is not None and found.guess_log_loss is not None:
            return found.log_loss >= found.guess_log_loss
        share = found.r2 if found.d2 is None else found.d2
        ranked = found.concordance if found.auc is None else found.auc
        return share <= 0.0 if share is not None else (ranked or 0.0) <= 0.5


def rehearse(
    domain: Path, rows: int, effect: Effect, tables: int, options: PlanOptions, as_json: bool
) -> None:
    """Fit invented tables and show how good the models are, and what people would be told."""
    declared = imagined_domain(domain)
    rows, tables = check_count("rows", rows), check_count("tables", tables)
    if rows > _MOST_ROWS:
        raise parameter_error("rows", f"at most {_MOST_ROWS:,}; so many show what more would", rows)
    plans = [make_plan(declared, replace(options, epsilon=share * options.epsilon)) for share in _BUDGETS]
    with show_progress("Fitting invented tables") as progress:
        found = []
        for plan in plans:
            progress.rename(f"Fitting {_tables(tables)} at epsilon {plan.epsilon:.3g}")
            found.append(rehearsed(declared, plan, rows, effect, tables))
    if as_json:
        print_json(
            {"rows": rows, "effect": effect, "tables": tables, "budgets": [asdict(one) for one in found]}
        )
    else:
        _show(found, declared, rows, effect, tables, options)


def _tables(count: int) -> str:
    return f"{count} invented table{'s' * (count != 1)}"


def rehearsed(domain: Domain, plan: Plan, rows: int, effect: Effect, tables: int) -> Rehearsed:
    """Fit this many invented tables, and take the median of what comes out.

    Privacy
    -------
    Public: no table is read.
    """
    tries = [_tried(domain, plan, rows, effect, seed) for seed in range(tables)]
    qualities = [quality for quality, _ in tries]
    middle = Quality(
        **{name: _median(getattr(one, name) for one in qualities) for name in asdict(qualities[0])}
    )
    told = np.concatenate([totals for _, totals in tries])
    return Rehearsed(plan.epsilon, middle, *map(float, np.quantile(told, [0.5, 0.95])))


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _tried(domain: Domain, plan: Plan, rows: int, effect: Effect, seed: int) -> tuple[Quality, FloatArray]:
    """How good the model of one invented table is, and what some of its people are told."""
    alone = domain.without_people
    random = np.random.default_rng(seed)
    columns, labels = invented(alone, rows + _TRIED, effect, random)
    fitted = {name: column[:rows] for name, column in columns.items()}
    other = {name: column[rows:] for name, column in columns.items()}
    # The noise is that of the largest weight; every invented record weighs 1.
    weighting = Weighting.declared(plan.max_weight, None, of_records=False)
    weights = np.ones(rows) if weighting.used else None
    declared = Declared.of(plan, classes=alone.classes, domain=alone, weighting=weighting)
    # Everyone has one row: what a person with more would add follows from the domain's rows_per_person.
    people = None if domain.person is None else np.arange(rows)
    records = encode_records(fitted, labels[:rows], declared, weights, groups=people)
    release, _ = perturb(plan, records.checked_for(plan.loss, plan.max_weight), noise=SeededNoise(seed))
    publication = Publication.from_release(
        release, classes=alone.classes, feature_names=alone.column_names, domain=domain, weighting=weighting
    )
    held = encode_records(other, labels[rows:], replace(declared, unit="row")).checked_for(plan.loss, 1.0)
    asked = slice(min(rows, _ASKED))
    mine = {name: column[asked] for name, column in fitted.items()}
    some, groups = (None if one is None else one[asked] for one in (weights, people))
    return held_out_quality(publication, held), publication.bounds(
        mine, labels[asked], sample_weight=some, groups=groups, member=True
    ).total


def invented(
    domain: Domain, rows: int, effect: Effect, random: np.random.Generator
) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """Columns and outcomes of people whom nobody knows, drawn evenly over what is declared.

    Every encoded column has an effect of one size, up or down; together they have the chosen strength.

    Privacy
    -------
    Public: the domain decides it, and the generator.
    """
    columns = {feature.name: _values(feature, rows, random) for feature in domain.features}
    encoded = domain.encode(columns)
    spread = np.std(encoded, axis=0)
    classes = domain.classes
    ordered = isinstance(domain.label, OrderedLabel)
    several = 1 if classes is None or ordered else len(classes)
    directions = random.choice([-1.0, 1.0], (encoded.shape[1], several))
    scores = (encoded / np.where(spread > 0.0, spread, 1.0)) @ directions
    scores = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-12)
    if isinstance(domain.label, TimeLabel):
        return columns, _times(domain.label, _SPREADS[effect] * scores[:, 0], random)
    if classes is None:
        share = _SHARES[effect]
        drawn = np.sqrt(share) * scores[:, 0] + np.sqrt(1.0 - share) * random.standard_normal(rows)
        return columns, _outcomes(domain, drawn, random)
    if ordered:  # equally many of every class
        drawn = _SPREADS[effect] * scores[:, 0] + random.logistic(size=rows)
        ranks = np.argsort(np.argsort(drawn))
        return columns, np.array(classes, dtype=object)[ranks * len(classes) // rows]
    strength = _SPREADS[effect] / np.sqrt(2.0)  # two scores are compared
    places = np.argmax(strength * scores + random.gumbel(size=scores.shape), axis=1)
    return columns, np.array(classes, dtype=object)[places]


def _times(label: TimeLabel, scores: FloatArray, random: np.random.Generator) -> NDArray[Any]:
    """Times and events: of people without an effect half have the event in one of the periods."""
    even = 0.5 ** (1.0 / label.periods)
    hazards = expit(scores[:, None] + logit(1.0 - even))
    happened = random.random((len(scores), label.periods)) < hazards
    first = np.where(happened.any(axis=1), happened.argmax(axis=1) + 1, label.periods)
    return np.column_stack([label.length * first, happened.any(axis=1)])


def _outcomes(domain: Domain, drawn: FloatArray, random: np.random.Generator) -> FloatArray:
    """Outcomes within their bounds; counts scatter around their means as real ones do, and more."""
    label = domain.label
    assert isinstance(label, NumericLabel)
    found = domain.unscale_outcome((_LOG_SPREAD if label.log_link else _SPREAD) * drawn)
    if isinstance(label, CountLabel):
        found = random.poisson(np.minimum(found, _MOST_COUNTED)).astype(np.float64)
    return np.clip(found, label.low, label.high)


def _values(feature: Feature, rows: int, random: np.random.Generator) -> NDArray[Any]:
    if isinstance(feature, Category):
        return np.array(feature.categories, dtype=object)[random.integers(len(feature.categories), size=rows)]
    if isinstance(feature, Number):
        return random.uniform(feature.low, feature.high, rows)
    if isinstance(feature, Date | Month | Weekday):
        low, high = feature.limits if isinstance(feature, Date) else (0.0, 1460.0)
        return random.integers(int(low), int(high) + 1, rows).astype("datetime64[D]")
    return np.array(["no", "yes"], dtype=object)[random.integers(2, size=rows)]


# The figures that a model may have, each with what it says; an outcome with an order is ranked too.
_MEANINGS = {
    "r2": "R²: how much of the differences between outcomes the model explains. 0 is no better than no "
    "features, 1 is perfect.",
    "d2": "D²: how much of the differences between outcomes the model explains, by the measure that counts, "
    "amounts and quantiles are fitted with. 0 is no better than no features, 1 is perfect.",
    "auc": "AUC: of two people of different classes, how often the model ranks the right one higher. 0.5 is "
    "chance, 1 is perfect.",
    "concordance": "concordance: of two people, how often the model knows who has the event first. 0.5 is "
    "chance, 1 is perfect.",
    "log_loss": "log-loss: how surprising the outcomes are to the model; less is better. Without any feature "
    "it is {guess:.3f}.",
}


def _show(
    found: list[Rehearsed], domain: Domain, rows: int, effect: Effect, tables: int, options: PlanOptions
) -> None:
    whom = "rows" if domain.person is None else "people"
    of = f"Medians over {_tables(tables)}" if tables > 1 else "One invented table"
    say(f"{of} of {rows:,} {whom}, {_assumed(effect, options)}\n")
    shown = [name for name in _MEANINGS if getattr(found[0].quality, name) is not None]
    table = Table(box=None, pad_edge=False)
    for name in (
        "epsilon",
        *(_MEANINGS[name].partition(":")[0] for name in shown),
        "half are told at most",
        "95% are told at most",
    ):
        table.add_column(name, justify="right")
    for one in found:
        figures = [*(getattr(one.quality, name) for name in shown), one.told, one.told_most]
        table.add_row(f"{one.epsilon:.3g}", *(f"{figure:.3f}" for figure in figures))
    console.print(table)
    _explain(found, shown)


def _assumed(effect: Effect, options: PlanOptions) -> str:
    """What is taken for granted of the invented tables."""
    strength = "no" if effect == "none" else f"a {effect}"
    each = f", for each of {options.models} models that share a budget" * (options.models > 1)
    weights = f" Each weighs 1, of the {options.max_weight:g} that it may weigh." * (options.max_weight > 1.0)
    return f"with {strength} effect of the features{each}.{weights}"


def _explain(found: list[Rehearsed], shown: list[str]) -> None:
    """What the figures mean, and which budgets are too small."""
    from expost.page.introduction import right_of_hundred

    say("")
    for name in shown:
        say(_MEANINGS[name].format(guess=found[0].quality.guess_log_loss))
    told = found[len(found) // 2].told
    say(
        "Told at most: what a person reads about herself, at 95%, in log-odds. With "
        f"{told:.3f} at most {right_of_hundred(told)} of 100 guesses whether she is in the data are right; "
        "50 are by luck."
    )
    for one in found:
        if one.useless:
            say(f"At epsilon {one.epsilon:.3g} the model predicts no better than no features would.")
    say("Nobody's data was read and nothing was spent. Real effects may be weaker or stronger: try --effect.")


def verdict(domain: Domain, plan: Plan, most: int) -> str | None:
    """A sentence for a plan that is useless for as many rows as were declared; public."""
    if most >= ROWS_AT_MOST:
        return None
    rows = min(most, _MOST_INVENTED)
    if not rehearsed(domain, plan, rows, "medium", _FEW).useless:
        return None
    weights = " of weight 1" * (plan.max_weight > 1.0)
    return (
        f"A rehearsal with {rows:,} invented rows{weights} and a medium effect gave a model that predicts "
        "no better than no features would. Expect little of this one: `expost rehearse` shows what more "
        "epsilon, fewer features or more rows would give."
    )
