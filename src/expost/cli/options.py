"""Arguments and options that several commands take, each declared once."""

from dataclasses import dataclass
from pathlib import Path
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


def number(default: float | None, explanation: str, *, panel: str | None = None) -> Any:
    """An option that takes a number, whole where its default is, by the rule for all numbers."""
    parser = whole_number if isinstance(default, int) else lambda text: numeral(str(text))
    return typer.Option(default, parser=parser, metavar="<number>", help=explanation, rich_help_panel=panel)


DOMAIN = argument("DOMAIN.toml", "What is publicly known; see expost init.")
TABLE = argument("TABLE", "A .csv or .parquet file, a folder of such files, or a quoted pattern; private.")
PUBLICATIONS = argument("PUBLICATION.json", "One or several publications.")
PUBLICATION = argument("PUBLICATION.json", "A publication.")
IDENTIFIER = option(
    None, "A column by which you know the records; it is copied into the file.", "--id", metavar="COLUMN"
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
AS_JSON = option(False, "Print one JSON document for machines.", "--json")
FORCE = option(False, "Overwrite files that exist; never what is read.", "--force")


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """The options of commands that read a publication for the records of a table."""

    identifier: str | None = IDENTIFIER
    domain: Path | None = option(
        None,
        "A domain file whose [table] says how the table is written; nothing else of it is used.",
        metavar="DOMAIN.toml",
    )
    force: bool = FORCE
    as_json: bool = AS_JSON


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options that describe a model; `plan` and `fit` make the same plan of them."""

    epsilon: float = EPSILON
    delta: float = DELTA
    report: Literal["independent", "leverage", "dependent", "adaptive"] = option(
        "independent",
        "What readers get beside the model. independent, the default: nothing more, and it costs them "
        "nothing. leverage, recommended from about a thousand rows for each column on: most people look up "
        "a lower figure, and with --split 0.98 --cap 1 the coefficients get error bars, for hardly more "
        "noise in the model. dependent and adaptive: figures closer to the truth, but a noisier model.",
    )
    l2: float | None = number(
        None, "Regularisation of the sum; by default from public values.", panel=_EXPERTS
    )
    cap: float | None = number(
        None,
        "Largest slope of the logistic loss, of two classes or more; by default from the budget, 1 for none.",
        panel=_EXPERTS,
    )
    split: float | None = number(
        None,
        "The model's share of the budget's precision, between 0 and 1; by default all but what cheap "
        "statistics cost.",
        panel=_EXPERTS,
    )
    loss: Literal["logistic", "smoothed_hinge", "pseudo_huber"] | None = option(
        None, "By default logistic for classes, pseudo_huber for a numeric outcome.", panel=_EXPERTS
    )
    threshold: float | None = number(
        None,
        "Where pseudo_huber turns from squared to absolute, in units of half the outcome's range; by default "
        "from the budget.",
        panel=_EXPERTS,
    )
    rows_at_most: int = number(
        10_000_000,
        "Up to how many rows exact losses and intervals keep their stated accuracy; not a limit.",
        panel=_EXPERTS,
    )
    max_weight: float = MAX_WEIGHT
