"""The options that several commands take: a table's domain and cluster, and the plan that they describe."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expost._common.validation import missing_extra_error, numeral
from expost.cli.base import error_console, legible, warn
from expost.exceptions import EngineError

if TYPE_CHECKING:
    from distributed import Client

    from expost.data.dialect import Dialect
    from expost.data.domain import Domain
    from expost.data.weights import Weighting
    from expost.privacy.plan import Plan


_PANEL = "How the table is written, where the domain file does not say it"

Delimiter = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="What separates cells, such as ';' or tab.", rich_help_panel=_PANEL),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="The decimal mark, '.' or ','.", rich_help_panel=_PANEL),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding, such as cp1252.", rich_help_panel=_PANEL),
]
MissingWords = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORD",
        help="A word for a missing value, such as NA; may be given several times.",
        rich_help_panel=_PANEL,
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(metavar="ORDER", help="How dates are written, such as DD.MM.YYYY.", rich_help_panel=_PANEL),
]
DialectOf = Annotated[
    Path | None,
    typer.Option(
        "--domain",
        metavar="DOMAIN.toml",
        help="A domain file whose [table] says how the table is written; nothing else of it is used.",
        rich_help_panel=_PANEL,
    ),
]


def load_domain(path: Path, table: Path | None = None, **dialect: Any) -> "Domain":
    """Read a domain file, and put what options say about the table's files into it.

    A table in the place of the domain file is recognised by its name.
    """
    from expost.data.domain import Domain
    from expost.exceptions import FileError

    if path.suffix.lower() in (".csv", ".parquet", ".pq") and path.is_file():
        both = "" if table is None or table.suffix.lower() != ".toml" else f": {table} {path}"
        raise FileError(
            f"the domain file comes first, and then the table{both}; got {path.name!r} in its place."
        )
    domain = Domain.load(path)
    return domain.model_copy(update={"table": changed_dialect(domain.table, **dialect)})


def dialect_of(domain: Path | None, **dialect: Any) -> "Dialect":
    """How a table is written: as a domain file says, or by default, but for the options that are given."""
    from expost.data.dialect import PLAIN
    from expost.data.domain import Domain

    return changed_dialect(PLAIN if domain is None else Domain.load(domain).table, **dialect)


def changed_dialect(dialect: "Dialect", **options: Any) -> "Dialect":
    """A dialect with the options that are given; ParameterError names one that cannot be."""
    from pydantic import ValidationError

    from expost._common.validation import parameter_error

    given = {name: value for name, value in options.items() if value not in (None, [])}
    if given.get("delimiter") in ("tab", "\\t"):
        given["delimiter"] = "\t"
    try:
        return dialect.changed(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        constraint = first["msg"].removeprefix("Value error, ").removeprefix("must be ")
        constraint = constraint.removeprefix("Input should be ")
    raise parameter_error(name, constraint, given[name])


def check_order(publication: Path, table: Path) -> None:
    """Refuse a table in the place of a publication, where the two were exchanged."""
    from expost.exceptions import FileError

    if table.suffix.lower() == ".json" and publication.suffix.lower() in (".csv", ".parquet", ".pq"):
        raise FileError(f"the publication comes first, and then the table: {table} {publication}.")


# Seconds to wait for a scheduler that does not answer.
_PATIENCE = 15


@contextmanager
def connected(address: str | None) -> "Iterator[Client | None]":
    """A client of the cluster whose scheduler has this address, or None without one.

    Certificates and other settings are Dask's own: its configuration files and environment variables.
    """
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra_error("`--dask`", "Dask", "dask") from None
    from distributed.comm.core import connect
    from distributed.security import Security

    async def knock() -> None:
        comm = await connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
        await comm.close()

    failure = ""
    with error_console.status(f"Connecting to {legible(address)}"):
        try:
            # Before a client is made: one that could not connect hangs when it is forgotten. In a thread of
            # its own: this one may have a loop that runs, as in a notebook.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: asyncio.run(knock())).result()
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            failure = type(error).__name__
    if failure:
        raise EngineError(
            f"there is no Dask scheduler at {address!r} that answers ({failure}). Check the address, which "
            "starts with tcp:// or tls://, and for tls:// the certificates in Dask's configuration."
        )
    if not address.startswith("tls://") and not _is_here(address):
        warn("what travels to the workers is private, and this connection is not encrypted; use tls://.")
    with Client(address, timeout=_PATIENCE, set_as_default=False) as client:
        yield client


def _is_here(address: str) -> bool:
    """Whether an address is one of this machine's own, of which nothing leaves it."""
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")


# The heading of options that few people need, in the help.
_EXPERTS = "For experts"
# Whether a constant is appended to every record: always, as the estimators do by default.
INTERCEPT = True
ROWS_AT_MOST = 10_000_000


class LossName(StrEnum):
    """The losses that have a worst case, so that a budget can be met."""

    LOGISTIC = "logistic"
    SMOOTHED_HINGE = "smoothed_hinge"
    PSEUDO_HUBER = "pseudo_huber"


class Report(StrEnum):
    """What is published beside the model."""

    INDEPENDENT = "independent"
    LEVERAGE = "leverage"
    DEPENDENT = "dependent"
    ADAPTIVE = "adaptive"


def number(text: str) -> float:
    """Read a number from the command line by the rule for all numbers."""
    return numeral(str(text))


def whole_number(text: str) -> int:
    """Read a whole number from the command line by the same rule."""
    value = numeral(str(text))
    if not value.is_integer():
        raise ValueError("not a whole number")
    return int(value)


DomainFile = Annotated[
    Path, typer.Argument(metavar="DOMAIN.toml", help="What is publicly known; see expost init.")
]
Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="A .csv or .parquet file, a folder of such files, or a quoted pattern; private."
    ),
]
Identifier = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="A column by which you know the records; it is copied into the file."
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        parser=number,
        metavar="<number>",
        help="Budget: the promise's epsilon, for everything that is published; smaller is more private.",
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        parser=number,
        metavar="<number>",
        help="Budget: the promise's delta; keep it far below one divided by the number of people.",
    ),
]
ReportOption = Annotated[
    Report,
    typer.Option(
        help="What readers get beside the model. independent, the default: nothing more, and it costs them "
        "nothing. leverage, recommended from about a thousand rows for each column on: most people look up "
        "a lower figure, and with --split 0.98 --cap 1 the coefficients get error bars, for hardly more "
        "noise in the model. dependent and adaptive: figures closer to the truth, but a noisier model."
    ),
]
L2 = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="<number>",
        rich_help_panel=_EXPERTS,
        help="Regularisation of the sum; by default from public values.",
    ),
]
Cap = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="<number>",
        rich_help_panel=_EXPERTS,
        help="Largest slope of the logistic loss, of two classes or more; "
        "by default from the budget, 1 for none.",
    ),
]
Split = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="<number>",
        rich_help_panel=_EXPERTS,
        help="The model's share of the budget's precision, between 0 and 1; "
        "by default all but what cheap statistics cost.",
    ),
]
LossOption = Annotated[
    LossName | None,
    typer.Option(
        rich_help_panel=_EXPERTS, help="By default logistic for classes, pseudo_huber for a numeric outcome."
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="<number>",
        rich_help_panel=_EXPERTS,
        help="Where pseudo_huber turns from squared to absolute, in units of half the outcome's range; by "
        "default from the budget.",
    ),
]
RowsAtMost = Annotated[
    int,
    typer.Option(
        parser=whole_number,
        metavar="<number>",
        rich_help_panel=_EXPERTS,
        help="Up to how many rows exact losses and intervals keep their stated accuracy; not a limit.",
    ),
]
MaxWeight = Annotated[
    float,
    typer.Option(
        parser=number,
        metavar="<number>",
        help="The largest weight of a record, at least 1. Weights up to 1 cost nothing; larger ones cost as "
        "much as if every record had the largest.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column with the weight of each record, where records have weights."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Let the workers of this Dask cluster read the table, for example tls://scheduler:8786.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Let a GPU work on the rows, which are read here and sent there: cuda, or another of PyTorch's.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist; never what is read.")]


def declared_weighting(weight: str | None, max_weight: float) -> "Weighting":
    """What was declared about weights: their column, and the largest of them."""
    from expost._common.validation import parameter_error
    from expost.data.weights import Weighting

    if weight is None and max_weight != 1.0:
        raise parameter_error(
            "max_weight",
            "left out where there are no weights",
            max_weight,
            "Name their column with --weight.",
        )
    return Weighting.declared(max_weight, None, of_records=weight is not None)


def make_plan(
    domain: "Domain",
    *,
    epsilon: float,
    delta: float,
    report: Report,
    l2: float | None,
    cap: float | None,
    split: float | None,
    loss: LossName | None,
    threshold: float | None,
    rows_at_most: int,
    max_weight: float,
) -> "Plan":
    """Make the plan for a domain; it is public, and `plan` and `fit` make the same one."""
    from expost._common.validation import parameter_error
    from expost.data.weights import Weighting
    from expost.losses import AnyLoss, PseudoHuber, as_loss
    from expost.privacy.calibration import calibrate
    from expost.privacy.plan import row_radius
    from expost.privacy.shapes import classification_loss, default_reduced, default_threshold

    classes = 0 if domain.classes is None else len(domain.classes)
    max_weight = Weighting.declared(max_weight, None, of_records=False).largest
    if loss is None:
        loss = LossName.LOGISTIC if classes else LossName.PSEUDO_HUBER
    several = classes > 2 and loss is LossName.SMOOTHED_HINGE
    if (loss is LossName.PSEUDO_HUBER) == bool(classes) or several:
        suitable = "'pseudo_huber' for a number"
        if classes:
            suitable = "'logistic'" + " or 'smoothed_hinge'" * (classes == 2) + f" for {classes} classes"
        raise parameter_error("loss", suitable, loss.value, "The domain says which the outcome is.")
    if cap is not None and loss is not LossName.LOGISTIC:
        raise parameter_error("cap", "left out for this loss", cap, "Only the logistic loss has a cap.")
    if threshold is not None and classes:
        raise parameter_error("threshold", "left out where the outcome has classes", threshold)
    chosen: AnyLoss = as_loss(loss.value)
    if loss is LossName.LOGISTIC:
        radius = row_radius(domain.row_norm, fit_intercept=INTERCEPT)
        penalty = None if l2 is None else l2 / max_weight
        chosen = classification_loss(classes, epsilon, delta, cap=cap, l2=penalty, radius=radius)
    elif loss is LossName.PSEUDO_HUBER:
        chosen = PseudoHuber(default_threshold(epsilon, delta) if threshold is None else threshold)
    return calibrate(
        loss=chosen,
        norm=domain.row_norm,
        epsilon=epsilon,
        delta=delta,
        l2=l2,
        report=report.value,
        split=split,
        fit_intercept=INTERCEPT,
        rows_at_most=rows_at_most,
        max_weight=max_weight,
        reduced=default_reduced(chosen, report.value, len(domain.column_names) + INTERCEPT),
    )
