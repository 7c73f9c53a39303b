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
from expost.privacy.precision import REAL, Rounding
from expost.privacy.recalibration import LARGEST_NOISE


@dataclass(frozen=True)
class Statistic:
    """A noisy statistic at the released coefficients."""

    name: str
    title: str
    # From the norm of a record's gradient, its Hessian's largest eigenvalue and rank to how far it moves.
    sensitivity: Callable[[Any, Any, int], Any]
    # From the number of coefficients, the order of the released Hessian and how many numbers recalibrate
    # the model to how many numbers are published.
    entries: Callable[[int, int, int], int]


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "gradient", "gradient", lambda slope, curvature, rank: slope, lambda count, order, after: count
        ),
        # The GOE has variance 2 on the diagonal: half of the squared Frobenius norm counts.
        Statistic(
            "hessian",
            "Hessian",
            lambda slope, curvature, rank: curvature * math.sqrt(rank / 2.0),
            lambda count, order, after: order * (order + 1) // 2,
        ),
        # Weyl: the smallest eigenvalue moves by at most the spectral norm of the change.
        Statistic(
            "eigenvalue",
            "smallest eigenvalue",
            lambda slope, curvature, rank: curvature,
            lambda count, order, after: 1,
        ),
        # At the printed coefficients a row adds a vector of length at most 1, whatever its weight.
        Statistic(
            "recalibration",
            "recalibration",
            lambda slope, curvature, rank: 1.0,
            lambda count, order, after: after,
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
    """The noise σ of the objective, σ₂, σ₃, σ₄ of each statistic of it, and that of a recalibration."""

    sigma: float
    sigma_gradient: float | None = None
    sigma_hessian: float | None = None
    sigma_eigenvalue: float | None = None
    sigma_recalibration: float | None = None

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        for statistic, scale in self.released:
            check_positive(f"sigma_{statistic.name}", scale)
        if self.sigma_recalibration is not None:
            check_positive("sigma_recalibration", self.sigma_recalibration, below=LARGEST_NOISE)

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

    def entries(self, dimension: int, order: int, after: int) -> int:
        """How many numbers go with ``dimension`` coefficients, for a Hessian of ``order`` rows.

        Those that recalibrate the model, if any, are ``after`` numbers.
        """
        return sum(statistic.entries(dimension, order, after) for statistic, _ in self.released)

    @property
    def stated(self) -> dict[str, float | None]:
        """The scales by name; a recalibration's is left out where there is none, as in files from before."""
        found = asdict(self)
        if self.sigma_recalibration is None:
            del found["sigma_recalibration"]
        return found

    def for_rows(self, count: int) -> "NoiseScales":
        """What so many rows that come or leave together move as one row would: each adds its vector."""
        if self.sigma_recalibration is None or count == 1:
            return self
        return replace(self, sigma_recalibration=self.sigma_recalibration / count)

    def over(self, weight: float) -> "NoiseScales":
        """All noise divided by a weight: what an objective divided by it has. What rows add stays."""
        divided = {f"sigma_{one.name}": scale / weight for one, scale in self.released}
        return NoiseScales(self.sigma / weight, **divided | {"sigma_recalibration": self.sigma_recalibration})

    def shift(
        self, gradient: Any, curvature: Any, *, rank: int = 1, rounding: Rounding = REAL, added: Any = 1.0
    ) -> Any:
        r"""How far a record moves what is published, given the exact minimiser, in units of the noise.

        :math:`\Delta` of docs/mathematics.md, section 10, "Statistics". ``gradient`` is
        :math:`\|\nabla\ell\|`, ``curvature`` the largest eigenvalue of :math:`\nabla^2\ell`, of this rank,
        and ``added`` the length of what the record adds to the numbers that recalibrate the model.
        """
        xp = namespace_of(gradient)
        square = xp.full_like(gradient * curvature, rounding.solver**2)
        for statistic, scale in self.released:
            sensitivity = statistic.sensitivity(gradient, curvature, rank) / scale
            if statistic.name == "recalibration":
                sensitivity = added * sensitivity
            square = square + (sensitivity + 2.0 * rounding.error(statistic.name, scale)) ** 2
        return xp.sqrt(square)
