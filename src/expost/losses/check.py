"""Check numerically that a loss has the properties that it declares."""

from collections.abc import Iterator

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.exceptions import LossError
from expost.losses.base import SLACK, DerivativeCurve, LabelSet, Loss, curve_shape_problems
from expost.losses.vector import AnyLoss, VectorLoss
from expost.losses.vector_check import check_vector_loss

# Distances on a logarithmic scale: of linear predictors from zero and from the label, of labels from zero.
_PREDICTORS = np.concatenate([[0.0], np.logspace(-6, np.log10(50.0), 120), [1e3, 1e4]])
_LABELS = np.concatenate([[0.0], np.logspace(-3, 4, 15)])


def check_loss(loss: AnyLoss) -> None:
    """Verify a loss numerically; one error lists everything that is wrong with it.

    Checked on a grid of labels across the whole label set (both ends, between them, and up to 1e4 where there
    is no end) and of linear predictors up to 1e4 from zero and from the label: that everything is finite;
    that the second derivative is nowhere negative (convexity); that both derivatives agree with finite
    differences; that the derivative curve really is an upper bound (no slope above ``max_slope``, no
    curvature above the curve at its slope), rises to its peak and falls after it, and has
    ``curvature(m) / m**2`` non-increasing; and that the label fixes the sign of the slope where the loss
    says so. The accountant relies on each of these. It also asks whether ``curvature(m) / m`` is
    non-increasing; a loss that fails only this is valid, and its reports get more noise
    (:attr:`expost.losses.base.DerivativeCurve.ratio_falls`). For a loss of several linear predictors see
    :func:`expost.losses.vector_check.check_vector_loss`.

    Raises
    ------
    LossError
        Naming every property that fails and where.

    Privacy
    -------
    Public: it looks at the loss, and at no record.

    Examples
    --------
    >>> import expost
    >>> expost.check_loss(expost.LogisticLoss())
    """
    if isinstance(loss, VectorLoss):
        check_vector_loss(loss)
        return
    if not isinstance(loss.curve, DerivativeCurve):
        raise LossError(f"{type(loss).__name__} is not a valid loss: its curve must be a DerivativeCurve.")
    labels = _labels(loss.labels)
    eta, y = _crossed(_PREDICTORS, labels)
    problems = list(_pointwise_problems(loss, eta, y)) or [
        *_difference_problems(loss, labels),
        *_curve_problems(loss, eta, y),
    ]
    if problems:
        raise LossError(f"{type(loss).__name__} is not a valid loss: " + "; ".join(problems) + ".")


def _labels(labels: LabelSet) -> FloatArray:
    """Labels across the whole set: its ends, between them, and far out where it has no end."""
    if labels.values is not None:
        return np.array(labels.values)
    y = np.concatenate([-_LABELS, _LABELS])
    if np.isfinite(labels.low):
        y = np.concatenate([y, labels.low + _LABELS])
    if np.isfinite(labels.high):
        y = np.concatenate([y, labels.high - _LABELS])
    if np.isfinite(labels.high - labels.low):
        y = np.concatenate([y, np.linspace(labels.low, labels.high, 25)])
    return np.unique(y[labels.contains(y)])


def _crossed(distances: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Linear predictors at these signed distances from zero and from the label, for every label."""
    signed = np.unique(np.concatenate([-distances, distances]))
    eta = np.concatenate(
        [np.broadcast_to(signed, (len(labels), len(signed))), labels[:, None] + signed], axis=1
    )
    return eta.ravel(), np.repeat(labels, eta.shape[1])


def _where(bad: BoolArray, eta: FloatArray, y: FloatArray) -> str:
    first = int(np.flatnonzero(bad)[0])
    return f"at eta={eta[first]:.6g}, y={y[first]:.6g}"


def _pointwise_problems(loss: Loss, eta: FloatArray, y: FloatArray) -> Iterator[str]:
    with np.errstate(all="ignore"):
        value = loss.value(eta, y)
        slope, curvature = loss.derivatives(eta, y)
    for what, array in (("value", value), ("first derivative", slope), ("second derivative", curvature)):
        if np.shape(array) != eta.shape:
            yield f"the {what} has shape {np.shape(array)} for inputs of shape {eta.shape}"
        elif not np.all(np.isfinite(array)):
            yield f"the {what} is not finite {_where(~np.isfinite(array), eta, y)}"
    if np.shape(curvature) == eta.shape and np.any(curvature < 0.0):
        yield f"it is not convex: the second derivative is negative {_where(curvature < 0.0, eta, y)}"


def _difference_problems(loss: Loss, labels: FloatArray) -> Iterator[str]:
    """Compare with central differences on the part of the grid where those are accurate."""
    eta, y = _crossed(np.linspace(0.0, 12.0, 121) + 0.0371, labels)
    after, before = eta + 1e-5, eta - 1e-5
    slope, curvature = loss.derivatives(eta, y)
    # Far from zero the step itself is rounded, so what is divided by is the step that was taken.
    slope_seen = (loss.value(after, y) - loss.value(before, y)) / (after - before)
    curvature_seen = (loss.derivatives(after, y)[0] - loss.derivatives(before, y)[0]) / (after - before)
    # The difference of two values of size v is off by about 1e-16 v / step, plus the third-order term.
    for what, declared, seen, scale in (
        ("first", slope, slope_seen, 1.0 + np.abs(loss.value(eta, y)) + np.abs(slope)),
        ("second", curvature, curvature_seen, 1.0 + np.abs(slope) + np.abs(curvature)),
    ):
        bad = np.abs(declared - seen) > 1e-5 * scale
        if np.any(bad):
            yield f"the {what} derivative disagrees with finite differences {_where(bad, eta, y)}"


def _curve_problems(loss: Loss, eta: FloatArray, y: FloatArray) -> Iterator[str]:
    curve = loss.curve
    slope, curvature = loss.derivatives(eta, y)
    steepness = np.abs(slope)
    if np.any(steep := steepness > curve.max_slope * (1.0 + SLACK)):
        yield f"the slope exceeds the declared max_slope={curve.max_slope:g} {_where(steep, eta, y)}"
    ceiling = curve.curvature(np.minimum(steepness, curve.max_slope))
    slack = SLACK * max(curve.max_curvature, 1e-300)
    if np.any(above := curvature > ceiling * (1.0 + SLACK) + slack):
        yield f"the curvature exceeds the declared curve {_where(above, eta, y)}"
    if curve.sign_fixed:
        for label in np.unique(y):
            signs = np.sign(slope[(y == label) & (steepness > 0.0)])
            if np.unique(signs).size > 1:
                yield f"the sign of the slope is declared fixed but changes for y={label:g}"
    yield from curve_shape_problems(curve)
