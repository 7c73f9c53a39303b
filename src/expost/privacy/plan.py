"""Plan: every noise scale and its certificate, fixed before any data is touched."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table

from expost.losses import Loss
from expost.privacy import gaussian
from expost.privacy.profile import PrivacyProfile


@dataclass(frozen=True)
class Plan:
    """What a publication will contain, what noise each part gets, and what all of it guarantees.

    Made by :func:`expost.calibrate`, without data. Frozen, comparable, printable.

    Attributes
    ----------
    epsilon, delta
        The guarantee for the whole publication, under adding or removing one row. ``epsilon`` is infinite
        where the loss has no worst case.
    sigma
        Noise of the tilt that the model's objective gets.
    l2
        The quadratic regulariser of the objective, a sum.
    sigma_gradient, sigma_hessian, sigma_eigenvalue
        Noise of the gradient, of the Hessian and of its smallest eigenvalue at the released coefficients;
        None where the statistic is not released.
    loss, norm, fit_intercept, report, calibration
        What the plan was made for.
    """

    loss: Loss
    norm: float
    fit_intercept: bool
    report: str
    calibration: str
    epsilon: float
    delta: float
    sigma: float
    l2: float
    sigma_gradient: float | None = None
    sigma_hessian: float | None = None
    sigma_eigenvalue: float | None = None

    @property
    def radius(self) -> float:
        """The largest norm of an encoded row: the intercept is one more feature, constant 1."""
        return math.hypot(self.norm, 1.0) if self.fit_intercept else self.norm

    @property
    def releases_statistics(self) -> bool:
        """Whether anything but the coefficients is published."""
        scales = (self.sigma_gradient, self.sigma_hessian, self.sigma_eigenvalue)
        return any(scale is not None for scale in scales)

    def delta_at(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε) of the whole publication; 1 where no guarantee exists.

        See :class:`expost.privacy.profile.PrivacyProfile`. Public.
        """
        return 1.0 if self.profile is None else self.profile.delta(epsilon).upper

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is certified at ``delta``, to about 1e-6; infinite where none is. Public."""
        return math.inf if self.profile is None else self.profile.epsilon(delta)

    @property
    def profile(self) -> PrivacyProfile | None:
        """The privacy profile of the whole publication, where one exists."""
        curve = self.loss.curve
        if math.isinf(curve.max_slope):
            return None
        return PrivacyProfile(
            curve,
            norm=self.radius,
            l2=self.l2,
            sigma=self.sigma,
            sigma_gradient=self.sigma_gradient,
            sigma_hessian=self.sigma_hessian,
            sigma_eigenvalue=self.sigma_eigenvalue,
        )

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """What is released: its name, its noise scale, and the ε that it alone would cost at ``delta``.

        The shares do not add up to ``epsilon``: parts released together cost less than the sum of each alone.
        """
        curve = self.loss.curve
        slope, bend = curve.max_slope * self.radius, curve.max_curvature * self.radius**2
        alone = math.inf
        if not math.isinf(slope):
            alone = PrivacyProfile(curve, norm=self.radius, l2=self.l2, sigma=self.sigma).epsilon(self.delta)
        yield "coefficients", self.sigma, alone
        for name, scale, sensitivity in (
            ("gradient", self.sigma_gradient, slope),
            ("Hessian", self.sigma_hessian, bend * math.sqrt(curve.rank / 2.0)),
            ("smallest eigenvalue", self.sigma_eigenvalue, bend),
        ):
            if scale is not None:
                yield name, scale, float(gaussian.epsilon(self.delta, sensitivity=sensitivity, sigma=scale))

    def __rich__(self) -> Table:
        table = Table(title="Plan (public, made without data)", title_justify="left")
        table.add_column("released")
        table.add_column("noise scale", justify="right")
        table.add_column("ε it alone would cost", justify="right")
        for name, scale, alone in self.parts():
            table.add_row(name, f"{scale:.6g}", f"{alone:.4g}")
        promise = (
            "no worst case exists for this loss: ε = ∞"
            if math.isinf(self.epsilon)
            else f"whole publication: ε = {self.epsilon:.6g} at δ = {self.delta:g}"
        )
        table.caption = (
            f"{promise}\n{self.loss}, rows of norm ≤ {self.norm:g}"
            f"{' and an intercept' if self.fit_intercept else ''}\n"
            f"l2 = {self.l2:.6g}, report {self.report!r}, calibration {self.calibration!r}"
        )
        table.caption_justify = "left"
        return table
