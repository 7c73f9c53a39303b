"""Try a publication before its noise is drawn: whether a file can hold it, and can be read."""

from typing import Any

import numpy as np

from expost._common.strict_json import check_size
from expost.data.design import intercept_count
from expost.exceptions import PublicationError
from expost.fitting.release import Release
from expost.losses.corners import Corners
from expost.privacy.plan import Plan
from expost.privacy.precision import statistic_grid
from expost.publication.publication import Publication

# A number is written in at most 24 characters, "-1.2345678901234567e-308", and every one is at least "0.0".
_LONGEST_NUMBER, _SHORTEST_NUMBER = 24, 3


def try_publication(
    plan: Plan,
    n_features: int,
    *,
    corners: Corners | None = None,
    **declared: Any,
) -> int:
    """Check that what a fit will publish can be read, and return how many bytes it can take.

    The publication is made from the plan and from what is ``declared`` in the keywords of
    :meth:`expost.Publication.from_release`, with zeros for what the fit will find. It goes through every
    check that a reader makes.

    Privacy
    -------
    Public in, public out. Call it before any noise is drawn: a budget must not be spent on a file that
    nobody can read.
    """
    domain = declared.get("domain")
    label = declared.get("outcome") if domain is None else domain.label
    intercepts = intercept_count(label, fit_intercept=plan.fit_intercept)
    dimension = (n_features + intercepts) * plan.loss.outputs
    numbers = dimension + plan.entries(dimension)
    _check_room(plan, numbers * (_LONGEST_NUMBER + 2), numbers)
    publication = Publication.from_release(_empty(plan, dimension, corners), **declared)
    size = len(publication.to_json().encode()) + numbers * (_LONGEST_NUMBER - _SHORTEST_NUMBER)
    _check_room(plan, size)
    return size


def _check_room(plan: Plan, size: int, numbers: int = 0) -> None:
    """Refuse what a file cannot hold, in the words of a curator."""
    try:
        check_size(size, numbers)
    except PublicationError:
        way_out = "Leave features out"
        if plan.sigma_hessian is not None:
            way_out += ", or publish no Hessian (report='independent')"
            if plan.loss.noise_classes and not plan.reduced:
                way_out += ", or the reduced one (reduced=True of expost.calibrate)"
        raise PublicationError(
            f"report={plan.report!r} would publish more numbers than a file may have. {way_out}."
        ) from None


def _empty(plan: Plan, dimension: int, corners: Corners | None) -> Release:
    """A release of a table without rows and without noise, on its grids."""
    least = {}
    for statistic, scale in plan.scales.released:
        grid = statistic_grid(scale)
        least[statistic.name] = round(plan.l2 / grid) * grid
    zeros = np.zeros(dimension)
    return Release(
        plan=plan,
        coefficients=zeros if corners is None else corners.inside(zeros),
        corners=corners,
        gradient=np.zeros(dimension) if "gradient" in least else None,
        hessian=least["hessian"] * np.eye(plan.hessian_order(dimension)) if "hessian" in least else None,
        eigenvalue=least.get("eigenvalue"),
        recalibration=np.zeros(plan.recalibration_entries) if plan.sigma_recalibration else None,
        insecure=False,
    )
