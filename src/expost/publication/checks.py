"""What a published file claims: its shapes fit, its statistics are possible, its guarantee is true."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import eigvalsh

from expost._common.strict_json import shown, unusable
from expost.data.domain import Domain, NumberLabel
from expost.fitting.release import Release
from expost.losses import Loss
from expost.privacy.calibration import REPORTS
from expost.privacy.plan import Plan
from expost.publication.schema import Label, Statistics, describe

# Public numbers that the accountant's arithmetic resolves; nothing outside is certified.
_SMALLEST, _LARGEST = 1e-30, 1e30
# Entries beyond this would overflow in any use.
_ABSURD = 1e300
# So many standard deviations below its mean a normal variable falls with probability below 1e-300.
_IMPOSSIBLE = 60.0
# More than rounding in sums over rows and in an eigenvalue can amount to, relative to the largest entry.
_ROUNDING = 1e-6
_FINER = 1e-5


def check_shapes(
    coefficients: Sequence[float],
    statistics: Statistics,
    *,
    fit_intercept: bool,
    feature_names: Sequence[str] | None,
) -> None:
    """Refuse lists whose lengths do not belong together."""
    dimension = len(coefficients)
    features = dimension - fit_intercept
    if features < 1:
        raise unusable(
            "`coefficients` must hold one number per feature, and the intercept last, but has no feature"
        )
    for field, entries, wanted in (
        ("feature_names", feature_names, features),
        ("statistics.gradient", statistics.gradient, dimension),
        ("statistics.hessian", statistics.hessian, dimension * (dimension + 1) // 2),
    ):
        if entries is not None and len(entries) != wanted:
            raise unusable(
                f"`{field}` must have {wanted} entries with {dimension} coefficients but has {len(entries)}"
            )


def check_classes(loss: Loss, classes: Sequence[Label] | None) -> None:
    """Refuse labels for a loss that has none, and a classifier without them."""
    if (loss.labels.values is None) != (classes is None):
        wanted = "null" if loss.labels.values is None else "two labels"
        raise unusable(
            f"`classes` must be {wanted} for the loss {describe(loss)['name']} but is {shown(classes)}"
        )


def check_domain(
    domain: Domain | None,
    feature_names: Sequence[str] | None,
    *,
    loss: Loss,
    norm: float,
    classes: Sequence[Label] | None,
) -> None:
    """Refuse a domain that does not describe the records that the coefficients are for."""
    if domain is None:
        return
    for field, stated, declared in (
        ("feature_names", feature_names, tuple(domain.column_names)),
        ("norm", norm, domain.row_norm),
        ("classes", classes, getattr(domain.label, "classes", None)),
    ):
        if stated != declared:
            raise unusable(f"`{field}` must be what `domain` declares but is {shown(stated)}")
    # A numeric outcome is scaled to [-1, 1], which a loss for probabilities does not accept.
    if isinstance(domain.label, NumberLabel) and not math.isinf(loss.labels.high):
        raise unusable(f"`domain` must not declare a numeric outcome for the loss {describe(loss)['name']}")


def check_claims(release: Release) -> None:
    """Refuse statistics that the plan does not pay for or cannot have produced, and a false guarantee.

    Privacy
    -------
    Public in, public out. The checks keep a file from stating a smaller ε than its noise scales
    certify; they cannot tell whether the noise was really drawn.
    """
    plan = release.plan
    for name, wanted, statistic in _released(release):
        scale = getattr(plan, f"sigma_{name}")
        for field, value in ((f"plan.sigma_{name}", scale), (f"statistics.{name}", statistic)):
            if (value is not None) != wanted:
                verb = "given" if wanted else "null"
                raise unusable(f"`{field}` must be {verb} with report {plan.report!r} but is not")
    _check_eigenvalues(release)
    _check_certificate(plan)


def _released(release: Release) -> Iterator[tuple[str, bool, object]]:
    statistics = (release.gradient, release.hessian, release.eigenvalue)
    yield from zip(
        ("gradient", "hessian", "eigenvalue"), REPORTS[release.plan.report], statistics, strict=True
    )


def _check_eigenvalues(release: Release) -> None:
    r"""Refuse a Hessian or an eigenvalue so far below ``l2`` that no table can have led to it.

    The Hessian is at least :math:`\lambda I` for every table, and the largest eigenvalue of the GOE exceeds
    :math:`2\sqrt d + t` with probability at most :math:`e^{-t^2/4}`. There is no limit above: a
    table may have any number of rows.
    """
    plan, hessian, eigenvalue = release.plan, release.hessian, release.eigenvalue
    if hessian is None or plan.sigma_hessian is None:
        return
    largest = float(np.max(np.abs(hessian)))
    if largest > _ABSURD:
        raise unusable(f"`statistics.hessian` has entries beyond {_ABSURD:g}")
    unit = largest or 1.0
    smallest = float(eigvalsh(hessian / unit, subset_by_index=(0, 0))[0])
    reach = plan.sigma_hessian * (2.0 * math.sqrt(len(hessian)) + _IMPOSSIBLE)
    if smallest < (plan.l2 - reach) / unit - _ROUNDING:
        raise unusable("`statistics.hessian` is further below `plan.l2` than its noise can explain")
    if eigenvalue is None or plan.sigma_eigenvalue is None:
        return
    lowest = plan.l2 - _IMPOSSIBLE * plan.sigma_eigenvalue - _ROUNDING * largest
    if abs(eigenvalue) > _ABSURD or eigenvalue < lowest:
        raise unusable(f"`statistics.eigenvalue` is {shown(eigenvalue)}, which its noise cannot explain")


def _check_certificate(plan: Plan) -> None:
    """Refuse a guarantee that the noise scales do not certify."""
    profile_exists = math.isfinite(plan.loss.curve.max_slope)
    if math.isfinite(plan.epsilon) != profile_exists:
        wanted = "a number" if profile_exists else "null, because this loss has no worst case,"
        raise unusable(
            f"`plan.epsilon` must be {wanted} for the loss {describe(plan.loss)['name']} but is not"
        )
    if not profile_exists:
        return
    parameters = {key: value for key, value in describe(plan.loss).items() if isinstance(value, float)}
    for name in ("norm", "sigma", "l2", "sigma_gradient", "sigma_hessian", "sigma_eigenvalue"):
        parameters[name] = getattr(plan, name)
    for name, value in parameters.items():
        if value is not None and not _SMALLEST <= value <= _LARGEST:
            raise unusable(
                f"`{name}` is {shown(value)}, where no guarantee can be certified",
                "scale the data by a constant",
            )
    if plan.epsilon > _LARGEST or not _certified(plan):
        promise = f"epsilon={plan.epsilon:g} at delta={plan.delta:g}"
        raise unusable(f"`plan` promises {promise}, which its noise scales do not certify")


def _certified(plan: Plan) -> bool:
    profile = plan.profile
    assert profile is not None
    with np.errstate(all="ignore"):
        if profile.certifies(plan.epsilon, plan.delta):
            return True
        # Another machine's last digits may tip a bracket that calibration left narrow; a finer one decides.
        near = profile.delta(plan.epsilon).lower <= plan.delta
        return near and profile.delta(plan.epsilon, rtol=_FINER).upper <= plan.delta
