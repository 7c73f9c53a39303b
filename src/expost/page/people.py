"""The page's numbers for people with several rows and for families: quantiles by their number of rows."""

import math
from functools import cache

import numpy as np

from expost._common.typing import FloatArray
from expost.fitting.release import Release
from expost.privacy.plan import Plan
from expost.reports.base import Scope
from expost.reports.evaluate import TightReader
from expost.reports.forgotten import Forgotten, moved
from expost.reports.intervals import gradient_factors, reach_factors
from expost.reports.records import Pencil
from expost.reports.total import whole_noise

MOST_ROWS = 24
"""The most rows of a person that the page asks for."""
MOST_RELATIVES = 6
"""The most people of a household, where the promise is to rows."""
_PROMISED = 5
"""The largest family for which the page states the promise."""


def most_rows(plan: Plan) -> int:
    """How many rows the page takes at once."""
    return MOST_ROWS if plan.unit == "person" else MOST_RELATIVES


@cache
def family_promises(plan: Plan) -> tuple[float | None, ...]:
    """The promise for two people of a family, three and so on; None where there is none."""
    if plan.unit == "person" or plan.profile is None:
        return ()
    found = (plan.epsilon_for(size) for size in range(2, _PROMISED + 1))
    return tuple(epsilon if math.isfinite(epsilon) else None for epsilon in found)


def largest_row(plan: Plan) -> dict[str, float | None]:
    """What a row of which nothing is known moves at most; None where a loss has no largest slope."""
    slope = plan.accounting.slope
    gradient = moved(plan, "gradient")
    return {
        "slope": slope if math.isfinite(slope) else None,
        "curvature": plan.accounting.curvature,
        "rank": plan.curve.rank,
        "gradient": gradient if math.isfinite(gradient) else None,
        "curved": moved(plan, "hessian", "eigenvalue"),
    }


# Some rows of a person are forgotten; how many and how heavy they are changes no quantile.
SOME = Forgotten(1, 1.0)


def person_quantiles(
    release: Release, failure: float, scope: Scope, *, forgotten: Forgotten | None
) -> tuple[FloatArray, float | None, Pencil | None]:
    """What a reader allows for people with one different row, two and so on, a line for each.

    How far the noise of the objective and of the gradient reaches, the two factors of the total, and how far
    noise can have raised the Hessian; zero for what is not released. Then the lower bound by the smallest
    eigenvalue, and the mixtures that all share where there is a regulariser and a Hessian. With
    ``forgotten`` rows there is less of the failure probability for those that are known.
    """
    plan, dimension = release.plan, len(release.coefficients)
    reader = TightReader(release, failure, scope, forgotten=forgotten)
    lines = []
    for rows in range(1, 2 if scope.every else most_rows(plan) + 1):
        of_people = reader.for_people(rows)
        shares, drift, law = of_people.shares, of_people.drift, of_people.law
        noise = reach_factors(scope, shares.tilt, dimension, drift, plan.loss, law=law).norm
        measured, model, statistics, margin = 0.0, 0.0, 0.0, 0.0
        if release.gradient is not None:
            measured = gradient_factors(scope, shares.gradient, dimension, drift, plan, law).norm
        if plan.scales.releases_statistics:
            model, statistics, _, _ = whole_noise(release, scope, shares.whole, law)
        if release.hessian is not None:
            margin = of_people.determinant.margin
        lines.append([noise, measured, model, statistics, margin])
    determinant = reader.for_people(1).determinant
    adaptive = determinant.adaptive
    whitened = release.hessian is not None and release.regularizer is not None and not plan.reduced
    floor = None if adaptive is None else adaptive.floor
    return np.array(lines), floor, determinant.public if whitened else None


def forgotten_quantiles(release: Release, failure: float, scope: Scope) -> FloatArray:
    """What is allowed for one row of which nothing is known, for two and so on, a line for each number.

    How far the noise of the objective reaches along each, and the two factors of the total.
    """
    plan, dimension = release.plan, len(release.coefficients)
    reader = TightReader(release, failure, scope, forgotten=SOME)
    lines = []
    for rows in range(1, most_rows(plan)):
        each = reader.left / rows
        noise = reach_factors(scope, each, dimension, reader.drift, plan.loss).norm
        model, statistics = 0.0, 0.0
        if plan.scales.releases_statistics:
            model, statistics, _, _ = whole_noise(release, scope, each)
        lines.append([noise, model, statistics])
    return np.array(lines)
