"""Checks of a published file: shapes fit, statistics are possible, the guarantee is certified."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from expost._common.strict_json import digest, publication_error, require, shown
from expost._common.typing import FloatArray
from expost.data.labels import NumericLabel, RowsLabel
from expost.exceptions import ParameterError
from expost.fitting.private_fit import check_corners
from expost.fitting.release import unpack
from expost.losses import LogisticLoss, describe
from expost.losses.corners import Corners
from expost.losses.registry import PUBLISHED, has_certified_slopes
from expost.privacy.calibration import LARGEST_WEIGHT, SMALLEST_WEIGHT
from expost.privacy.plan import Plan, covers_rows
from expost.privacy.precision import Precision, largest_output_noise
from expost.privacy.recalibration import MOMENT_WEIGHTS, Recalibration, recalibration_of
from expost.privacy.scales import REPORT_KINDS, STATISTICS
from expost.publication.document import PublishedDocument, as_json, grid_of, plan_of
from expost.publication.schema import PublishedPlan, PublishedPrecision

# Public numbers that the accountant's arithmetic resolves; nothing outside is certified.
_SMALLEST, _LARGEST = 1e-30, 1e30
# Entries beyond this would overflow in any use.
_ABSURD = 1e300
# More rows than a machine can count.
_COUNTED = 2.0**63
# A normal variable falls this many standard deviations below its mean with probability below 1e-300.
_IMPOSSIBLE = 60.0
# More than rounding in sums over rows and in an eigenvalue can amount to, relative to the largest entry.
_ROUNDING = 1e-6
_FINER = 1e-5


def verify(document: PublishedDocument) -> None:
    """Refuse a document whose fields do not belong together; the cheap checks come first.

    Privacy
    -------
    Public in, public out.
    """
    others = {name: field for name, field in as_json(document).items() if name != "sha256"}
    same = digest(others) == document.sha256
    require(same, "`sha256` must be that of the other fields but is not: something was changed")
    _check_shapes(document)
    check_weights(document)
    _check_domain(document)
    check_outcome(document)
    check_corners_of(document)
    _check_statistics(document)
    _check_precision(document)
    check_guarantee(document)


def _check_shapes(document: PublishedDocument) -> None:
    """Refuse lists whose lengths do not belong together."""
    statistics, dimension, outputs = document.statistics, len(document.coefficients), document.loss.outputs
    one_length = f"{outputs} lists of one length, one after the other, but has {dimension} entries"
    require(dimension % outputs == 0, f"`coefficients` must be {one_length}")
    by_feature = "one number per feature, and the intercept last, but has no feature"
    require(document.n_features >= 1, f"`coefficients` must hold {by_feature}")
    side = dimension // outputs if document.plan.reduced else dimension
    for field, entries, wanted in (
        ("feature_names", document.feature_names, document.n_features),
        ("statistics.gradient", statistics.gradient, dimension),
        ("statistics.hessian", statistics.hessian, side * (side + 1) // 2),
    ):
        count = wanted if entries is None else len(entries)
        text = f"`{field}` must have {wanted} entries with {dimension} coefficients but has {count}"
        require(count == wanted, text)
    values, classes = _label_values(document), document.classes
    wanted_labels = "null" if values is None else f"{len(values)} labels"
    text = f"`classes` must be {wanted_labels} {_for_loss(document)} but is {shown(classes)}"
    require(len(values or ()) == len(classes or ()), text)


def _label_values(document: PublishedDocument) -> tuple[Any, ...] | None:
    """What `classes` stand for, one after the other: the loss's own labels, or those of a declared order."""
    label = document.label
    return getattr(label, "classes", None) if isinstance(label, RowsLabel) else document.loss.labels.values


def _for_loss(document: PublishedDocument) -> str:
    return f"for the loss {describe(document.loss)['name']}"


def check_weights(document: PublishedDocument) -> None:
    """Refuse weights that say nothing, and class weights that do not belong to the classes."""
    if document.weights is None:
        return
    by_class, rows = document.weights.class_weight, document.weights.rows_per_person
    require(document.weighting.used, "`weights` must state a weight, or be absent")
    people = rows is None or document.plan.unit == "person"
    require(people, "`weights.rows_per_person` must be absent where the plan is for rows")
    require(document.loss.curve.ratio_falls, f"`weights` must be absent {_for_loss(document)}")
    if by_class is None:
        return
    text = "`weights.class_weight` must be null or one weight for each of `classes`"
    require(document.classes is not None and len(by_class) == len(document.classes), text)
    possible = all(0.0 <= weight <= LARGEST_WEIGHT for weight in by_class)
    require(possible, f"`weights.class_weight` must be between 0 and {LARGEST_WEIGHT:g}")
    limits = f"between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
    possible = SMALLEST_WEIGHT <= document.weighting.largest <= LARGEST_WEIGHT
    require(possible, f"the largest weight that `weights` allows must be {limits}")


def _check_domain(document: PublishedDocument) -> None:
    """Refuse a domain that does not describe the records that the coefficients are for.

    A file states the norm of its domain. Older files left it out where it was the longest that a row can be.
    """
    domain = document.domain
    if domain is None:
        return
    for field, declared in (
        ("feature_names", tuple(domain.column_names)),
        ("norm", domain.longest_row if domain.norm is None else domain.norm),
        ("classes", getattr(domain.label, "classes", None)),
    ):
        stated = getattr(document, field)
        same = stated == declared and repr(stated) == repr(declared)  # 1 is not true
        require(same, f"`{field}` must be what `domain` declares but is {shown(stated)}")
    unit, seeded = document.plan.unit or "row", any(one.insecure for one in domain.choices)
    alike = all(one.unit == unit for one in domain.choices)
    require(alike, f"`domain.choices` must promise to each {unit}, as `plan` does")
    require(not seeded or document.insecure is not None, "`insecure` must be given with a seeded choice")


def check_outcome(document: PublishedDocument) -> None:
    """Refuse bounds of an outcome with a domain, and for a loss that does not accept scaled numbers."""
    once = document.outcome is None or document.domain is None
    require(once, "`outcome` must be absent with a domain, which declares it")
    if isinstance(document.label, RowsLabel):
        _check_rows_of_records(document, document.label)
    # A number is scaled to [-1, 1], which a loss of classes or probabilities does not accept; counts and
    # amounts have a loss with a logarithmic link.
    label, loss = document.label, document.loss
    accepted = not isinstance(label, NumericLabel) or (
        label.log_link == loss.log_link
        and loss.labels.values is None
        and bool(np.all(loss.labels.contains(label.scaled(np.array(label.limits)))))
    )
    field = "outcome" if document.domain is None else "domain"
    require(accepted, f"`{field}` must not declare a numeric outcome {_for_loss(document)}")


def _check_rows_of_records(document: PublishedDocument, label: RowsLabel) -> None:
    """Refuse an outcome of several rows for anything but the logistic loss of people with one record each."""
    loss, field = document.loss, "outcome" if document.domain is None else "domain"
    logistic = isinstance(loss, LogisticLoss) and not loss.soft
    require(logistic, f"`{field}` must not declare kind {label.kind!r} {_for_loss(document)}")
    require(document.plan.unit == "person", f"`plan.unit` must be 'person' with kind {label.kind!r}")
    require(document.fit_intercept, f"`fit_intercept` must be true with kind {label.kind!r}")
    weighting, domain = document.weighting, document.domain
    one = weighting.rows_per_person is None and (domain is None or domain.person is None)
    require(one, f"people must have one record each with kind {label.kind!r}, and no ids")
    require(weighting.class_weight is None, f"`weights.class_weight` must be null with kind {label.kind!r}")
    if document.domain is None:
        same = getattr(label, "classes", None) == document.classes
        require(same, "`classes` must be what `outcome` declares")


def check_corners_of(document: PublishedDocument) -> None:
    """Refuse corners that are none, that no theorem is about, and coefficients that they would have moved."""
    declared = None if document.domain is None else document.domain.coef_bounds
    as_declared = "`corners` must have the bounds that the effects in `domain` stand for"
    require(declared is None or document.corners is not None, as_declared)
    if document.corners is None:
        return
    columns = document.n_features
    for name, ends in (("low", document.corners.low), ("high", document.corners.high)):
        text = f"`corners.{name}` must be null or {columns} bounds, one of each feature"
        require(ends is None or len(ends) == columns, text)
    corners = document.release.corners
    require(corners is not None, "`corners` must have an `l1` or bounds, or be absent")
    assert corners is not None
    found = corners.low[:columns].tolist(), corners.high[:columns].tolist()
    require(declared is None or found == tuple(map(list, declared)), as_declared)
    require(bool(np.all(corners.low < corners.high)), "`corners.low` must be below `corners.high`")
    _check_snapped(document, corners)


def _check_snapped(document: PublishedDocument, corners: Corners) -> None:
    plan, theta = document.release.plan, document.release.coefficients
    try:
        check_corners(plan, corners)
    except ParameterError as error:
        raise publication_error(f"`corners` must be absent: {error}") from None
    window = 0.0 if plan.precision is None else plan.precision.window
    text = "`coefficients` must be inside `corners`, and on a bound or zero where they are close to it"
    require(np.array_equal(corners.snapped(theta, window), theta), text)


def _check_statistics(document: PublishedDocument) -> None:
    """Refuse statistics that the report does not release or that its noise cannot have produced."""
    plan, statistics, loss = document.plan, document.statistics, document.loss
    reducible = (loss.noise_classes or 0) > 2 and statistics.hessian
    text = "`plan.reduced` must be absent without a Hessian of more than two classes"
    require(reducible or not plan.reduced, text)
    releases = REPORT_KINDS[plan.report].releases + ("recalibration",) * (
        plan.sigma_recalibration is not None
    )
    for name in STATISTICS:
        wanted = name in releases
        for field, value in (
            (f"plan.sigma_{name}", plan.scales.of(name)),
            (f"statistics.{name}", getattr(statistics, name)),
        ):
            text = f"`{field}` must be {'given' if wanted else 'null'} with report {plan.report!r} but is not"
            require((value is not None) == wanted, text)
    if statistics.recalibration is not None:
        _check_recalibration(document, statistics.recalibration)
    if statistics.hessian is not None:
        _check_eigenvalues(plan, unpack(statistics.hessian), statistics.eigenvalue)


def _check_recalibration(document: PublishedDocument, numbers: Sequence[float]) -> None:
    """Refuse a recalibration that no certificate covers, and numbers that no table can have led to."""
    noise, kind = document.plan.sigma_recalibration or math.inf, recalibration_of(document.loss)
    text = "`plan.sigma_recalibration` must be absent but for rows, with a logistic loss or the pseudo-Huber"
    require(kind is not None and document.plan.unit is None, text)
    assert kind is not None
    size = kind.entries(noise)
    text = f"`statistics.recalibration` must have {size} entries with its noise but has {len(numbers)}"
    require(len(numbers) == size, text)
    reach = _IMPOSSIBLE * noise
    for number, (low, high) in zip(numbers, _ends(kind, numbers, reach), strict=True):
        text = f"`statistics.recalibration` has {shown(number)}, which no table and its noise can explain"
        require(low - reach <= number <= high + reach, text)


def _ends(kind: Recalibration, numbers: Sequence[float], reach: float) -> list[tuple[float, float]]:
    """Between what sums over rows lie: no count is negative, and no moment above what all rows can add."""
    if kind.counts:
        return [(0.0, _COUNTED)] * len(numbers)
    rows = min(max(numbers[0] + reach, 0.0) / MOMENT_WEIGHTS[0], _COUNTED)
    most = [weight * rows for weight in MOMENT_WEIGHTS]
    # The first and the third are sums of squares.
    return [(0.0 if place in (0, 2) else -end, end) for place, end in enumerate(most)]


def _check_eigenvalues(plan: PublishedPlan, hessian: FloatArray, eigenvalue: float | None) -> None:
    r"""Refuse a Hessian or an eigenvalue so far below ``l2`` that no table can have led to it.

    The Hessian is at least :math:`\lambda I` for every table, and the largest eigenvalue of the GOE exceeds
    :math:`2\sqrt d + t` with probability at most :math:`e^{-t^2/4}`. There is no limit above: a
    table may have any number of rows.
    """
    assert plan.sigma_hessian is not None
    largest = float(np.max(np.abs(hessian)))
    require(largest <= _ABSURD, f"`statistics.hessian` has entries beyond {_ABSURD:g}")
    unit = largest or 1.0
    smallest = float(eigvalsh(hessian / unit, subset_by_index=(0, 0))[0])
    reach = plan.sigma_hessian * (2.0 * math.sqrt(len(hessian)) + _IMPOSSIBLE)
    text = "`statistics.hessian` is further below `plan.l2` than its noise can explain"
    require(smallest >= (plan.l2 - reach) / unit - _ROUNDING, text)
    if eigenvalue is None or plan.sigma_eigenvalue is None:
        return
    lowest = plan.l2 - _IMPOSSIBLE * plan.sigma_eigenvalue - _ROUNDING * largest
    text = f"`statistics.eigenvalue` is {shown(eigenvalue)}, which its noise cannot explain"
    require(abs(eigenvalue) <= _ABSURD and eigenvalue >= lowest, text)


def _check_precision(document: PublishedDocument) -> None:
    """Refuse numbers that are not on their grids, and grids that are not those of the rule.

    A release prints whole multiples of public powers of two. A number off its grid was not made by the
    mechanism that the guarantee is about. A loss of one's own, and no other, is released in real arithmetic.
    """
    precision = document.precision
    certified = has_certified_slopes(document.loss)
    wanted = "an object" if certified else "null"
    require((precision is not None) == certified, f"`precision` must be {wanted} {_for_loss(document)}")
    if precision is None:
        return
    _check_printing(precision)
    # A coefficient on a bound is the bound, on whatever grid that is.
    corners, theta = document.release.corners, document.release.coefficients
    free = theta if corners is None else theta[~corners.active(theta)]
    _check_multiples("coefficients", free.tolist(), precision.grid)
    for name in STATISTICS:
        grid = getattr(precision, f"{name}_grid")
        follows = grid == grid_of(document.plan.scales, name)
        require(follows, f"`precision.{name}_grid` must follow from `plan.sigma_{name}`")
        printed = getattr(document.statistics, name)
        if printed is not None:
            _check_multiples(f"statistics.{name}", [printed] if name == "eigenvalue" else printed, grid)


def _check_printing(precision: PublishedPrecision) -> None:
    for name in ("output_noise", "solver_radius", "grid"):
        power = math.frexp(getattr(precision, name))[0] == 0.5
        require(power, f"`precision.{name}` must be a power of two")
    for part, whole, least, most in (
        ("solver_radius", "output_noise", 2.0**-40, 2.0**-10),
        ("grid", "solver_radius", 2.0**-20, 2.0**-8),
    ):
        small = least <= getattr(precision, part) / getattr(precision, whole) <= most
        require(small, f"`precision.{part}` must be a small part of `precision.{whole}`")
    stated = precision.value.rounding(0.0).statistics
    require(precision.statistics_error == stated, f"`precision.statistics_error` must be {stated!r}")


def _check_multiples(field: str, numbers: Sequence[float], grid: float) -> None:
    for number in numbers:
        # Dividing by a power of two is exact, but for a quotient beyond all doubles, which is whole.
        quotient = number / grid
        if math.isfinite(quotient) and not quotient.is_integer():
            raise publication_error(
                f"`{field}` must be whole multiples of {grid!r} but {shown(number)} is not"
            )


def check_guarantee(document: PublishedDocument) -> None:
    """Refuse a guarantee that the noise scales do not certify.

    Privacy
    -------
    Public in, public out. This keeps a file from stating a smaller ε than its noise scales certify; it cannot
    tell whether the noise was really drawn.
    """
    stated = document.plan
    profile_exists = math.isfinite(document.loss.curve.max_slope)
    wanted = "a number" if profile_exists else "null, because this loss has no worst case,"
    text = f"`plan.epsilon` must be {wanted} {_for_loss(document)} but is not"
    require((stated.epsilon is not None) == profile_exists, text)
    if profile_exists:
        _check_resolved(document)
    plan = plan_of(document)
    text = "`loss.gradient_cap` must be at most the loss's largest slope times the length of the longest row"
    require(covers_rows(plan.loss, plan.radius), f"{text} but is not")
    if plan.precision is not None:
        _check_output_noise(plan, plan.precision)
    if stated.epsilon is None:
        return
    # A fit asks before any noise and once more at its end; a loss of one's own may not be a key.
    asked = _certified if type(plan.loss) in PUBLISHED.values() else _certified.__wrapped__
    certified = stated.epsilon <= _LARGEST and asked(plan)
    promise = f"epsilon={stated.epsilon:g} at delta={stated.delta:g}"
    require(certified, f"`plan` promises {promise}, which its noise scales do not certify")


def _check_resolved(document: PublishedDocument) -> None:
    """Refuse numbers that the accountant's arithmetic does not resolve."""
    parameters: dict[str, float | None] = {}
    if type(document.loss) in PUBLISHED.values():
        parameters = {key: one for key, one in describe(document.loss).items() if isinstance(one, float)}
    parameters |= {"norm": document.norm, "l2": document.plan.l2} | document.plan.scales.stated
    for name, value in parameters.items():
        resolved = value is None or _SMALLEST <= value <= _LARGEST
        text = f"`{name}` is {shown(value)}, where no guarantee can be certified"
        require(resolved, text, "scale the data by a constant")


def _check_output_noise(plan: Plan, precision: Precision) -> None:
    radius = plan.radius
    largest = largest_output_noise(
        sigma=plan.sigma,
        l2=plan.l2,
        curvature=plan.curve.max_curvature * (radius * radius),  # infinite where a power would be an error
        radius=radius,
        rows_at_most=precision.rows_at_most,
    )
    # The power of two just below; another machine's last digits may differ.
    follows = (0.5 - 1e-9) * largest <= precision.output_noise <= (1.0 + 1e-9) * largest
    require(follows, "`precision.output_noise` must follow from `plan`, `norm` and `loss`")


@lru_cache(maxsize=64)
def _certified(plan: Plan) -> bool:
    """Whether the noise scales certify what a plan promises; kept: it takes as long as a small fit."""
    profile, epsilon, delta = plan.profile, plan.epsilon, plan.delta
    assert profile is not None
    with np.errstate(all="ignore"):
        if profile.certifies(epsilon, delta):
            return True
        # Another machine's last digits may tip a bracket that calibration left narrow; a finer one decides.
        near = profile.delta(epsilon).lower <= delta
        return near and profile.delta(epsilon, rtol=_FINER).upper <= delta
