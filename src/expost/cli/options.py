"""The options that several commands take: a table's domain and cluster, and the plan that they describe."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from expost._common.validation import missing_extra_error, numeral, parameter_error
from expost.cli.base import error_console, legible, warn
from expost.exceptions import EngineError, FileError

if TYPE_CHECKING:
    from distributed import Client

    from expost.data.dialect import Dialect
    from expost.data.domain import Domain
    from expost.data.weights import Weighting
    from expost.privacy.plan import Plan

# The heading of options that few people need, in the help.
_EXPERTS = "For experts"
# Whether a constant is appended to every record: always, as the estimators do by default.
INTERCEPT = True
_TABLES = (".csv", ".parquet", ".pq")
# Seconds to wait for a scheduler that does not answer.
_PATIENCE = 15


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

    @property
    def dialect(self) -> "Dialect":
        """How the table is written."""
        from expost.data.dialect import PLAIN

        return PLAIN if self.domain is None else load_domain(self.domain).table


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

    def plan_for(self, domain: "Domain") -> "Plan":
        """Make the plan for a domain; it is public."""
        from expost.data.weights import Weighting
        from expost.losses import AnyLoss, PseudoHuber, as_loss
        from expost.privacy.calibration import calibrate
        from expost.privacy.plan import row_radius
        from expost.privacy.shapes import classification_loss, default_threshold
        from expost.privacy.softmax_rules import default_reduced

        classes = 0 if domain.classes is None else len(domain.classes)
        max_weight = Weighting.declared(self.max_weight, None, of_records=False).largest
        name = self._loss_for(classes)
        budget = {"epsilon": self.epsilon, "delta": self.delta}
        loss: AnyLoss = as_loss(name)
        if name == "logistic":
            radius = row_radius(domain.row_norm, fit_intercept=INTERCEPT)
            penalty = None if self.l2 is None else self.l2 / max_weight
            loss = classification_loss(classes, **budget, cap=self.cap, l2=penalty, radius=radius)
        elif name == "pseudo_huber":
            loss = PseudoHuber(default_threshold(**budget) if self.threshold is None else self.threshold)
        return calibrate(
            loss=loss,
            norm=domain.row_norm,
            **budget,
            l2=self.l2,
            report=self.report,
            split=self.split,
            fit_intercept=INTERCEPT,
            rows_at_most=self.rows_at_most,
            max_weight=max_weight,
            reduced=default_reduced(loss, self.report, len(domain.column_names) + INTERCEPT),
        )

    def _loss_for(self, classes: int) -> str:
        """The name of a loss that suits the outcome, whose number of classes is 0 where it is a number."""
        suitable = {0: ["pseudo_huber"], 2: ["logistic", "smoothed_hinge"]}.get(classes, ["logistic"])
        loss = self.loss or suitable[0]
        if loss not in suitable:
            outcome = f"{classes} classes" if classes else "a number"
            wanted = f"{' or '.join(map(repr, suitable))} for {outcome}"
            raise parameter_error("loss", wanted, loss, "The domain says which the outcome is.")
        if self.cap is not None and loss != "logistic":
            only = "Only the logistic loss has a cap."
            raise parameter_error("cap", "left out for this loss", self.cap, only)
        if self.threshold is not None and classes:
            raise parameter_error("threshold", "left out where the outcome has classes", self.threshold)
        return loss


def declared_weighting(weight: str | None, max_weight: float) -> "Weighting":
    """What was declared about weights: their column, and the largest of them."""
    from expost.data.weights import Weighting

    if weight is None and max_weight != 1.0:
        hint = "Name their column with --weight."
        raise parameter_error("max_weight", "left out where there are no weights", max_weight, hint)
    return Weighting.declared(max_weight, None, of_records=weight is not None)


def load_domain(path: Path, table: Path | None = None) -> "Domain":
    """Read a domain file; a table in its place is recognised by its name."""
    from expost.data.domain import Domain

    if path.suffix.lower() in _TABLES and path.is_file():
        both = "" if table is None or table.suffix.lower() != ".toml" else f": {table} {path}"
        raise FileError(
            f"the domain file comes first, and then the table{both}; got {path.name!r} in its place."
        )
    return Domain.load(path)


def check_order(publication: Path, table: Path) -> None:
    """Refuse a table in the place of a publication, where the two were exchanged."""
    if table.suffix.lower() == ".json" and publication.suffix.lower() in _TABLES:
        raise FileError(f"the publication comes first, and then the table: {table} {publication}.")


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
    failure = ""
    with error_console.status(f"Connecting to {legible(address)}"):
        try:
            _knock(address)
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


def _knock(address: str) -> None:
    """Connect once, before a client is made: one that could not connect hangs when it is forgotten."""
    import asyncio

    from distributed.comm.core import connect
    from distributed.security import Security

    async def knock() -> None:
        comm = await connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
        await comm.close()

    # In a thread of its own: this one may have a loop that runs, as in a notebook.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(knock())).result()


def _is_here(address: str) -> bool:
    """Whether an address is one of this machine's own, of which nothing leaves it."""
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")
