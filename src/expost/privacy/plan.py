"""Plan: every noise scale and its certificate, fixed before any data is touched."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

from expost._common.summary import Summarized, Summary
from expost._common.validation import check_count, parameter_error
from expost.exceptions import PublicationError
from expost.losses import AnyLoss, ConvexLoss, DerivativeCurve, SoftmaxCurve, describe
from expost.privacy import gaussian
from expost.privacy.precision import REAL, Precision, Rounding
from expost.privacy.recalibration import recalibration_of
from expost.privacy.scales import NoiseScales
from expost.privacy.sharpest import Accounting, SharpestProfile
from expost.privacy.softmax_profile import SoftmaxAccounting


def row_radius(norm: float, *, fit_intercept: bool) -> float:
    """The largest norm of an encoded row: an intercept is one more feature with the value 1."""
    return math.hypot(norm, 1.0) if fit_intercept else norm


def covers_rows(loss: AnyLoss, radius: float) -> bool:
    """Whether a plan for rows of at most this length covers a loss whose caps follow their lengths."""
    return loss.levels is None or loss.levels.reach <= radius * (1.0 + 2.0**-45)


def check_rows(plan: "Plan", people: Any) -> None:
    """Raise ParameterError where a plan is for people, and nobody said which rows are whose."""
    if plan.unit != "row" and people is None:
        wanted = "'row' where rows are given without the people that they belong to"
        raise parameter_error("unit", wanted, plan.unit, "Say whose each row is with `groups`.")


def accounting_of(
    curve: DerivativeCurve | SoftmaxCurve, norm: float, *, reduced: bool = False, unit: str = "row"
) -> Accounting:
    """How a loss with this curve is accounted for, on rows of at most this norm."""
    if isinstance(curve, SoftmaxCurve):
        return SoftmaxAccounting(curve, norm, reduced, unit)
    return Accounting(curve, norm, reduced, unit)


@dataclass(frozen=True)
class Plan(Summarized):
    """What a publication will contain, what noise each part gets, and what all of it guarantees.

    Made by :func:`expost.calibrate`, without data. Frozen, comparable, printable.

    Privacy
    -------
    Public: it is made before any record is seen.

    Attributes
    ----------
    epsilon, delta
        The guarantee for the whole publication, under adding or removing one row, or one person where that
        is the ``unit``. ``epsilon`` is infinite where the loss has no worst case.
    l2
        The quadratic regulariser of the objective, a sum.
    scales
        The noise of the objective's linear term and of each statistic, None where that is not released.
    precision
        How the coefficients are printed (``output_noise``, ``solver_radius``, ``grid``); None for a loss of
        one's own, whose guarantee is for real arithmetic.
    loss, norm, fit_intercept, report, calibration
        What the plan was made for.
    max_weight
        The largest weight of a record: the guarantee is that of the loss times it.
    reduced
        Whether the released Hessian of a loss of several classes is the reduced one, and with it the
        eigenvalue (:class:`~expost.privacy.softmax_profile.SoftmaxProfile`).
    unit
        What neighbouring tables differ by: ``"row"``, or ``"person"``, who has any number of rows whose
        weights sum to at most 1, or to at most ``max_weight`` (docs/mathematics.md, section 15).
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
    unit: str = "row"

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
    def sigma_recalibration(self) -> float | None:
        """The noise of each number that recalibrates the model, or None."""
        return self.scales.sigma_recalibration

    @property
    def recalibrate(self) -> bool:
        """Whether numbers that recalibrate the model are published after it."""
        return self.sigma_recalibration is not None

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
        return self.precision.rounding(self.accounting.curvature)

    @property
    def curve(self) -> DerivativeCurve | SoftmaxCurve:
        """The derivative curve of the largest weight times the loss, which covers every smaller weight."""
        return self.loss.curve.scaled(self.max_weight)

    @property
    def radius(self) -> float:
        """The largest norm of an encoded row."""
        return row_radius(self.norm, fit_intercept=self.fit_intercept)

    @property
    def accounting(self) -> Accounting:
        """How the loss is accounted for."""
        return self._accounting(1)

    def _accounting(self, size: int) -> Accounting:
        """The accounting for families of this size: they are one person of that total weight."""
        unit = "person" if size > 1 else self.unit
        return accounting_of(self.curve.scaled(size), self.radius, reduced=self.reduced, unit=unit)

    @property
    def released_curvature(self) -> float:
        """The largest eigenvalue of one record's part in the Hessian that is released."""
        return self.accounting.released_curvature

    def hessian_order(self, dimension: int) -> int:
        """How many rows the released Hessian has, where there are ``dimension`` coefficients."""
        return dimension // self.curve.outputs if self.reduced else dimension

    @property
    def recalibration_entries(self) -> int:
        """How many numbers recalibrate the model."""
        noise = self.sigma_recalibration
        kind = None if noise is None else recalibration_of(self.loss)
        return 0 if noise is None or kind is None else kind.entries(noise)

    def entries(self, dimension: int) -> int:
        """How many numbers are published with ``dimension`` coefficients."""
        return self.scales.entries(dimension, self.hessian_order(dimension), self.recalibration_entries)

    def delta_at(self, epsilon: float) -> float:
        """A certified upper bound on δ(ε) of the whole publication; 1 where no guarantee exists. Public."""
        return 1.0 if self.profile is None else self.profile.delta(epsilon).upper

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that is certified at ``delta``, to about 1e-6; infinite where none is. Public."""
        found = math.inf if self.profile is None else self.profile.epsilon(delta)
        return min(found, self.epsilon) if delta >= self.delta else found

    def epsilon_for(self, k: int, delta: float | None = None) -> float:
        r"""The smallest ε that is certified for any ``k`` rows, or people, who come or leave together.

        Families and households: what the publication promises to all of them at once. ``k`` records are one
        person of total weight ``k``, so it is the profile of a person (docs/mathematics.md, section 15) with
        the curve :math:`k\,\kappa(m/k)` on :math:`[0, k\,m_{\max}]`, at the noise of this plan. At the same δ
        it is more than ``k`` times ``epsilon`` as a rule. It is above :math:`k\,\kappa_{\max}R^2/\lambda` for
        every noise, and infinite where the loss has no worst case. The promise is for ``k`` who all come or
        all leave.

        Parameters
        ----------
        k
            How many, of the plan's ``unit``.
        delta
            The δ of the promise, by default the plan's own.

        Privacy
        -------
        Public in, public out; it spends nothing and holds for publications of long ago.

        Examples
        --------
        >>> import expost
        >>> plan = expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-6, l2=5.0)
        >>> [round(plan.epsilon_for(k), 2) for k in (1, 2, 3)]
        [1.0, 2.13, 3.33]
        """
        size, at = check_count("k", k), self.delta if delta is None else delta
        if size == 1:
            return self.epsilon_at(at)
        profile = self._profile(size)
        return math.inf if profile is None else profile.epsilon(at)

    @property
    def profile(self) -> SharpestProfile | None:
        """The privacy profile of the whole publication, where one exists."""
        return self._profile(1)

    def _profile(self, size: int) -> SharpestProfile | None:
        accounting = self._accounting(size)
        if math.isinf(accounting.slope):
            return None
        return accounting.sharpest(self.l2, self.scales.for_rows(size), self.rounding)

    def fields(self) -> dict[str, Any]:
        """Its fields with the names that a publication uses, as JSON's types. Public."""
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
            **self.scales.stated,
            "precision": None if self.precision is None else asdict(self.precision),
            # Left out where it is the row, as in files from before there was another.
            **({} if self.unit == "row" else {"unit": self.unit}),
        }

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """What is released: its name, its noise scale, and the ε that it alone would cost at ``delta``.

        The shares do not add up to ``epsilon``: parts released together cost less than the sum of each alone.
        """
        accounting = self.accounting
        alone = math.inf
        if not math.isinf(accounting.slope):
            profile = accounting.sharpest(self.l2, NoiseScales(self.sigma), self.rounding)
            alone = profile.epsilon(self.delta)
        yield "coefficients", self.sigma, alone
        for statistic, scale in self.scales.released:
            sensitivity = accounting.sensitivity(statistic)
            alone = float(gaussian.epsilon(self.delta, sensitivity=sensitivity, sigma=scale))
            yield statistic.title, scale, alone

    @property
    def _printed(self) -> str:
        if self.precision is None:
            return "guarantee for real arithmetic: this loss states no error for its derivatives"
        p = self.precision
        return (
            f"printed on a grid of {p.grid:.3g}, with output noise {p.output_noise:.3g}, "
            f"within {p.solver_radius:.3g} of the exact minimiser"
        )

    @property
    def _for_whom(self) -> str:
        return "" if self.unit == "row" else ", for all rows of a record or person together"

    def _notes(self) -> tuple[str, ...]:
        promise = (
            "no worst case exists for this loss: ε = ∞"
            if math.isinf(self.epsilon)
            else f"whole publication: ε = {self.epsilon:.6g} at δ = {self.delta:g}"
        )
        return (
            promise + self._for_whom,
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


@dataclass(frozen=True)
class ConvexPlan(Plan):
    """What the release of a convex model will cost, and with which noise; made without data.

    Made by :func:`expost.calibrate_convex`. The guarantee is for real arithmetic: a convex loss states no
    error for its derivatives. Nothing but the parameters is released.

    Privacy
    -------
    Public: it is made before any record is seen.
    """

    loss: ConvexLoss  # type: ignore[assignment]  # of no linear predictor, and all else the same

    @classmethod
    def of(
        cls, loss: ConvexLoss, *, epsilon: float, delta: float, l2: float, sigma: float, unit: str = "row"
    ) -> Self:
        """The plan of these numbers; what a loss declares is about whole records, so no row has a norm."""
        scales = NoiseScales(sigma)
        return cls(loss, 1.0, False, "independent", "tight", epsilon, delta, l2, scales, unit=unit)

    def fields(self) -> dict[str, Any]:
        """Its fields as JSON's types, the loss by the name of its type. Public."""
        every = super().fields()
        kept = ("epsilon", "delta", "loss", "l2", "sigma", "unit")
        return {name: every[name] for name in kept if name in every}

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """The parameters, which cost everything."""
        yield "parameters", self.sigma, self.epsilon

    def _notes(self) -> tuple[str, ...]:
        loss, labels = self.loss, self.loss.labels
        return (
            f"whole release: ε = {self.epsilon:.6g} at δ = {self.delta:g}{self._for_whom}",
            f"{loss}, {loss.record_set}" + (f", labels in {labels}" if labels.values != () else ""),
            f"l2 = {self.l2:.6g}; gradients of norm ≤ {loss.max_gradient:.6g}, curvatures ≤ "
            f"{loss.max_curvature:.6g}",
            self._printed,
        )
