"""Check numerically that a loss of several linear predictors has the properties that it declares."""

import math
from collections.abc import Iterator

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.exceptions import LossError
from expost.losses.base import SLACK, LabelSet, curve_shape_problems
from expost.losses.softmax import centring
from expost.losses.softmax_curve import SoftmaxCurve
from expost.losses.vector import VectorLoss

# Lengths of the vectors of predictors, and how many directions are tried for each length and label.
_LENGTHS = np.concatenate([[0.0], np.logspace(-3, 2, 11), [1e3, 1e4]])
_DIRECTIONS = 24
_STEP = 1e-5
# The numbers in all factors at once, the labels and the axes that are tried, and the predictors there may be.
_MOST_NUMBERS, _MOST_LABELS, _MOST_AXES, _MOST_PREDICTORS = 3_000_000, 12, 8, 256
# Where central differences are accurate.
_NEAR = 12.0


def check_vector_loss(loss: VectorLoss) -> None:
    """Verify a loss of several linear predictors numerically; one error lists what is wrong with it.

    Checked at predictors of lengths up to 1e4 in directions along the axes and drawn from a fixed seed, and
    at labels across the label set: shapes; that everything is finite; that the gradient agrees with finite
    differences of the value, and the product of the factor with its transpose with those of the gradient
    (which also shows convexity, because such a product has no negative eigenvalue); that no gradient is
    longer than the declared ``max_slope``, no eigenvalue of a Hessian above the curve at the gradient's
    length, and no rank above ``rank``; and that ``curvature(m) / m**2`` does not rise. A loss that declares
    the gradients and Hessians of a softmax loss (:class:`~expost.losses.softmax_curve.SoftmaxCurve`) must
    have none but these, or smaller Hessians. Directions are samples: a bound that fails only between them
    is not found.

    Raises
    ------
    LossError
        Naming every property that fails.

    Examples
    --------
    >>> from expost.losses.softmax import SoftmaxLoss
    >>> check_vector_loss(SoftmaxLoss(4))
    """
    if not 1 <= loss.outputs <= _MOST_PREDICTORS:
        raise LossError(
            f"{type(loss).__name__} is not a valid loss: it has {loss.outputs} linear predictors, and may "
            f"have 1 to {_MOST_PREDICTORS}."
        )
    eta, y = _points(loss)
    problems = list(_shape_problems(loss, eta, y)) or [
        *_difference_problems(loss, eta, y),
        *_curve_problems(loss, eta, y),
    ]
    if problems:
        raise LossError(f"{type(loss).__name__} is not a valid loss: " + "; ".join(problems) + ".")


def _points(loss: VectorLoss) -> tuple[FloatArray, FloatArray]:
    """Predictors and labels to check at; of many of them a sample, so that memory stays small."""
    random = np.random.default_rng(0)
    drawn = random.normal(size=(_DIRECTIONS, loss.outputs))
    axes = np.eye(loss.outputs)[:_MOST_AXES]
    directions = np.concatenate([axes, -axes, drawn / np.linalg.norm(drawn, axis=1)[:, None]])
    points = (_LENGTHS[:, None, None] * directions).reshape(-1, loss.outputs)
    labels = _labels(loss.labels)
    eta, y = np.tile(points, (len(labels), 1)), np.repeat(labels, len(points))
    most = max(len(labels), _MOST_NUMBERS // (loss.outputs + 1) ** 2)
    kept = np.sort(random.permutation(len(y))[:most])
    return eta[kept], y[kept]


def _labels(labels: LabelSet) -> FloatArray:
    if labels.values is not None:
        values = np.array(labels.values)
        sample: FloatArray = values[np.unique(np.linspace(0, len(values) - 1, _MOST_LABELS).astype(int))]
        return sample
    return np.linspace(max(labels.low, -10.0), min(labels.high, 10.0), 9)


def _where(bad: BoolArray, eta: FloatArray, y: FloatArray) -> str:
    first = int(np.flatnonzero(bad)[0])
    entries = ", ".join(f"{entry:.6g}" for entry in eta[first])
    return f"at eta=({entries}), y={y[first]:.6g}"


def _shape_problems(loss: VectorLoss, eta: FloatArray, y: FloatArray) -> Iterator[str]:
    with np.errstate(all="ignore"):
        value = loss.value(eta, y)
        gradient, factor = loss.derivatives(eta, y)
    rows = len(eta)
    for what, array, wanted in (
        ("value", value, (rows,)),
        ("gradient", gradient, eta.shape),
        ("factor", factor, (*eta.shape, np.shape(factor)[-1] if np.ndim(factor) == 3 else 1)),
    ):
        if np.shape(array) != wanted:
            yield f"the {what} has shape {np.shape(array)} for predictors of shape {eta.shape}"
        elif not np.all(np.isfinite(array)):
            bad: BoolArray = np.any(~np.isfinite(array).reshape(rows, -1), axis=1)
            yield f"the {what} is not finite {_where(bad, eta, y)}"


def _difference_problems(loss: VectorLoss, eta: FloatArray, y: FloatArray) -> Iterator[str]:
    near = np.linalg.norm(eta, axis=1) <= _NEAR
    eta, y = eta[near] + 0.0371, y[near]
    gradient, factor = loss.derivatives(eta, y)
    hessian = factor @ np.swapaxes(factor, 1, 2)
    size = 1.0 + np.abs(loss.value(eta, y)) + np.linalg.norm(gradient, axis=1)
    wrong_slope, wrong_curvature = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    for output in range(loss.outputs):
        shift = np.zeros(loss.outputs)
        shift[output] = _STEP
        slope = (loss.value(eta + shift, y) - loss.value(eta - shift, y)) / (2.0 * _STEP)
        bend = (loss.derivatives(eta + shift, y)[0] - loss.derivatives(eta - shift, y)[0]) / (2.0 * _STEP)
        wrong_slope |= np.abs(gradient[:, output] - slope) > 1e-5 * size
        wrong_curvature |= np.max(np.abs(hessian[:, output] - bend), axis=1) > 1e-5 * size
    if np.any(wrong_slope):
        yield f"the gradient disagrees with finite differences {_where(wrong_slope, eta, y)}"
    if np.any(wrong_curvature):
        yield f"the factor disagrees with finite differences {_where(wrong_curvature, eta, y)}"


def _curve_problems(loss: VectorLoss, eta: FloatArray, y: FloatArray) -> Iterator[str]:
    curve = loss.curve
    if curve.outputs != loss.outputs:
        yield f"the curve has outputs={curve.outputs}, the loss {loss.outputs}"
    gradient, factor = loss.derivatives(eta, y)
    steepness = np.linalg.norm(gradient, axis=1)
    if np.any(steep := steepness > curve.max_slope * (1.0 + SLACK)):
        declared = f"the declared max_slope={curve.max_slope:g}"
        yield f"the gradient is longer than {declared} {_where(steep, eta, y)}"
    eigenvalues = np.linalg.eigvalsh(factor @ np.swapaxes(factor, 1, 2))
    largest = eigenvalues[:, -1]
    slack = SLACK * max(curve.max_curvature, 1e-300)
    ceiling = np.full(len(y), curve.max_curvature)
    if isinstance(curve, SoftmaxCurve):
        if curve.outputs == loss.outputs:
            yield from _softmax_problems(curve, gradient, factor, eta, y)
    else:
        ceiling = curve.curvature(np.minimum(steepness, curve.max_slope))
        if curve.sign_fixed:
            yield "the curve declares sign_fixed, which is for one linear predictor only: set it to False"
        yield from curve_shape_problems(curve)
    if np.any(above := largest > ceiling * (1.0 + SLACK) + slack):
        yield f"an eigenvalue of the Hessian exceeds the declared curve {_where(above, eta, y)}"
    rank = np.sum(eigenvalues > SLACK * np.maximum(largest, 1e-300)[:, None], axis=1)
    if np.any(full := rank > curve.rank):
        yield f"the Hessian has more than the declared rank={curve.rank} {_where(full, eta, y)}"


def _softmax_problems(
    curve: SoftmaxCurve, gradient: FloatArray, factor: FloatArray, eta: FloatArray, y: FloatArray
) -> Iterator[str]:
    """In the scores of the classes a gradient is ``q(π - e)``, and the Hessian at most that of the curve."""
    basis = centring(curve.classes)
    scores = gradient @ basis.T / curve.weight
    slope = -np.min(scores, axis=1)
    true = np.argmin(scores, axis=1)
    away = scores / np.maximum(slope, 1e-300)[:, None]
    others = away.copy()
    np.put_along_axis(others, true[:, None], 0.0, axis=1)
    beyond = (slope > curve.cap * (1.0 + SLACK)) | np.any(others < -SLACK, axis=1)
    if np.any(beyond):
        yield f"the gradient is none of the declared softmax curve {_where(beyond, eta, y)}"
        return
    steep = slope > SLACK
    for label in np.unique(y[steep]):
        if len(np.unique(true[steep & (y == label)])) > 1:
            yield f"the gradients of the label y={label:g} do not point away from one class"
            return
    within = others[:, :, None] * (np.eye(curve.classes) - others[:, None, :])
    bend = curve.curvature(np.minimum(slope, curve.cap))
    allowed = slope[:, None, None] * within + bend[:, None, None] * (away[:, :, None] * away[:, None, :])
    rows = basis @ factor / math.sqrt(curve.weight)
    excess = np.linalg.eigvalsh(rows @ np.swapaxes(rows, 1, 2) - allowed)[:, -1]
    if np.any(above := excess > SLACK):
        yield f"the Hessian exceeds that of the declared softmax curve {_where(above, eta, y)}"
