"""A publication on one line and as a table."""

from typing import Protocol

from expost._common.summary import Summary
from expost.data.weights import Weighting
from expost.losses import AnyLoss, describe
from expost.publication.schema import PublishedPlan, PublishedPrecision


class Shown(Protocol):
    """What is shown of a publication."""

    @property
    def loss(self) -> AnyLoss:
        """The loss."""

    @property
    def plan(self) -> PublishedPlan:
        """The noise scales and the guarantee."""

    @property
    def precision(self) -> PublishedPrecision | None:
        """How the numbers were printed; None in real arithmetic."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def norm(self) -> float:
        """The largest norm of a row."""

    @property
    def fit_intercept(self) -> bool:
        """Whether there is an intercept."""

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights."""

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
        f"{'real arithmetic, ' if publication.precision is None else ''}report={publication.plan.report!r})"
    )


def promise(plan: PublishedPlan) -> str:
    """The guarantee in a few words."""
    if plan.epsilon is None:
        return "no worst case"
    return f"epsilon={plan.epsilon:g}, delta={plan.delta:g}"


def overview(publication: Shown) -> Summary:
    """The publication as a table, for a terminal and for a notebook."""
    stated = promise(publication.plan)
    rows = [
        ("guarantee", f"none; with secret noise {stated}" if publication.insecure else stated),
        ("arithmetic", _arithmetic(publication.precision)),
        ("loss", str(publication.loss)),
        ("features", f"{publication.n_features}{' and an intercept' * publication.fit_intercept}"),
        ("rows", f"of norm ≤ {publication.norm:g}{_weights(publication.weighting)}"),
        ("noise", f"sigma={publication.plan.sigma:.6g}, l2={publication.plan.l2:.6g}"),
        ("report", f"{publication.plan.report}{', reduced Hessian' * bool(publication.plan.reduced)}"),
        ("sha256", publication.sha256),
    ]
    return Summary("Publication (public)", rows, alarm=publication.insecure)


def _arithmetic(precision: PublishedPrecision | None) -> str:
    """What the guarantee is for: the numbers as they are printed, or real numbers."""
    if precision is None:
        return "real: rounding is not counted, because this loss states no error for its derivatives"
    return f"printed on a grid of {precision.grid:.3g}, and rounding is counted"


def _weights(weighting: Weighting) -> str:
    parts = []
    if weighting.max_weight is not None:
        parts.append(f"sample weights ≤ {weighting.max_weight:g}")
    if weighting.class_weight is not None:
        parts.append("class weights " + ", ".join(f"{weight:g}" for weight in weighting.class_weight))
    return "".join(f", {part}" for part in parts)
