"""The noise scales of a publication, as one value."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from expost._common.namespaces import namespace_of
from expost._common.validation import check_positive
from expost.privacy.precision import REAL, Rounding
from expost.privacy.statistics import STATISTICS, Statistic


@dataclass(frozen=True)
class NoiseScales:
    r"""The noise of the objective and of each statistic that is released.

    Parameters
    ----------
    sigma
        :math:`\sigma`, the noise of objective perturbation.
    sigma_gradient, sigma_hessian, sigma_eigenvalue
        :math:`\sigma_2, \sigma_3, \sigma_4`, the noise of the gradient, the Hessian and its smallest
        eigenvalue; None where the statistic is not released.

    Examples
    --------
    >>> NoiseScales(4.3, sigma_hessian=1.05).released_names
    ('hessian',)
    """

    sigma: float
    sigma_gradient: float | None = None
    sigma_hessian: float | None = None
    sigma_eigenvalue: float | None = None

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        for statistic, scale in self.released:
            check_positive(f"sigma_{statistic.name}", scale)

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
    def released_names(self) -> tuple[str, ...]:
        """The names of the statistics that are released."""
        return tuple(statistic.name for statistic, _ in self.released)

    @property
    def releases_statistics(self) -> bool:
        """Whether anything but the coefficients is published."""
        return bool(self.released_names)

    def entries(self, dimension: int, order: int) -> int:
        """How many numbers go with ``dimension`` coefficients, for a Hessian of ``order`` rows."""
        return sum(statistic.entries(dimension, order) for statistic, _ in self.released)

    def over(self, weight: float) -> "NoiseScales":
        """All noise divided by a weight: what an objective divided by it has."""
        return NoiseScales(
            self.sigma / weight, **{f"sigma_{one.name}": scale / weight for one, scale in self.released}
        )

    def shift(self, gradient: Any, curvature: Any, *, rank: int = 1, rounding: Rounding = REAL) -> Any:
        r"""How far a record moves what is published, given the exact minimiser, in units of the noise.

        .. math:: \Delta^2 = \frac{\|\nabla\ell\|^2}{\sigma_2^2} + \frac{\|\nabla^2\ell\|_F^2}{2\sigma_3^2}
                  + \frac{\|\nabla^2\ell\|_2^2}{\sigma_4^2} + \eta^2

        with a term for each statistic that is released. ``gradient`` is :math:`\|\nabla\ell\|`,
        ``curvature`` the largest eigenvalue of :math:`\nabla^2\ell`, and ``rank`` its rank. Of
        ``rounding``, :math:`\eta` is what the solver's error can tell, and each numerator grows by twice
        the error that a computed statistic may have.

        Privacy
        -------
        A function of the record and of public values; it does not depend on the table.
        """
        xp = namespace_of(gradient)
        square = xp.full_like(gradient * curvature, rounding.solver**2)
        for statistic, scale in self.released:
            sensitivity = statistic.sensitivity(gradient, curvature, rank) / scale
            square = square + (sensitivity + 2.0 * rounding.error(statistic.name, scale)) ** 2
        return xp.sqrt(square)
