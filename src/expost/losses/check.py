"""Check numerically that a loss of linear predictors has the properties that it declares."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.exceptions import LossError
from expost.losses.base import SLACK, DerivativeCurve, LabelSet, curve_shape_problems
from expost.losses.softmax import centring
from expost.losses.softmax_curve import SoftmaxCurve
from expost.losses.vector import AnyLoss, VectorLoss

# For one predictor, distances on a logarithmic scale: from zero and the label, and of labels from zero.
_PREDICTORS = np.concatenate([[0.0], np.logspace(-6, np.log10(50.0), 120), [1e3, 1e4]])
_LABELS = np.concatenate([[0.0], np.logspace(-3, 4, 15)])
# For several, lengths of vectors of predictors, and how many directions are tried for each, at each label.
_LENGTHS = np.concatenate([[0.0], np.logspace(-3, 2, 11), [1e3, 1e4]])
_DIRECTIONS = 24
# The numbers in all Hessians at once, the labels and axes that are tried, and the predictors there may be.
_MOST_NUMBERS, _MOST_LABELS, _MOST_AXES, _MOST_PREDICTORS = 3_000_000, 12, 8, 256
# The step of a difference, where differences are accurate, and a shift off the places of kinks.
_STEP, _NEAR, _SHIFT = 1e-5, 12.0, 0.0371


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
    (:attr:`expost.losses.base.DerivativeCurve.ratio_falls`).

    A loss of several linear predictors is checked at predictors of lengths up to 1e4 in directions along the
    axes and drawn from a fixed seed: its gradients in the place of slopes, the eigenvalues of its Hessians in
    the place of curvatures, and their ranks as well. A loss that declares the gradients and Hessians of a
    softmax loss (:class:`~expost.losses.softmax_curve.SoftmaxCurve`) must have none but these, or smaller
    Hessians. Directions are samples: a bound that fails only between them is not found.

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
    >>> expost.check_loss(expost.SoftmaxLoss(4))
    """
    if not 1 <= loss.outputs <= _MOST_PREDICTORS:
        raise not_valid(
            loss, [f"it has {loss.outputs} linear predictors, and may have 1 to {_MOST_PREDICTORS}"]
        )
    if loss.along_row and not isinstance(loss.curve, DerivativeCurve):
        raise not_valid(loss, ["its curve must be a DerivativeCurve"])
    points, near = _one_predictor(loss) if loss.along_row else _several_predictors(loss)
    problems = list(_pointwise_problems(loss, points)) or [
        *_difference_problems(loss, near),
        *_curve_problems(loss, points),
    ]
    if problems:
        raise not_valid(loss, problems)


def not_valid(loss: object, problems: list[str]) -> LossError:
    """The error that lists what is wrong with a loss; the caller raises it."""
    return LossError(f"{type(loss).__name__} is not a valid loss: " + "; ".join(problems) + ".")


@dataclass(frozen=True, eq=False)
class _Points:
    """Linear predictors, records by predictors, and labels."""

    eta: FloatArray
    y: FloatArray

    def where(self, bad: BoolArray) -> str:
        """The first of some of the points, in words."""
        first = int(np.flatnonzero(bad)[0])
        entries = ", ".join(f"{entry:.6g}" for entry in self.eta[first])
        entries = entries if self.eta.shape[1] == 1 else f"({entries})"
        return f"at eta={entries}, y={self.y[first]:.6g}"


def _one_predictor(loss: AnyLoss) -> tuple[_Points, _Points]:
    """Where a loss of one predictor is looked at, and where its differences are."""
    labels = _labels_across(loss.labels)
    return _crossed(_PREDICTORS, labels), _crossed(np.linspace(0.0, _NEAR, 121) + _SHIFT, labels)


def _labels_across(labels: LabelSet) -> FloatArray:
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


def _crossed(distances: FloatArray, labels: FloatArray) -> _Points:
    """Linear predictors at these signed distances from zero and from the label, for every label."""
    signed = np.unique(np.concatenate([-distances, distances]))
    eta = np.concatenate(
        [np.broadcast_to(signed, (len(labels), len(signed))), labels[:, None] + signed], axis=1
    )
    return _Points(eta.reshape(-1, 1), np.repeat(labels, eta.shape[1]))


def _several_predictors(loss: AnyLoss) -> tuple[_Points, _Points]:
    """The same for several predictors; of many points a sample, so that memory stays small."""
    random = np.random.default_rng(0)
    drawn = random.normal(size=(_DIRECTIONS, loss.outputs))
    axes = np.eye(loss.outputs)[:_MOST_AXES]
    directions = np.concatenate([axes, -axes, drawn / np.linalg.norm(drawn, axis=1)[:, None]])
    points = (_LENGTHS[:, None, None] * directions).reshape(-1, loss.outputs)
    labels = np.linspace(max(loss.labels.low, -10.0), min(loss.labels.high, 10.0), 9)
    if loss.labels.values is not None:
        values = np.array(loss.labels.values)
        labels = values[np.unique(np.linspace(0, len(values) - 1, _MOST_LABELS).astype(int))]
    eta, y = np.tile(points, (len(labels), 1)), np.repeat(labels, len(points))
    most = max(len(labels), _MOST_NUMBERS // (loss.outputs + 1) ** 2)
    kept = np.sort(random.permutation(len(y))[:most])
    eta, y = eta[kept], y[kept]
    close = np.linalg.norm(eta, axis=1) <= _NEAR
    return _Points(eta, y), _Points(eta[close] + _SHIFT, y[close])


def _value(loss: AnyLoss, eta: FloatArray, y: FloatArray) -> FloatArray:
    return loss.value(eta[:, 0] if loss.along_row else eta, y)


def _derivatives(loss: AnyLoss, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradients and Hessians in the predictors."""
    if isinstance(loss, VectorLoss):
        gradient, factor = loss.derivatives(eta, y)
        return gradient, factor @ np.swapaxes(factor, 1, 2)
    slope, curvature = loss.derivatives(eta[:, 0], y)
    return slope[:, None], curvature[:, None, None]


def _words(loss: AnyLoss) -> tuple[str, str]:
    """What a loss calls its derivatives."""
    return ("first derivative", "second derivative") if loss.along_row else ("gradient", "factor")


def _pointwise_problems(loss: AnyLoss, points: _Points) -> Iterator[str]:
    eta, y, rows = points.eta, points.y, len(points.y)
    seen, (one, two) = eta[:, 0] if loss.along_row else eta, _words(loss)
    with np.errstate(all="ignore"):
        value = loss.value(seen, y)
        first, second = loss.derivatives(seen, y)
    wanted = seen.shape if loss.along_row or np.ndim(second) != 3 else (*seen.shape, np.shape(second)[-1])
    sound = True
    for what, array, shape in (("value", value, (rows,)), (one, first, seen.shape), (two, second, wanted)):
        if np.shape(array) != shape or (what == "factor" and np.ndim(array) != 3):
            sound = False
            yield f"the {what} has shape {np.shape(array)} for inputs of shape {seen.shape}"
        elif not np.all(np.isfinite(array)):
            sound = False
            bad = ~np.all(np.isfinite(array).reshape(rows, -1), axis=1)
            yield f"the {what} is not finite {points.where(bad)}"
    if sound and loss.along_row and np.any(second < 0.0):
        yield f"it is not convex: the second derivative is negative {points.where(second < 0.0)}"


def _difference_problems(loss: AnyLoss, points: _Points) -> Iterator[str]:
    """Compare with central differences on the part of the grid where those are accurate."""
    eta, y = points.eta, points.y
    gradient, hessian = _derivatives(loss, eta, y)
    steep, bent = np.linalg.norm(gradient, axis=1), np.linalg.norm(hessian, axis=(1, 2))
    # The difference of two values of size v is off by about 1e-16 v / step, plus the third-order term.
    size = 1.0 + np.abs(_value(loss, eta, y)) + steep, 1.0 + steep + bent
    wrong = [np.zeros(len(y), dtype=bool) for _ in range(2)]
    for output in range(loss.outputs):
        after, before = eta.copy(), eta.copy()
        after[:, output] += _STEP
        before[:, output] -= _STEP
        # Far from zero the step itself is rounded, so what is divided by is the step that was taken.
        step = after[:, output] - before[:, output]
        slope = (_value(loss, after, y) - _value(loss, before, y)) / step
        bend = (_derivatives(loss, after, y)[0] - _derivatives(loss, before, y)[0]) / step[:, None]
        wrong[0] |= np.abs(gradient[:, output] - slope) > 1e-5 * size[0]
        wrong[1] |= np.max(np.abs(hessian[:, output] - bend), axis=1) > 1e-5 * size[1]
    for what, bad in zip(_words(loss), wrong, strict=True):
        if np.any(bad):
            yield f"the {what} disagrees with finite differences {points.where(bad)}"


def _curve_problems(loss: AnyLoss, points: _Points) -> Iterator[str]:
    curve, y = loss.curve, points.y
    if curve.outputs != loss.outputs:
        yield f"the curve has outputs={curve.outputs}, the loss {loss.outputs}"
    gradient, hessian = _derivatives(loss, points.eta, y)
    steepness = np.linalg.norm(gradient, axis=1)
    steep_one, steep_many = "the slope exceeds", "the gradient is longer than"
    if np.any(steep := steepness > curve.max_slope * (1.0 + SLACK)):
        what = f"{steep_one if loss.along_row else steep_many} the declared max_slope={curve.max_slope:g}"
        yield f"{what} {points.where(steep)}"
    eigenvalues = np.linalg.eigvalsh(hessian)
    largest = eigenvalues[:, -1]
    ceiling = np.full(len(y), curve.max_curvature)
    if isinstance(curve, SoftmaxCurve):
        if curve.outputs == loss.outputs:
            yield from _softmax_problems(curve, gradient, hessian, points)
    else:
        ceiling = curve.curvature(np.minimum(steepness, curve.max_slope))
        yield from _sign_problems(loss, curve, gradient[:, 0], y)
        yield from curve_shape_problems(curve)
    slack = SLACK * max(curve.max_curvature, 1e-300)
    if np.any(above := largest > ceiling * (1.0 + SLACK) + slack):
        what = "the curvature" if loss.along_row else "an eigenvalue of the Hessian"
        yield f"{what} exceeds the declared curve {points.where(above)}"
    rank = np.sum(eigenvalues > SLACK * np.maximum(largest, 1e-300)[:, None], axis=1)
    if np.any(full := rank > curve.rank):
        yield f"the Hessian has more than the declared rank={curve.rank} {points.where(full)}"


def _sign_problems(loss: AnyLoss, curve: DerivativeCurve, slope: FloatArray, y: FloatArray) -> Iterator[str]:
    if curve.sign_fixed and not loss.along_row:
        yield "the curve declares sign_fixed, which is for one linear predictor only: set it to False"
    elif curve.sign_fixed:
        for label in np.unique(y):
            if np.unique(np.sign(slope[(y == label) & (slope != 0.0)])).size > 1:
                yield f"the sign of the slope is declared fixed but changes for y={label:g}"


def _softmax_problems(
    curve: SoftmaxCurve, gradient: FloatArray, hessian: FloatArray, points: "_Points"
) -> Iterator[str]:
    """In the scores of the classes a gradient is ``q(π - e)``, and the Hessian at most that of the curve."""
    basis, y = centring(curve.classes), points.y
    scores = gradient @ basis.T / curve.weight
    slope = -np.min(scores, axis=1)
    true = np.argmin(scores, axis=1)
    away = scores / np.maximum(slope, 1e-300)[:, None]
    others = away.copy()
    np.put_along_axis(others, true[:, None], 0.0, axis=1)
    beyond = (slope > curve.cap * (1.0 + SLACK)) | np.any(others < -SLACK, axis=1)
    if np.any(beyond):
        yield f"the gradient is none of the declared softmax curve {points.where(beyond)}"
        return
    steep = slope > SLACK
    for label in np.unique(y[steep]):
        if len(np.unique(true[steep & (y == label)])) > 1:
            yield f"the gradients of the label y={label:g} do not point away from one class"
            return
    within = others[:, :, None] * (np.eye(curve.classes) - others[:, None, :])
    bend = curve.curvature(np.minimum(slope, curve.cap))
    allowed = slope[:, None, None] * within + bend[:, None, None] * (away[:, :, None] * away[:, None, :])
    scored = basis @ hessian @ basis.T / curve.weight
    excess = np.linalg.eigvalsh(scored - allowed)[:, -1]
    if np.any(above := excess > SLACK):
        yield f"the Hessian exceeds that of the declared softmax curve {points.where(above)}"
