r"""The statistics that can be published with the coefficients, and the kinds of report made of them.

Adding a statistic takes a row of :data:`STATISTICS`, a scale in
:class:`expost.privacy.scales.NoiseScales` and the code that computes it. Adding a kind of report takes a row
of :data:`REPORT_KINDS`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Statistic:
    """A noisy statistic at the released coefficients.

    ``sensitivity`` maps the norm of a record's gradient, the largest eigenvalue of its Hessian and that
    Hessian's rank to how far the record can move the statistic, for noise of scale 1. ``entries`` maps the
    number of coefficients and the number of rows of the released Hessian to how many numbers are published.
    """

    name: str
    title: str
    sensitivity: Callable[[Any, Any, int], Any]
    entries: Callable[[int, int], int]


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "gradient",
            "gradient",
            sensitivity=lambda gradient, curvature, rank: gradient,
            entries=lambda dimension, order: dimension,
        ),
        # The GOE has variance 2 on the diagonal: half of the squared Frobenius norm counts.
        Statistic(
            "hessian",
            "Hessian",
            sensitivity=lambda gradient, curvature, rank: curvature * math.sqrt(rank / 2.0),
            entries=lambda dimension, order: order * (order + 1) // 2,
        ),
        # Weyl: the smallest eigenvalue moves by at most the spectral norm of the change.
        Statistic(
            "eigenvalue",
            "smallest eigenvalue",
            sensitivity=lambda gradient, curvature, rank: curvature,
            entries=lambda dimension, order: 1,
        ),
    )
}


@dataclass(frozen=True)
class ReportKind:
    r"""What one kind of report releases, its part of the budget, and how a reader's confidence is shared.

    ``model_share`` is the model's default share of the precision :math:`1/\sigma^2 + 1/\sigma_2^2` that it
    has together with the gradient (docs/calibration.md). ``failure_shares`` shares a reader's failure
    probability among the events that a bound relies on: that noise makes the Hessian look larger
    (``"hessian_below"``) or smaller (``"hessian_above"``) than it is, that the eigenvalue's or the gradient's
    noise is large, and under ``"tilt"`` the law of the objective's own noise.
    """

    name: str
    releases: tuple[str, ...]
    model_share: float
    failure_shares: Mapping[str, float]


# Where a gradient is released, its share and the tilt's are each above a third, so that the bound is never
# worse than the smaller of the two bounds that it combines would be with a third each. The Hessian's and the
# eigenvalue's quantiles hardly grow as their shares fall.
REPORT_KINDS = {
    kind.name: kind
    for kind in (
        ReportKind("independent", (), 1.0, {"tilt": 1.0}),
        ReportKind(
            "leverage", ("hessian",), 1.0, {"hessian_below": 0.04, "hessian_above": 0.01, "tilt": 0.95}
        ),
        ReportKind(
            "dependent",
            ("gradient", "hessian"),
            0.5,
            {"hessian_below": 0.04, "hessian_above": 0.01, "gradient": 0.52, "tilt": 0.43},
        ),
        ReportKind(
            "adaptive",
            ("gradient", "hessian", "eigenvalue"),
            0.5,
            {"hessian_below": 0.04, "hessian_above": 0.01, "eigenvalue": 0.05, "gradient": 0.5, "tilt": 0.4},
        ),
    )
}
