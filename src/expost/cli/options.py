"""What commands take: arguments, options and numbers, and the options that several commands share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal

import typer

from expost._common.validation import numeral

# The heading of options that few people need, in the help.
_EXPERTS = "For experts"


def whole_number(text: str) -> int:
    """Read a whole number from the command line by the rule for all numbers."""
    value = numeral(str(text))
    if not value.is_integer():
        raise ValueError("not a whole number")
    return int(value)


def argument(metavar: str, explanation: str) -> Any:
    """An argument of a command; stands where a default would."""
    return typer.Argument(metavar=metavar, help=explanation)


def option(
    default: Any, explanation: str, *names: str, metavar: str | None = None, panel: str | None = None
) -> Any:
    """An option of a command; stands where its default would."""
    return typer.Option(default, *names, metavar=metavar, help=explanation, rich_help_panel=panel)


def number(default: float | EllipsisType | None, explanation: str, *, panel: str | None = None) -> Any:
    """An option that takes a number, whole where its default is or it must be given; one rule for all."""
    read: Callable[[str], float] = whole_number if isinstance(default, int) or default is ... else numeral

    def parser(text: Any) -> float:
        try:
            return read(str(text))
        except ValueError as error:
            raise typer.BadParameter(f"{str(text)!r} is {error}.") from None

    return typer.Option(default, parser=parser, metavar="<number>", help=explanation, rich_help_panel=panel)


DOMAIN = argument("DOMAIN.toml", "What is publicly known; see expost init.")
TABLE = argument("TABLE", "A .csv or .parquet file, a folder of such files, or a quoted pattern; private.")
PUBLICATIONS = argument("PUBLICATION.json", "One or several publications.")
PUBLICATION = argument("PUBLICATION.json", "A publication.")
IDENTIFIER = option(
    None, "A column by which you know the records; it is copied into the file.", "--id", metavar="COLUMN"
)
PERSON = option(
    None,
    "The column that says whose each row is, where people have several; by default the `person` of --domain.",
    metavar="COLUMN",
)
EPSILON = number(
    1.0, "Budget: the promise's epsilon, for everything that is published; smaller is more private."
)
DELTA = number(1e-6, "Budget: the promise's delta; keep it far below one divided by the number of people.")
WEIGHT = option(
    None, "The column with the weight of each record, where records have weights.", metavar="COLUMN"
)
MAX_WEIGHT = number(
    1.0,
    "The largest weight of a record, at least 1. Weights up to 1 cost nothing; larger ones cost as much as "
    "if every record had the largest.",
)
CLUSTER = option(
    None,
    "Let the workers of this Dask cluster read the table, for example tls://scheduler:8786.",
    "--dask",
    metavar="ADDRESS",
)
DEVICE = option(
    None,
    "Let a GPU work on the rows, which are read here and sent there: cuda, or another of PyTorch's.",
    metavar="NAME",
)
LEDGER = option(None, "The ledger that counts what is spent; needs `--account`.")
ACCOUNT = option(None, "The table's account there, opened by `expost ledger`.", metavar="NAME")
YES = option(False, "Spend without asking first, as is done where there is no terminal.", "--yes")
AS_JSON = option(False, "Print one JSON document for machines.", "--json")
FORCE = option(False, "Overwrite files that exist; never what is read.", "--force")


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """The options of commands that read a publication for the records of a table."""

    identifier: str | None = IDENTIFIER
    domain: Path | None = option(
        None,
        "A domain file whose [table] says how the table is written, and whose `person` whose each row is; "
        "nothing else of it is used.",
        metavar="DOMAIN.toml",
    )
    force: bool = FORCE
    as_json: bool = AS_JSON


ROWS_AT_MOST = 10_000_000
"""As many rows as a table is taken to have at most where nothing is declared."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options that describe a model; `plan` and `fit` make the same plan of them."""

    epsilon: float = EPSILON
    delta: float = DELTA
    models: int = number(
        1,
        "Budget: how many models of one table share it, such as one for each of several outcomes; all of "
        "them are of one kind, and planned and fitted with the same options.",
    )
    report: Literal["independent", "leverage", "dependent", "adaptive"] = option(
        "independent",
        "What readers get with the model. independent, the default: nothing more, and it costs them "
        "nothing. leverage, recommended from about a thousand rows for each encoded column on (a number "
        "has one, a category one for each value): most people look up a lower figure, for hardly more noise "
        "in the model. With --split 0.98 --cap 1 the coefficients get error bars instead, and people look "
        "up a higher figure. dependent and adaptive: figures closer to the truth, but a noisier model.",
        metavar="NAME",
    )
    l2: float | None = number(
        None, "Regularisation of the sum; by default from public values.", panel=_EXPERTS
    )
    l1: str | None = option(
        None,
        "Let many coefficients that are mostly noise become exactly 0: the weight of their absolute "
        "values, on the scale of --l2, or auto, half of the noise. It pays with many useless columns. Signs "
        "and bounds are `effect` in the domain.",
        metavar="NUMBER|auto",
        panel=_EXPERTS,
    )
    cap: float | None = number(
        None,
        "Largest slope of the logistic loss, of two classes or more, 1 for none; by default gradients have a "
        "largest length that follows from the budget.",
        panel=_EXPERTS,
    )
    recalibrate: bool = option(
        False,
        "Of two classes: publish a noisy histogram of scores for a tenth of the budget, correct "
        "probabilities by it, and cut gradients shorter. It pays at epsilon 1 or more, for classes that can "
        "be told apart well and a few hundred rows or more, ten or more for each column. Of an outcome with "
        'kind = "number": publish five noisy sums of predictions and errors for 3% of the budget and correct '
        "predictions by them. It pays for skewed ones, such as days in hospital. Other outcomes "
        "and quantiles have no such correction, nor has a domain with a person.",
        "--recalibrate",
        panel=_EXPERTS,
    )
    split: float | None = number(
        None,
        "The model's share of the budget's precision, between 0 and 1; by default all but what cheap "
        "statistics cost.",
        panel=_EXPERTS,
    )
    loss: Literal["logistic", "smoothed_hinge", "pseudo_huber", "smoothed_pinball"] | None = option(
        None,
        "logistic, the default for classes, or smoothed_hinge; pseudo_huber for a numeric outcome.",
        metavar="NAME",
        panel=_EXPERTS,
    )
    level: float | None = number(
        None, "Model this quantile of a numeric outcome, not its mean: 0.5 is the median.", panel=_EXPERTS
    )
    threshold: float | None = number(
        None,
        "Where pseudo_huber turns from squared to absolute, in units of half the outcome's range; by default "
        "from the budget.",
        panel=_EXPERTS,
    )
    rows_at_most: int = number(
        ROWS_AT_MOST,
        "Up to how many rows, or people where they are promised to, exact losses and intervals keep their "
        "stated accuracy; not a limit. With less than the default, fit says whether so many rows can give a "
        "useful model.",
        panel=_EXPERTS,
    )
    max_weight: float = MAX_WEIGHT
