"""Plan: every noise scale and its certificate, fixed before any data is touched."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from expost._common.summary import Summary
from expost.exceptions import PublicationError
from expost.losses import AnyLoss, DerivativeCurve, describe
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy import gaussian
from expost.privacy.certified_profile import CertifiedProfile
from expost.privacy.precision import REAL, Precision, Rounding
from expost.privacy.scales import NoiseScales
from expost.privacy.softmax_profile import profile_of, released_curvature

if TYPE_CHECKING:
    from rich.table import Table


def row_radius(norm: float, *, fit_intercept: bool) -> float:
    """The largest norm of an encoded row: an intercept is one more feature with the value 1."""
    return math.hypot(norm, 1.0) if fit_intercept else norm


@dataclass(frozen=True)
class Plan:
    """What a publication will contain, what noise each part gets, and what all of it guarantees.

    Made by :func:`expost.calibrate`, without data. Frozen, comparable, printable.

    Privacy
    -------
    Public: it is made before any record is seen.

    Attributes
    ----------
    epsilon, delta
        The guarantee for the whole publication, under adding or removing one row. ``epsilon`` is infinite
        where the loss has no worst case.
    sigma
        Noise of the linear term that is added to the objective.
    l2
        The quadratic regulariser of the objective, a sum.
    sigma_gradient, sigma_hessian, sigma_eigenvalue
        Noise of the gradient, of the Hessian and of its smallest eigenvalue at the released coefficients;
        None where the statistic is not released.
    scales
        All of these as one value.
    output_noise, solver_radius, grid
        How the coefficients are printed (:class:`expost.privacy.precision.Precision`); None for a loss of
        one's own, whose guarantee is for real arithmetic.
    loss, norm, fit_intercept, report, calibration
        What the plan was made for.
    max_weight
        The largest weight of a record: the guarantee is that of so many times the loss.
    reduced
        Whether the released Hessian of a loss of several classes is the reduced one, and with it the
        eigenvalue (:class:`~expost.privacy.softmax_profile.SoftmaxProfile`).
    """

    loss: AnyLoss
    norm: float
    fit_intercept: bool
    report: str
    calibration: str
    epsilon: float
    delta: float
    l2: float
    scales: NoiseScales
    precision: Precision | None = None
    max_weight: float = 1.0
    reduced: bool = False

    @property
    def sigma(self) -> float:
        """The noise of the objective's linear term."""
        return self.scales.sigma

    @property
    def sigma_gradient(self) -> float | None:
        """The noise of the gradient, or None."""
        return self.scales.sigma_gradient

    @property
    def sigma_hessian(self) -> float | None:
        """The noise of the Hessian, or None."""
        return self.scales.sigma_hessian

    @property
    def sigma_eigenvalue(self) -> float | None:
        """The noise of the Hessian's smallest eigenvalue, or None."""
        return self.scales.sigma_eigenvalue

    @property
    def output_noise(self) -> float | None:
        """The scale of the noise that is added to the computed minimiser."""
        return None if self.precision is None else self.precision.output_noise

    @property
    def solver_radius(self) -> float | None:
        """How close the computed minimiser is to the exact one, certified before anything is released."""
        return None if self.precision is None else self.precision.solver_radius

    @property
    def grid(self) -> float | None:
        """Every published coefficient is a whole multiple of it."""
        return None if self.precision is None else self.precision.grid

    @property
    def rounding(self) -> Rounding:
        """What the certificate pays for the difference between real numbers and printed ones."""
        if self.precision is None:
            return REAL
        return self.precision.rounding(self.curve.max_curvature * self.radius**2)

    @property
    def curve(self) -> DerivativeCurve | SoftmaxCurve:
        """The derivative curve of the largest weight times the loss, which covers every smaller weight."""
        return self.loss.curve.scaled(self.max_weight)

    @property
    def radius(self) -> float:
        """The largest norm of an encoded row."""
        return row_radius(self.norm, fit_intercept=self.fit_intercept)

    @property
    def released_curvature(self) -> float:
        """The largest eigenvalue of one record's part in the Hessian that is released."""
        return released_curvature(self.curve, self.radius, reduced=self.reduced)

    def hessian_order(self, dimension: int) -> int:
        """How many rows the released Hessian has, where there are ``dimension`` coefficients."""
        return dimension // self.curve.outputs if self.reduced else dimension

    def entries(self, dimension: int) -> int:
        """How many numbers are published with ``dimension`` coefficients."""
        return self.scales.entries(dimension, self.hessian_order(dimension))

    def delta_at(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε) of the whole publication; 1 where no guarantee exists.

        See :class:`expost.privacy.profile.PrivacyProfile`, and for several classes
        :class:`expost.privacy.softmax_profile.SoftmaxProfile`. Public.
        """
        return 1.0 if self.profile is None else self.profile.delta(epsilon).upper

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is certified at ``delta``, to about 1e-6; infinite where none is. Public."""
        found = math.inf if self.profile is None else self.profile.epsilon(delta)
        return min(found, self.epsilon) if delta >= self.delta else found

    @property
    def profile(self) -> CertifiedProfile | None:
        """The privacy profile of the whole publication, where one exists."""
        curve = self.curve
        if math.isinf(curve.max_slope):
            return None
        return profile_of(
            curve,
            norm=self.radius,
            l2=self.l2,
            scales=self.scales,
            rounding=self.rounding,
            reduced=self.reduced,
        )

    def fields(self) -> dict[str, Any]:
        """Its fields with the names that a publication uses, as JSON's types. Public.

        A loss that cannot be published has the name of its type.
        """
        try:
            described = describe(self.loss)
        except PublicationError:
            described = {"name": type(self.loss).__name__}
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "loss": described.pop("name"),
            "loss_parameters": described,
            "norm": self.norm,
            "fit_intercept": self.fit_intercept,
            "report": self.report,
            "reduced": self.reduced,
            "calibration": self.calibration,
            "l2": self.l2,
            "max_weight": self.max_weight,
            **asdict(self.scales),
            "precision": None if self.precision is None else asdict(self.precision),
        }

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """What is released: its name, its noise scale, and the ε that it alone would cost at ``delta``.

        The shares do not add up to ``epsilon``: parts released together cost less than the sum of each alone.
        """
        curve = self.curve
        slope = curve.max_slope * self.radius
        alone = math.inf
        if not math.isinf(slope):
            model = NoiseScales(self.sigma)
            profile = profile_of(curve, norm=self.radius, l2=self.l2, scales=model, rounding=self.rounding)
            alone = profile.epsilon(self.delta)
        yield "coefficients", self.sigma, alone
        # The largest Frobenius norm of a softmax Hessian is its largest eigenvalue, attained at rank one.
        rank = 1 if isinstance(curve, SoftmaxCurve) else curve.rank
        for statistic, scale in self.scales.released:
            sensitivity = statistic.sensitivity(slope, self.released_curvature, rank)
            yield (
                statistic.title,
                scale,
                float(gaussian.epsilon(self.delta, sensitivity=sensitivity, sigma=scale)),
            )

    @property
    def _printed(self) -> str:
        if self.precision is None:
            return "guarantee for real arithmetic: this loss states no error for its derivatives"
        p = self.precision
        return (
            f"printed on a grid of {p.grid:.3g}, with output noise {p.output_noise:.3g}, "
            f"within {p.solver_radius:.3g} of the exact minimiser"
        )

    def _notes(self) -> tuple[str, ...]:
        promise = (
            "no worst case exists for this loss: ε = ∞"
            if math.isinf(self.epsilon)
            else f"whole publication: ε = {self.epsilon:.6g} at δ = {self.delta:g}"
        )
        return (
            promise,
            f"{self.loss}, rows of norm ≤ {self.norm:g}{' and an intercept' * self.fit_intercept}"
            + (f", weights ≤ {self.max_weight:g}" if self.max_weight != 1.0 else ""),
            f"l2 = {self.l2:.6g}, report {self.report!r}{' with the reduced Hessian' * self.reduced}, "
            f"calibration {self.calibration!r}",
            self._printed,
        )

    def _summary(self) -> Summary:
        rows = [(name, f"{scale:.6g}", f"{alone:.4g}") for name, scale, alone in self.parts()]
        columns = ("released", "noise scale", "ε it alone would cost")
        return Summary("Plan (public, made without data)", rows, columns, self._notes(), figures=True)

    def __rich__(self) -> "Table":
        return self._summary().terminal()

    def _repr_html_(self) -> str:
        return self._summary().html()
