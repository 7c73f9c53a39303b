"""The plan of a model with any convex loss: its noise, its regularisation and its certificate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from expost._common.validation import check_positive, parameter_error
from expost.losses import ConvexLoss, LipschitzPoisson, LocationScale, SmoothedNorm, check_convex_loss
from expost.privacy.plan import Plan
from expost.privacy.recipes import Target, check_delta, tight
from expost.privacy.scales import NoiseScales

# Losses whose bounds are proved in docs/mathematics.md; every other one is checked before it is relied on.
_PROVED = (SmoothedNorm, LipschitzPoisson, LocationScale)
# A fit holds a matrix of so many rows and columns for each record of a block.
_MOST_PARAMETERS = 2_000


@dataclass(frozen=True)
class ConvexPlan(Plan):
    """What the release of a convex model will cost, and with which noise; made without data.

    Made by :func:`expost.calibrate_convex`. The guarantee is for real arithmetic: a convex loss states no
    error for its derivatives. Nothing is released beside the parameters.

    Privacy
    -------
    Public: it is made before any record is seen.
    """

    loss: ConvexLoss  # type: ignore[assignment]  # of no linear predictor, and all else the same

    @classmethod
    def of(cls, loss: ConvexLoss, *, epsilon: float, delta: float, l2: float, sigma: float) -> Self:
        """The plan of these numbers; what a loss declares is about whole records, so no row has a norm."""
        return cls(loss, 1.0, False, "independent", "tight", epsilon, delta, l2, NoiseScales(sigma))

    def fields(self) -> dict[str, Any]:
        """Its fields as JSON's types, the loss by the name of its type. Public."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "loss": type(self.loss).__name__,
            "l2": self.l2,
            "sigma": self.sigma,
        }

    def parts(self) -> Iterator[tuple[str, float, float]]:
        """The parameters, which cost everything."""
        yield "parameters", self.sigma, self.epsilon

    def _notes(self) -> tuple[str, ...]:
        loss, labels = self.loss, self.loss.labels
        return (
            f"whole release: ε = {self.epsilon:.6g} at δ = {self.delta:g}",
            f"{loss}, {loss.record_set}" + (f", labels in {labels}" if labels.values != () else ""),
            f"l2 = {self.l2:.6g}; gradients of norm ≤ {loss.max_gradient:.6g}, curvatures ≤ "
            f"{loss.max_curvature:.6g}",
            self._printed,
        )


def calibrate_convex(
    loss: ConvexLoss,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    l2: float | None = None,
    sigma: float | None = None,
) -> ConvexPlan:
    r"""Choose the noise and the regularisation of a convex model for a budget, without seeing any data.

    The smallest :math:`\sigma` is taken at which the certified profile is at most ``delta`` at ``epsilon``:

    .. math:: \delta(\epsilon) \le E\,\sup_m \delta_G\Bigl(\epsilon - k\log(1 + \kappa(m)/\lambda)
              - \frac{m^2}{2\sigma^2} - \frac{m}{\sigma}\chi_{r_g};\, 0\Bigr)

    with the loss's :attr:`~expost.ConvexLoss.curve` :math:`\kappa` on :math:`0 \le m \le \xi`, the rank
    :math:`k` of its Hessians and a chi variable of :math:`r_g` degrees of freedom, the dimension of one
    record's gradients; where :math:`r_g = 1` by the sharper profile of one linear predictor
    (docs/mathematics.md, section 12). This certificate has no noise scale unless
    :math:`k\log(1 + \kappa_{\max}/\lambda) < \epsilon`.

    Parameters
    ----------
    loss
        A convex loss with its bounds. One that the library does not know is checked by
        :func:`expost.check_convex_loss` first.
    epsilon, delta
        The budget.
    l2
        The regularisation :math:`\lambda`; by default :math:`\max\{\lambda_{1.05}, \sigma(\infty)/2e\}`, with
        :math:`\lambda_{1.05}` the smallest that costs at most 5% more noise than an infinite one and
        :math:`e` the loss's :attr:`~expost.ConvexLoss.parameter_scale`.
    sigma
        An explicit noise scale. It needs ``l2``, and ``epsilon`` is then what it guarantees at ``delta``.

    Privacy
    -------
    Public in, public out.

    Examples
    --------
    >>> from expost.losses import SmoothedNorm
    >>> plan = calibrate_convex(SmoothedNorm(2), epsilon=1.0, delta=1e-6, l2=1e6)
    >>> round(plan.sigma, 3), plan.delta_at(1.0) <= 1e-6
    (4.721, True)
    """
    if not isinstance(loss, ConvexLoss):
        raise parameter_error("loss", "a ConvexLoss", loss, "For other losses use `expost.calibrate`.")
    if loss.n_parameters > _MOST_PARAMETERS:
        raise parameter_error("n_parameters", f"at most {_MOST_PARAMETERS}", loss.n_parameters)
    if type(loss) not in _PROVED:
        check_convex_loss(loss)  # the certificate relies on what the loss declares
    epsilon, delta = check_positive("epsilon", epsilon), check_delta(delta)
    l2 = None if l2 is None else check_positive("l2", l2)
    if sigma is None:
        target = Target(epsilon, delta, loss, 1.0, "independent")
        chosen, scales = tight(target, l2, None)
        return ConvexPlan.of(loss, epsilon=epsilon, delta=delta, l2=chosen, sigma=scales.sigma)
    sigma = check_positive("sigma", sigma)
    if l2 is None:
        raise parameter_error("l2", "given where `sigma` is", l2)
    plan = ConvexPlan.of(loss, epsilon=math.inf, delta=delta, l2=l2, sigma=sigma)
    return replace(plan, epsilon=plan.epsilon_at(delta))
