"""Check numerically that a loss has the properties that it declares."""

from collections.abc import Iterator

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.exceptions import LossError
from expost.losses.base import Loss

# Relative slack for comparisons that hold exactly on paper: far above rounding, far below any real mistake.
_SLACK = 1e-9


def check_loss(loss: Loss) -> None:
    """Verify a loss numerically; one error lists everything that is wrong with it.

    Checked on a grid of linear predictors up to 1e4 in size and of labels across the label set: that
    everything is finite; that the second derivative is nowhere negative (convexity); that both
    derivatives agree with finite differences; that the derivative curve really is an upper bound
    (no slope above ``max_slope``, no curvature above the curve at its slope), rises to its peak and
    falls after it, and has ``curvature(m) / m**2`` non-increasing; and that the label fixes the sign of the
    slope where the loss says so. The accountant relies on each of these.

    Raises
    ------
    LossError
        Naming every property that fails and where.

    Examples
    --------
    >>> import expost
    >>> expost.check_loss(expost.LogisticLoss())
    """
    eta, y = _grid(loss)
    problems = list(_pointwise_problems(loss, eta, y)) or [
        *_difference_problems(loss, y),
        *_curve_problems(loss, eta, y),
    ]
    if problems:
        raise LossError(f"{type(loss).__name__} is not a valid loss: " + "; ".join(problems) + ".")


def _grid(loss: Loss) -> tuple[FloatArray, FloatArray]:
    """Linear predictors on a signed logarithmic grid, crossed with labels across the label set."""
    size = np.concatenate([[0.0], np.logspace(-6, np.log10(50.0), 120), [1e3, 1e4]])
    eta = np.unique(np.concatenate([-size, size]))
    labels = loss.labels
    if labels.values is not None:
        y = np.array(labels.values)
    else:
        y = np.linspace(max(labels.low, -3.0), min(labels.high, 3.0), 13)
    grid_eta, grid_y = np.meshgrid(eta, y)
    return grid_eta.ravel(), grid_y.ravel()


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


def _difference_problems(loss: Loss, y: FloatArray) -> Iterator[str]:
    """Compare with central differences on the part of the grid where those are accurate."""
    labels = np.unique(y)
    eta, y = (grid.ravel() for grid in np.meshgrid(np.linspace(-12.0, 12.0, 241) + 0.0371, labels))
    step = 1e-5
    slope, curvature = loss.derivatives(eta, y)
    slope_seen = (loss.value(eta + step, y) - loss.value(eta - step, y)) / (2 * step)
    curvature_seen = (loss.derivatives(eta + step, y)[0] - loss.derivatives(eta - step, y)[0]) / (2 * step)
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
    if np.any(steep := steepness > curve.max_slope * (1.0 + _SLACK)):
        yield f"the slope exceeds the declared max_slope={curve.max_slope:g} {_where(steep, eta, y)}"
    ceiling = curve.curvature(np.minimum(steepness, curve.max_slope))
    slack = _SLACK * max(curve.max_curvature, 1e-300)
    if np.any(above := curvature > ceiling * (1.0 + _SLACK) + slack):
        yield f"the curvature exceeds the declared curve {_where(above, eta, y)}"
    if curve.sign_fixed:
        for label in np.unique(y):
            signs = np.sign(slope[(y == label) & (steepness > 0.0)])
            if np.unique(signs).size > 1:
                yield f"the sign of the slope is declared fixed but changes for y={label:g}"
    top = curve.max_slope if np.isfinite(curve.max_slope) else max(1e4, 10.0 * curve.peak)
    slopes = np.linspace(0.0, top, 2001)
    declared = curve.curvature(slopes)
    if np.any(declared < 0.0) or not np.all(np.isfinite(declared)):
        yield "the declared curve is negative or not finite somewhere on [0, max_slope]"
        return
    rise = np.diff(declared)
    if np.any(rise[slopes[1:] <= curve.peak] < -slack) or np.any(rise[slopes[:-1] >= curve.peak] > slack):
        yield f"the declared curve does not rise up to peak={curve.peak:g} and fall after it"
    per_square = declared[1:] / slopes[1:] ** 2
    if np.any(np.diff(per_square) > _SLACK * per_square[:-1]):
        yield "curvature(m)/m² rises along the declared curve, so that short rows are not covered"
