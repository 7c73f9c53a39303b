"""The commands: what each takes and what it says of itself; what they do is loaded when one runs."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from expost.cli.base import app as app, report_errors
from expost.cli.options import (
    AS_JSON,
    CLUSTER,
    DELTA,
    DEVICE,
    DOMAIN,
    EPSILON,
    FORCE,
    IDENTIFIER,
    MAX_WEIGHT,
    PUBLICATION,
    PUBLICATIONS,
    TABLE,
    WEIGHT,
    PlanOptions,
    RecordOptions,
    argument,
    number,
    option,
)


def _work(module: str) -> Any:
    """The module that does the work of a command: `expost --help` should not load SciPy."""
    return import_module(f"expost.cli.{module}")


@report_errors
def demo(
    out: Path = option(Path("demo"), "Folder for what the demonstration writes."),
    epsilon: float = EPSILON,
    delta: float = DELTA,
    force: bool = FORCE,
) -> None:
    """Fit a private model on bundled data, publish it, and show what it cost each person.

    Example: expost demo --out demo
    """
    _work("demonstration").show(out, epsilon=epsilon, delta=delta, overwrite=force)


@dataclass(frozen=True, kw_only=True)
class DialectOptions:
    """How a table is written for which there is no domain file yet."""

    delimiter: str | None = option(None, "What separates cells, such as ';' or tab.", metavar="MARK")
    decimal: str | None = option(None, "The decimal mark, '.' or ','.", metavar="MARK")
    encoding: str | None = option(None, "The encoding, such as cp1252.", metavar="NAME")
    missing_words: list[str] | None = option(
        None, "A word for a missing value, such as NA; may be given several times.", metavar="WORD"
    )
    dates: str | None = option(None, "How dates are written, such as DD.MM.YYYY.", metavar="ORDER")


@report_errors
def init(
    *,
    table: Path = argument("TABLE", "A .csv or .parquet file."),
    label: str | None = option(None, "The outcome's column; by default the last.", metavar="NAME"),
    options: DialectOptions,
) -> None:
    """Print a domain file with the table's column names and nothing learnt from its values.

    Only the line of names (or Parquet's schema) is read. Bounds, categories and classes are placeholders
    that every other command refuses until you have filled them in. The file says how the table is written,
    as the options do.

    Example: expost init table.csv > domain.toml
    """
    _work("check").init(table, label, options)


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What `check` takes."""

    domain: Path = DOMAIN
    table: Path = TABLE
    problems: Path | None = option(
        None,
        "Write every problem with its record and value (.csv), for the curator only; the name must have "
        "'private' in it.",
        metavar="FILE",
    )
    identifier: str | None = IDENTIFIER
    weight: str | None = WEIGHT
    max_weight: float = MAX_WEIGHT
    force: bool = FORCE
    as_json: bool = AS_JSON


@report_errors
def check(options: CheckOptions) -> None:
    """Find everything in a table that does not fit the domain, at once. Nothing is spent.

    The screen shows which columns have which kind of problem: no value, no record and no number of problems.
    The file of `--problems` lists them record by record, and is private. Status 1 if `fit` would refuse the
    table.

    Example: expost check domain.toml table.csv --problems private-problems.csv
    """
    _work("check").check(options)


@report_errors
def plan(*, domain: Path = DOMAIN, options: PlanOptions, as_json: bool = AS_JSON) -> None:
    """Show what a fit would spend and what noise it would add. No data is needed and none is read.

    Example: expost plan domain.toml --epsilon 1 --delta 1e-6 --report leverage
    """
    _work("plan").plan(domain, options, as_json=as_json)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What `fit` takes."""

    domain: Path = DOMAIN
    table: Path = TABLE
    output: Path = option(Path("publication.json"), "The file to publish.", "--output", "-o")
    losses: Path | None = option(
        None,
        "Also write everyone's exact loss (.csv or .parquet), for the curator only; the name must have "
        "'private' in it.",
    )
    test: Path | None = option(
        None,
        "Records that are not fitted, to see how well they are predicted; for the curator only.",
        metavar="TABLE",
    )
    model: PlanOptions
    weight: str | None = WEIGHT
    identifier: str | None = IDENTIFIER
    dask: str | None = CLUSTER
    device: str | None = DEVICE
    ledger: Path | None = option(None, "The ledger that counts what is spent; needs `--account`.")
    account: str | None = option(
        None, "The table's account there, opened by `expost ledger`.", metavar="NAME"
    )
    note: str = option("", "What the ledger says about this fit; public.", metavar="TEXT")
    dry_run: bool = option(False, "Check everything, spend nothing.", "--dry-run")
    confirm: bool = option(False, "Ask before spending.", "--confirm")
    force: bool = FORCE
    as_json: bool = AS_JSON


@report_errors
def fit(options: FitOptions) -> None:
    """Fit a private model to a table and write the publication: the one file that is made public.

    Shows what will be spent and written before it spends. Every fit spends the budget again. Columns
    that the domain does not name are ignored; a record that does not fit the domain is refused.

    Example: expost fit domain.toml table.csv -o publication.json --losses private-losses.csv
    """
    _work("fit").fit(options)


@report_errors
def page(
    publications: list[Path] = PUBLICATIONS,
    output: Path = option(Path("report.html"), "The page to write.", "--output", "-o"),
    language: str = option("en", "The language of the page: en or de.", "--language", "-l", metavar="en|de"),
    force: bool = FORCE,
) -> None:
    """Make a page, one file that works offline, on which anyone can type her record and read her figures.

    The page holds the publications and nothing else; what is typed into it never leaves the browser.

    What the publisher declared in words is shown as it is, whatever the language.

    Example: expost page publication.json -o report.html --language de
    """
    _work("publications").page(publications, output, language=language, overwrite=force)


@report_errors
def predict(
    *,
    publication: Path = PUBLICATION,
    records: Path = argument(
        "RECORDS",
        "A .csv or .parquet file, a folder of such files, or a quoted pattern; the outcome's column is not "
        "needed.",
    ),
    output: Path | None = option(
        None, "Write all predictions (.csv or .parquet) as they are computed.", "--output", "-o"
    ),
    options: RecordOptions,
) -> None:
    """Predict the outcome of records with a published model: the likeliest class, or a number.

    A logistic model gives the probability of each class too. Predictions are as private as the records;
    nothing is spent, and the publication is not changed.

    Example: expost predict publication.json new.csv -o predictions.csv
    """
    _work("records").predict(publication, records, output, options)


@dataclass(frozen=True, kw_only=True)
class BoundsOptions:
    """What `bounds` takes."""

    publications: list[Path] = PUBLICATIONS
    records: Path = argument(
        "RECORDS",
        "A .csv or .parquet file with the outcome's column, a folder of such files, or a quoted pattern.",
    )
    confidence: float = number(0.95, "How sure each bound should be; choose it before looking.")
    member: Literal["yes", "no", "unknown"] = option(
        "unknown", "Whether the records were in the table that was fitted."
    )
    simultaneous: str | None = option(
        None,
        "Bounds that hold together: for N records fixed in advance, at least as many as RECORDS has, or for "
        "all possible records, even one chosen after seeing the publication.",
        metavar="all|N",
    )
    weight: str | None = option(
        None,
        "The column with the weight of each record; without it the figures of a publication with weights "
        "hold whatever these were.",
        metavar="COLUMN",
    )
    output: Path | None = option(
        None, "Write all figures (.csv or .parquet) as they are computed.", "--output", "-o"
    )
    dask: str | None = CLUSTER
    device: str | None = DEVICE
    reading: RecordOptions


@report_errors
def bounds(options: BoundsOptions) -> None:
    """Bound what publications cost each record, from the publication and the record alone.

    Nothing is sent anywhere, except to the cluster of `--dask`, and nothing about anyone else is revealed.
    The interval for the model, the cost of what was published beside it and the total each hold with the
    chosen confidence on their own, not jointly. With several publications, each has its share of the
    confidence, and the total of all together is a bound of its own, below their sum.

    Example: expost bounds publication.json my-record.csv --confidence 0.99 --member yes
    """
    _work("records").bounds(options)


@dataclass(frozen=True, kw_only=True)
class LossesOptions:
    """What `losses` takes."""

    publication: Path = argument("PUBLICATION.json", "What was published.")
    table: Path = argument("TABLE", "The table that was fitted: a file, a folder or a pattern; private.")
    output: Path | None = option(
        None, "Write the losses (.csv or .parquet); the name must have 'private' in it.", "--output", "-o"
    )
    weight: str | None = WEIGHT
    dask: str | None = CLUSTER
    device: str | None = DEVICE
    reading: RecordOptions


@report_errors
def losses(options: LossesOptions) -> None:
    """Recompute everyone's exact privacy loss from the table and the publication. Private.

    The noise that was drawn follows from the two, so it was never stored. Name the whole table that was
    fitted, all of its rows: one that cannot be it is refused, but a part of it may go unnoticed, and then the
    figures are wrong. Never publish the result, nor tell it to the person it is about.

    Example: expost losses publication.json table.csv -o private-losses.csv
    """
    _work("records").losses(options)


@report_errors
def summary(
    publication: Path = PUBLICATION,
    confidence: float = number(0.95, "How sure each interval should be, on its own."),
    figure: Path | None = option(None, "Draw the intervals in this file (.png, .svg or .pdf)."),
    force: bool = FORCE,
    as_json: bool = AS_JSON,
) -> None:
    """Show the coefficients with standard errors that count sampling and privacy noise.

    In the units of the features, and without the shrinkage of the penalty. It needs a publication with a
    Hessian, such as `expost fit --report leverage --split 0.98 --cap 1` makes.

    Example: expost summary publication.json --confidence 0.9
    """
    _work("publications").summary(publication, confidence, figure, overwrite=force, as_json=as_json)


@report_errors
def ledger(
    file: Path = argument("LEDGER", "The ledger's file, such as ledger.db; public."),
    open_account: str | None = option(
        None, "Open an account for a table; needs the cap as well.", "--open", metavar="NAME"
    ),
    epsilon: float | None = number(None, "Cap: the epsilon of everything ever published."),
    delta: float | None = number(None, "Cap: its delta."),
    as_json: bool = AS_JSON,
) -> None:
    """Show accounts, entries, and what is left of each cap; or open an account.

    A fit with `--ledger` and `--account` is entered before its noise is drawn, and refused if the account
    would be overdrawn. Nothing is ever refunded: an unfinished entry is spent.

    Example: expost ledger ledger.db --open patients --epsilon 3 --delta 1e-6
    """
    book = _work("ledger")
    if open_account is not None or epsilon is not None or delta is not None:
        book.open_account(file, open_account, epsilon, delta, as_json=as_json)
    book.show(file, as_json=as_json)


# In the order in which a user needs them.
for _command in (demo, init, check, plan, fit, page, predict, bounds, losses, summary, ledger):
    app.command()(_command)
