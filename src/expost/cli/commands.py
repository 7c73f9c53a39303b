"""The commands in the order in which a user needs them: what each takes and what it says of itself."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from expost.cli.base import app as app, command
from expost.cli.options import (
    ACCOUNT,
    AS_JSON,
    CLUSTER,
    DELTA,
    DEVICE,
    DOMAIN,
    EPSILON,
    FORCE,
    IDENTIFIER,
    LEDGER,
    MAX_WEIGHT,
    PERSON,
    PUBLICATION,
    PUBLICATIONS,
    TABLE,
    WEIGHT,
    YES,
    PlanOptions,
    RecordOptions,
    argument,
    number,
    option,
)


@command("demonstration")
def demo(
    out: Path = option(Path("demo"), "Folder for what the demonstration writes."),
    epsilon: float = EPSILON,
    delta: float = DELTA,
    force: bool = FORCE,
) -> None:
    """Fit a private model on bundled data, publish it, and show what it cost each person.

    Example: expost demo --out demo
    """


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


@command("check")
def init(
    *,
    table: Path = argument("TABLE", "A .csv or .parquet file."),
    label: str | None = option(None, "The outcome's column; by default the last.", metavar="NAME"),
    output: Path | None = option(
        None, "The domain file to write; by default it is printed.", "--output", "-o", metavar="FILE"
    ),
    force: bool = FORCE,
    options: DialectOptions,
) -> None:
    """Write a domain file with the table's column names and nothing learnt from its values.

    Only the line of names (or Parquet's schema) is read. Bounds, categories and classes are placeholders
    that every other command refuses until you have filled them in. The file says how the table is written,
    as the options do.

    Example: expost init table.csv -o domain.toml
    """


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


@command("check")
def check(options: CheckOptions) -> None:
    """Find everything in a table that does not fit the domain, at once. Nothing is spent.

    The screen shows which columns have which kind of problem: no value, no record and no number of problems.
    The file of `--problems` lists them record by record, and is private; it alone says how many people and
    rows there are, where the domain names a `person`. Status 1 if `fit` would refuse the table.

    Example: expost check domain.toml table.csv --problems private-problems.csv
    """


@dataclass(frozen=True, kw_only=True)
class ChooseOptions:
    """What `choose` takes."""

    domain: Path = DOMAIN
    table: Path = TABLE
    output: Path = option(Path("chosen.toml"), "The domain file to write.", "--output", "-o")
    epsilon: float = number(0.1, "Budget for all choices together; at delta 0.")
    ledger: Path | None = LEDGER
    account: str | None = ACCOUNT
    yes: bool = YES
    force: bool = FORCE
    as_json: bool = AS_JSON


@command("choose")
def choose(options: ChooseOptions) -> None:
    """Choose the ranges of columns privately, where nobody knows them: spends a budget of its own.

    For columns of numbers with `low = "private"` or `high = "private"` and a public `grid` of candidates in
    the domain file. Candidates below which about 1% and 99% of the values lie are likely to be chosen. Writes
    a domain file with the ranges and what they cost; `fit`, `bounds` and the page count that in every figure.
    A range that is known without the table costs nothing, and is better for fewer than about 20,000 rows.

    Example: expost choose domain.toml table.csv -o chosen.toml --epsilon 0.1
    """


@command("plan")
def plan(*, domain: Path = DOMAIN, options: PlanOptions, as_json: bool = AS_JSON) -> None:
    """Show what a fit would spend and what noise it would add. No data is needed and none is read.

    Example: expost plan domain.toml --epsilon 1 --delta 1e-6 --report leverage
    """


Effect = Literal["none", "weak", "medium", "strong"]


@command("rehearse")
def rehearse(
    *,
    domain: Path = DOMAIN,
    rows: int = number(
        ..., "How many rows the table will have; how many people where the domain has a person."
    ),
    effect: Effect = option("medium", "How strongly the invented outcome depends on the features."),
    tables: int = number(7, "How many tables to invent at each of three budgets."),
    options: PlanOptions,
    as_json: bool = AS_JSON,
) -> None:
    """Show what a fit would be good for: fit invented tables of a domain. No data is read, nothing is spent.

    Invents people evenly over what the domain declares, each of weight 1, with an outcome that depends on
    their features, and fits them at a third of the budget, at the budget and at three times as much: how well
    the models predict other invented people, and what people would be told.

    Example: expost rehearse domain.toml --rows 2000 --epsilon 1 --report leverage
    """


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
    ledger: Path | None = LEDGER
    account: str | None = ACCOUNT
    note: str = option("", "What the ledger says about this fit; public.", metavar="TEXT")
    dry_run: bool = option(False, "Check everything, spend nothing.", "--dry-run")
    yes: bool = YES
    force: bool = FORCE
    as_json: bool = AS_JSON


@command("fit")
def fit(options: FitOptions) -> None:
    """Fit a private model to a table and write the publication: the one file that is made public.

    Shows what will be spent and written before it spends. Every fit spends the budget again. Columns
    that the domain does not name are ignored; a record that does not fit the domain is refused. Where the
    domain names a `person`, the promise and the losses are for each person with all of her rows.

    Example: expost fit domain.toml table.csv -o publication.json --losses private-losses.csv
    """


@command("publications")
def page(
    publications: list[Path] = PUBLICATIONS,
    output: Path = option(Path("report.html"), "The page to write.", "--output", "-o"),
    language: str | None = option(
        None,
        "The language of the page; by default the `language` under [publication] of the domain file, or en.",
        "--language",
        "-l",
        metavar="en|de|fr|es",
    ),
    force: bool = FORCE,
) -> None:
    """Make a page, one file that works offline, on which anyone can type her record and read her figures.

    The page holds the publications and nothing else; what is typed into it never leaves the browser.

    What the publisher declared in words is shown as it is, whatever the language.

    Example: expost page publication.json -o report.html --language de
    """


@command("predict")
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
    """Predict the outcome of records with a published model: a class, a number or a time.

    Of classes it is the likeliest, and of classes with an order the median; a logistic model gives the
    probability of each class too. Of a time it is the mean within the declared periods, an event in the
    middle of its own, and the file has the probability that the event has not happened by
    the end of each. Predictions are as private as the records; nothing is spent, and the publication is not
    changed.

    Example: expost predict publication.json new.csv -o predictions.csv
    """


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
    person: str | None = PERSON
    wallet: bool = option(
        False,
        "Instead of the total of all: how far they can have raised the odds that a member is in the table, "
        "even if each was decided on by those before; needs `--member yes`, and the first one first.",
        "--wallet",
    )
    output: Path | None = option(
        None, "Write all figures (.csv or .parquet) as they are computed.", "--output", "-o"
    )
    dask: str | None = CLUSTER
    device: str | None = DEVICE
    reading: RecordOptions


@command("bounds")
def bounds(options: BoundsOptions) -> None:
    """Bound what publications cost each record, from the publication and the record alone.

    Nothing is sent anywhere, except to the cluster of `--dask`, and nothing about anyone else is revealed.
    The interval for the model, the cost of what was published with it and the total each hold with the
    chosen confidence on their own, not jointly. With several publications, each has its share of the
    confidence, and the total of all together is a bound of its own, as a rule below their sum. It holds if
    plans and their number were fixed in advance; `--wallet` has a bound that holds however they were chosen,
    for people in the table and for one side. Choose between the two before you look.

    Where a publication promises to people, RECORDS must have all rows of a person, and they are read as one
    person's unless `--person` says whose each is. For a publication that promises to rows, `--person` gives
    the figures of families: of all records that have one id, together.

    Example: expost bounds publication.json my-record.csv --confidence 0.99 --member yes
    """


@dataclass(frozen=True, kw_only=True)
class LossesOptions:
    """What `losses` takes."""

    publication: Path = argument("PUBLICATION.json", "What was published.")
    table: Path = argument("TABLE", "The table that was fitted: a file, a folder or a pattern; private.")
    output: Path | None = option(
        None, "Write the losses (.csv or .parquet); the name must have 'private' in it.", "--output", "-o"
    )
    weight: str | None = WEIGHT
    person: str | None = PERSON
    dask: str | None = CLUSTER
    device: str | None = DEVICE
    reading: RecordOptions


@command("losses")
def losses(options: LossesOptions) -> None:
    """Recompute everyone's exact privacy loss from the table and the publication. Private.

    The noise that was drawn follows from the two, so it was never stored. Name the whole table that was
    fitted, all of its rows: one that cannot be it is refused, but a part of it may go unnoticed, and then the
    figures are wrong. Never publish the result, nor tell it to the person it is about. Where people have
    several rows there is one line for each person, with her id.

    Example: expost losses publication.json table.csv -o private-losses.csv
    """


@command("publications")
def summary(
    publication: Path = PUBLICATION,
    confidence: float = number(0.95, "How sure each interval should be, on its own."),
    figure: Path | None = option(None, "Draw the intervals in this file (.png, .svg or .pdf)."),
    force: bool = FORCE,
    as_json: bool = AS_JSON,
) -> None:
    """Show the coefficients in the units of the table, with error bars where the publication has them.

    Standard errors count sampling and privacy noise, and undo the shrinkage of the penalty. They need a
    publication with a precise Hessian, such as `expost fit --report leverage --split 0.98 --cap 1` makes; the
    coefficients of any other are shown as they were published.

    Example: expost summary publication.json --confidence 0.9
    """


@command("ledger")
def ledger(
    file: Path = argument("LEDGER", "The ledger's file, such as ledger.db; public."),
    open_account: str | None = option(
        None, "Open an account for a table; needs the cap as well.", "--open", metavar="NAME"
    ),
    epsilon: float | None = number(None, "Cap: the epsilon of everything ever published."),
    delta: float | None = number(None, "Cap: its delta."),
    adaptive: bool = option(
        False,
        "Open an account whose plans may be chosen from what was published before; it has room for a little "
        "less.",
        "--adaptive",
    ),
    enter: list[Path] | None = option(
        None, "Count a publication made without the ledger; may be repeated.", metavar="PUBLICATION.json"
    ),
    account: str | None = option(
        None, "The account that counts it, where there are several.", metavar="NAME"
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Show accounts, entries, and what is left of each cap; or open an account, or count a publication.

    A fit with `--ledger` and `--account` is entered before its noise is drawn, and refused if the account
    would be overdrawn. Nothing is ever refunded: an unfinished entry is spent. What was published before
    there was a ledger is counted with `--enter`.

    Example: expost ledger ledger.db --open patients --epsilon 3 --delta 1e-6
    """
