"""The page's numbers for people with several rows and for families: quantiles by their number of rows."""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from expost._common.typing import FloatArray
from expost.data.labels import Label, RowsLabel
from expost.fitting.release import Release
from expost.privacy.plan import Plan
from expost.reports.base import Scope
from expost.reports.evaluate import TightReader
from expost.reports.forgotten import CURVED, Forgotten, moved
from expost.reports.intervals import gradient_factors, noise_factors, weight_of
from expost.reports.total import whole_noise

MOST_ROWS = 24
"""The most rows of a person that the page asks for."""
MOST_RELATIVES = 6
"""The most people of a household, where the promise is to rows."""
_PROMISED = 5
"""The largest family for which the page states the promise."""


def most_rows(plan: Plan, label: Label | None) -> int:
    """How many rows the page takes at once: of a person, of a household, or of one record."""
    if isinstance(label, RowsLabel):
        return label.places
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
        "curved": moved(plan, *CURVED),
    }


# Some rows of a person are forgotten; how many and how heavy they are changes no quantile.
SOME = Forgotten(1, 1.0)


def person_quantiles(
    release: Release, failure: float, scope: Scope, most: int, *, forgotten: Forgotten | None
) -> tuple[FloatArray, float | None]:
    """What a reader allows for people with one different row, two and so on up to ``most``, a line for each.

    How far the noise of the objective and of the gradient reaches, the two factors of the total, how far
    noise can have raised the Hessian, and what corners add to the first; zero for what is not released. Then
    the lower bound by the smallest eigenvalue. With ``forgotten`` rows there is less of the failure
    probability for those that are known.
    """
    plan, dimension = release.plan, len(release.coefficients)
    reader = TightReader(release, failure, scope, forgotten=forgotten)
    lines = []
    for rows in _counted(release, scope, most):
        weight = weight_of(plan, rows)
        of_people = replace(reader, weight=weight).for_people(rows)
        shares, drift, law = of_people.shares, of_people.drift, of_people.law
        noise = noise_factors(release, scope, shares.tilt, drift, law, weight, of_people.parts)
        measured, model, statistics, margin = 0.0, 0.0, 0.0, 0.0
        if release.gradient is not None:
            measured = gradient_factors(scope, shares.gradient, dimension, drift, plan, law).norm
        if plan.scales.releases_statistics:
            model, statistics, _, _ = whole_noise(release, scope, shares.whole, law, weight, of_people.parts)
        if release.hessian is not None:
            margin = of_people.determinant.margin
        lines.append([noise.norm, measured, model, statistics, margin, noise.slope, noise.rest])
    adaptive = reader.for_people(1).determinant.adaptive
    return np.array(lines), None if adaptive is None else adaptive.floor


def _counted(release: Release, scope: Scope, most: int) -> range:
    """Numbers of rows that differ in what is allowed for noise: all, or one that stands for all."""
    # Rows of a family each weigh as much as one, which counts at corners.
    alike = scope.every and (release.corners is None or release.plan.unit == "person")
    return range(1, 2 if alike else most + 1)


def forgotten_quantiles(release: Release, failure: float, scope: Scope, most: int) -> FloatArray:
    """What is allowed for one row of which nothing is known, for two and so on, a line for each number.

    How far the noise of the objective reaches along each, and the two factors of the total.
    """
    plan = release.plan
    reader = TightReader(release, failure, scope, forgotten=SOME)
    lines = []
    for rows in range(1, most):
        each = reader.left / rows
        noise = noise_factors(release, scope, each, reader.drift, parts=reader.parts).norm
        model, statistics = 0.0, 0.0
        if plan.scales.releases_statistics:
            model, statistics, _, _ = whole_noise(release, scope, each, parts=reader.parts)
        lines.append([noise, model, statistics])
    return np.array(lines)
