"""A publication on one line and as a table for a terminal."""

from typing import TYPE_CHECKING, Protocol

from expost.losses import Loss, describe
from expost.publication.schema import PublishedPlan

if TYPE_CHECKING:
    from rich.table import Table


class Shown(Protocol):
    """What is shown of a publication."""

    @property
    def loss(self) -> Loss:
        """The loss."""

    @property
    def plan(self) -> PublishedPlan:
        """The noise scales and the guarantee."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def fit_intercept(self) -> bool:
        """Whether there is an intercept."""

    @property
    def insecure(self) -> str | None:
        """The sentence that voids the guarantee, where one does."""

    @property
    def sha256(self) -> str:
        """The fingerprint of the file."""


def one_line(publication: Shown) -> str:
    """The publication's repr."""
    count = publication.n_features
    return (
        f"Publication({'INSECURE, ' if publication.insecure else ''}{describe(publication.loss)['name']}, "
        f"{count} feature{'s' * (count != 1)}, {promise(publication.plan)}, "
        f"report={publication.plan.report!r})"
    )


def promise(plan: PublishedPlan) -> str:
    """The guarantee in a few words."""
    if plan.epsilon is None:
        return "no worst case"
    return f"epsilon={plan.epsilon:g}, delta={plan.delta:g}"


def summary_table(publication: Shown) -> "Table":
    """The publication as a table for a terminal."""
    from rich.table import Table

    table = Table(title="Publication (public)", title_justify="left", show_header=False)
    stated = promise(publication.plan)
    if publication.insecure:
        table.add_row("[bold red]INSECURE[/bold red]", f"[bold red]{publication.insecure}[/bold red]")
        stated = f"none; with secret noise {stated}"
    table.add_row("guarantee", stated)
    table.add_row("loss", str(publication.loss))
    table.add_row("features", f"{publication.n_features}{' and an intercept' * publication.fit_intercept}")
    table.add_row("noise", f"sigma={publication.plan.sigma:.6g}, l2={publication.plan.l2:.6g}")
    table.add_row("report", publication.plan.report)
    table.add_row("sha256", publication.sha256)
    return table
