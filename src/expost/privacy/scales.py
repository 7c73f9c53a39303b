"""The statistics that can be published with the coefficients, and the noise scale of each.

Adding a statistic takes a row of :data:`STATISTICS`, a scale in :class:`NoiseScales` and the code that
computes it. Adding a kind of report takes a row of :data:`REPORT_KINDS`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from expost._common.namespaces import namespace_of
from expost._common.validation import check_positive
from expost.privacy.histogram import LARGEST_NOISE, cell_count
from expost.privacy.precision import REAL, Rounding


@dataclass(frozen=True)
class Statistic:
    """A noisy statistic at the released coefficients."""

    name: str
    title: str
    # From the norm of a record's gradient, its Hessian's largest eigenvalue and rank to how far it moves.
    sensitivity: Callable[[Any, Any, int], Any]
    # From the number of coefficients, the order of the released Hessian and the noise scale to how many
    # numbers are published.
    entries: Callable[[int, int, float], int]


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "gradient", "gradient", lambda slope, curvature, rank: slope, lambda count, order, scale: count
        ),
        # The GOE has variance 2 on the diagonal: half of the squared Frobenius norm counts.
        Statistic(
            "hessian",
            "Hessian",
            lambda slope, curvature, rank: curvature * math.sqrt(rank / 2.0),
            lambda count, order, scale: order * (order + 1) // 2,
        ),
        # Weyl: the smallest eigenvalue moves by at most the spectral norm of the change.
        Statistic(
            "eigenvalue",
            "smallest eigenvalue",
            lambda slope, curvature, rank: curvature,
            lambda count, order, scale: 1,
        ),
        # A row is in one cell at the printed coefficients, and counts once there, whatever its weight.
        Statistic(
            "histogram",
            "histogram of scores",
            lambda slope, curvature, rank: 1.0,
            lambda count, order, scale: cell_count(scale),
        ),
    )
}


@dataclass(frozen=True)
class ReportKind:
    r"""What one kind of report releases, its part of the budget, and how a reader's confidence is shared.

    ``model_share`` is the model's default share of the precision :math:`1/\sigma^2 + 1/\sigma_2^2` that it
    has together with the gradient (docs/calibration.md). The events of ``failure_shares`` are that noise
    makes the Hessian look larger (``"hessian_below"``) or smaller (``"hessian_above"``) than it is, that the
    eigenvalue's or the gradient's noise is large, and under ``"tilt"`` that the objective's own is.
    """

    releases: tuple[str, ...]
    model_share: float
    failure_shares: Mapping[str, float]


# Where a gradient is released, its share and the tilt's are each above a third, so that the bound is never
# worse than the smaller of the two bounds that it combines would be with a third each. The Hessian's and the
# eigenvalue's quantiles hardly grow as their shares fall.
REPORT_KINDS = {
    "independent": ReportKind((), 1.0, {"tilt": 1.0}),
    "leverage": ReportKind(("hessian",), 1.0, {"hessian_below": 0.04, "hessian_above": 0.01, "tilt": 0.95}),
    "dependent": ReportKind(
        ("gradient", "hessian"),
        0.5,
        {"hessian_below": 0.04, "hessian_above": 0.01, "gradient": 0.52, "tilt": 0.43},
    ),
    "adaptive": ReportKind(
        ("gradient", "hessian", "eigenvalue"),
        0.5,
        {"hessian_below": 0.04, "hessian_above": 0.01, "eigenvalue": 0.05, "gradient": 0.5, "tilt": 0.4},
    ),
}


@dataclass(frozen=True)
class NoiseScales:
    """The noise σ of the objective, σ₂, σ₃, σ₄ of each statistic of it, and that of a histogram of scores."""

    sigma: float
    sigma_gradient: float | None = None
    sigma_hessian: float | None = None
    sigma_eigenvalue: float | None = None
    sigma_histogram: float | None = None

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        for statistic, scale in self.released:
            check_positive(f"sigma_{statistic.name}", scale)
        if self.sigma_histogram is not None:
            check_positive("sigma_histogram", self.sigma_histogram, below=LARGEST_NOISE)

    def of(self, statistic: str) -> float | None:
        """The scale of a statistic by its name; None where it is not released."""
        scale: float | None = getattr(self, f"sigma_{statistic}")
        return scale

    @property
    def released(self) -> Iterator[tuple[Statistic, float]]:
        """The statistics that are released, each with its scale."""
        for statistic in STATISTICS.values():
            scale = self.of(statistic.name)
            if scale is not None:
                yield statistic, scale

    @property
    def releases_statistics(self) -> bool:
        """Whether anything but the coefficients is published."""
        return any(self.released)

    def entries(self, dimension: int, order: int) -> int:
        """How many numbers go with ``dimension`` coefficients, for a Hessian of ``order`` rows."""
        return sum(statistic.entries(dimension, order, scale) for statistic, scale in self.released)

    @property
    def stated(self) -> dict[str, float | None]:
        """The scales by name; the histogram's is left out where there is none, as in files from before."""
        found = asdict(self)
        if self.sigma_histogram is None:
            del found["sigma_histogram"]
        return found

    def for_rows(self, count: int) -> "NoiseScales":
        """What so many rows that come or leave together move as one row would: each counts in a cell."""
        if self.sigma_histogram is None or count == 1:
            return self
        return replace(self, sigma_histogram=self.sigma_histogram / count)

    def over(self, weight: float) -> "NoiseScales":
        """All noise divided by a weight: what an objective divided by it has. Cells count rows as before."""
        divided = {f"sigma_{one.name}": scale / weight for one, scale in self.released}
        return NoiseScales(self.sigma / weight, **divided | {"sigma_histogram": self.sigma_histogram})

    def shift(self, gradient: Any, curvature: Any, *, rank: int = 1, rounding: Rounding = REAL) -> Any:
        r"""How far a record moves what is published, given the exact minimiser, in units of the noise.

        :math:`\Delta` of docs/mathematics.md, section 10, "Statistics". ``gradient`` is
        :math:`\|\nabla\ell\|`, ``curvature`` the largest eigenvalue of :math:`\nabla^2\ell`, of this rank.
        """
        xp = namespace_of(gradient)
        square = xp.full_like(gradient * curvature, rounding.solver**2)
        for statistic, scale in self.released:
            sensitivity = statistic.sensitivity(gradient, curvature, rank) / scale
            square = square + (sensitivity + 2.0 * rounding.error(statistic.name, scale)) ** 2
        return xp.sqrt(square)
