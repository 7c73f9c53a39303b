"""Check numerically that a convex loss has the properties that it declares."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost.losses.base import SLACK, LabelSet, curve_shape_problems
from expost.losses.check import not_valid
from expost.losses.convex import ConvexLoss

# The step of a finite difference, in units of ξ/β, and the error that it may have.
_STEP, _DIFFERENCE = 1e-5, 1e-5
# Eigenvalues and singular values below this share of the largest are rounding.
_RANK = 1e-9
# Rows that are evaluated once more on their own.
_ALONE = 5
# Regularisations at which determinants are compared, in units of β.
_WEIGHTS = np.logspace(-3, 3, 7)
# Lengths of parameters in units of ξ/β, the distance over which a gradient can change by all of its size.
_LENGTHS = np.array([0.0, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4])
_DIRECTIONS = 4
_RECORDS = 24
# Records whose own minimum is looked for, and steps towards it.
_OWN, _STEPS = 8, 40
# Eigenvalues of a matrix of d rows take about d³ operations: so many in all, for a least number of vectors.
_WORK, _FEWEST = 1e9, 30
# Random steps of a search for the largest value of a quantity.
_TRIALS = 80


@dataclass(frozen=True, eq=False)
class Points:
    """Parameters, one vector a row, and records, every one of which is looked at with every vector."""

    thetas: FloatArray
    records: FloatArray
    unit: float
    """ξ/β."""

    @classmethod
    def of(cls, loss: ConvexLoss, random: np.random.Generator) -> "Points":
        """Records across the set with labels across theirs, and parameters of all lengths."""
        d, unit = loss.n_parameters, loss.max_gradient / loss.max_curvature
        rows = loss.record_set.draw(random, _RECORDS)
        labels = _labels(loss.labels)
        if len(labels):
            chosen = np.resize(labels, max(len(rows), len(labels)))
            rows = np.column_stack(
                [np.resize(rows, (len(chosen), rows.shape[1])), random.permutation(chosen)]
            )
        directions = random.normal(size=(_DIRECTIONS, d))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        axes = np.eye(d)[:_DIRECTIONS]
        spread = np.concatenate([directions, axes, -axes])
        lengths = np.concatenate([unit * _LENGTHS, loss.parameter_scale * _LENGTHS[3:6]])
        thetas = (lengths[:, None, None] * spread).reshape(-1, d)
        thetas = random.permutation(np.unique(thetas, axis=0))
        most = max(_FEWEST, int(_WORK / (len(rows) * d**3)))
        return cls(np.concatenate([np.zeros((1, d)), thetas[: most - 1]]), rows, unit)

    def with_minima(self, loss: ConvexLoss) -> "Points":
        """The same with the places where single records are content, where curvature is often largest."""
        places = np.unique(np.linspace(0, len(self.records) - 1, _OWN).astype(int))
        own = [_minimum(loss, self.records[place : place + 1]) for place in places]
        return Points(np.concatenate([self.thetas, np.array(own)]), self.records, self.unit)


def _labels(labels: LabelSet) -> FloatArray:
    if labels.values is not None:
        return np.array(labels.values)
    far = np.array([0.0, 1.0, 10.0, 1e2, 1e4])
    low, high = max(labels.low, -1e4), min(labels.high, 1e4)
    return np.unique(np.clip(np.concatenate([np.linspace(low, high, 9), -far, far]), low, high))


def _minimum(loss: ConvexLoss, record: FloatArray) -> FloatArray:
    """Close to the minimum of one record's loss, by damped Newton steps."""
    theta, ridge = np.zeros(loss.n_parameters), 1e-6 * loss.max_curvature
    for _ in range(_STEPS):
        gradient = loss.gradient(theta, record)[0]
        hessian = loss.hessian(theta, record)[0] + ridge * np.eye(len(theta))
        step = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        limit = loss.max_gradient / loss.max_curvature
        length = float(np.linalg.norm(step))
        if not np.isfinite(length) or length <= 1e-12 * limit:
            break
        theta = theta + step * min(1.0, limit / length)
    return theta


def climb(
    measures: Callable[[FloatArray, FloatArray], FloatArray],
    points: Points,
    random: np.random.Generator,
) -> list[tuple[float, FloatArray, FloatArray]]:
    """The largest value of each measure that is found, with its parameters and its record.

    ``measures`` has one row per record and one column per measure. The search looks at all points first, and
    then takes random steps of many lengths from the best of them.
    """
    seen = np.array([measures(theta, points.records) for theta in points.thetas])
    found = []
    for column in range(seen.shape[2]):
        place, row = np.unravel_index(int(np.argmax(seen[:, :, column])), seen.shape[:2])
        best, theta = float(seen[place, row, column]), points.thetas[place]
        record = points.records[row : row + 1]
        for length in np.repeat(np.logspace(1, -3, _TRIALS // 4), 4) * points.unit:
            candidate = theta + length * random.normal(size=len(theta)) / np.sqrt(len(theta))
            value = float(measures(candidate, record)[0, column])
            if value > best:
                best, theta = value, candidate
        found.append((best, theta, record[0]))
    return found


def check_convex_loss(loss: ConvexLoss, *, seed: int = 0) -> None:
    """Verify a convex loss numerically; one error lists what is wrong with it.

    Records are drawn from all of the declared set, its boundary included, with labels from all of the label
    set. Parameters are drawn at distances up to ten thousand times the one over which a gradient can change,
    and where single records have their minimum; from the largest value found of each bounded quantity, random
    steps look for a larger one. Checked are: what is declared fits together; shapes, and that everything is
    finite; that a record's results do not depend on the other records; that gradients agree with finite
    differences of the value, and Hessians with those of the gradient; that Hessians are symmetric and have no
    negative eigenvalue, and gradients are monotone between distant parameters (convexity); that gradients,
    eigenvalues, traces, ranks and the dimension of one record's gradients stay within what is declared; and
    that the declared curve bounds every determinant.

    These are samples: a bound that fails only between them is not found. Prove the bounds.

    Parameters
    ----------
    loss
        The loss.
    seed
        Other seeds look at other places.

    Raises
    ------
    LossError
        Naming every property that fails and where.

    Privacy
    -------
    Needs no table.

    Examples
    --------
    >>> from expost.losses import SmoothedNorm
    >>> check_convex_loss(SmoothedNorm(2))
    """
    random = np.random.default_rng(seed)
    problems = list(_declaration_problems(loss))
    if not problems:
        points = Points.of(loss, random)
        with np.errstate(all="ignore"):
            problems = list(_shape_problems(loss, points))
            if not problems:
                points = points.with_minima(loss)
                problems = [
                    *_difference_problems(loss, points, random),
                    *_convexity_problems(loss, points, random),
                    *_bound_problems(loss, points, random),
                    *_subspace_problems(loss, points),
                ]
    if problems:
        raise not_valid(loss, problems)


def _where(theta: FloatArray, record: FloatArray) -> str:
    texts = (", ".join(f"{entry:.6g}" for entry in vector[:6]) for vector in (theta, record))
    ends = (", …" * (len(vector) > 6) for vector in (theta, record))
    first, second = (f"({text}{end})" for text, end in zip(texts, ends, strict=True))
    return f"at theta={first}, record={second}"


def _declaration_problems(loss: ConvexLoss) -> Iterator[str]:
    d, across = loss.n_parameters, loss.gradient_dimension
    for name in ("max_gradient", "max_curvature", "parameter_scale"):
        value = getattr(loss, name)
        if not (np.isfinite(value) and value > 0.0):
            yield f"{name} must be finite and above 0, and is {value:g}"
            return
    if not 1 <= across <= d:
        yield f"gradient_dimension must be between 1 and n_parameters={d}, and is {across}"
    elif not 1 <= loss.rank <= across:
        # The columns of a Hessian are differences of gradients, in the limit.
        yield f"rank must be between 1 and gradient_dimension={across}, and is {loss.rank}"
    if loss.max_trace is not None and not 0.0 < loss.max_trace < np.inf:
        yield f"max_trace must be None or finite and above 0, and is {loss.max_trace:g}"
        return
    curve = loss.curve
    if curve.outputs != across or curve.rank != loss.rank:
        yield (
            f"the curve has outputs={curve.outputs} and rank={curve.rank}, the loss "
            f"gradient_dimension={across} and rank={loss.rank}"
        )
    if curve.sign_fixed:
        yield "the curve declares sign_fixed, which is for losses of a linear predictor: set it to False"
    if curve.max_slope < loss.max_gradient:
        yield f"the curve ends at max_slope={curve.max_slope:g}, below max_gradient={loss.max_gradient:g}"
    yield from curve_shape_problems(curve)


def _shape_problems(loss: ConvexLoss, points: Points) -> Iterator[str]:
    n, d = len(points.records), loss.n_parameters
    wanted: dict[str, tuple[int, ...]] = {"value": (n,), "gradient": (n, d)}
    wanted |= {"hessian": (n, d, d)} if loss.has_hessian else {"factor": (n, d, -1)}
    for what, shape in wanted.items():
        method: Callable[[FloatArray, FloatArray], FloatArray] = getattr(loss, what)
        for theta in points.thetas:
            array = np.asarray(method(theta, points.records))
            if array.ndim != len(shape) or any(
                s not in (t, -1) for s, t in zip(shape, array.shape, strict=True)
            ):
                yield f"the {what} of {n} records has shape {array.shape} and not {shape}"
                break
            if not np.all(np.isfinite(array)):
                bad = int(np.flatnonzero(~np.isfinite(array).reshape(n, -1).all(axis=1))[0])
                yield f"the {what} is not finite {_where(theta, points.records[bad])}"
                break
        else:
            theta = points.thetas[len(points.thetas) // 2]
            together = np.asarray(method(theta, points.records))
            for row in range(0, n, -(-n // _ALONE)):
                alone = np.asarray(method(theta, points.records[row : row + 1]))[0]
                if not np.allclose(
                    alone, together[row], rtol=1e-9, atol=1e-9 * (1.0 + np.abs(together).max())
                ):
                    yield f"the {what} of a record depends on the other records of its block"
                    break


def _difference_problems(loss: ConvexLoss, points: Points, random: np.random.Generator) -> Iterator[str]:
    records, step = points.records, _STEP * points.unit
    reach = float(np.max(np.linalg.norm(records[:, : loss.record_set.dimension], axis=1)))
    seen: set[str] = set()
    for theta in points.thetas:
        directions = random.normal(size=(2, loss.n_parameters))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        # Where parameters or records are long beside the step, the difference has lost digits.
        lost = 1e-14 * (float(np.linalg.norm(theta)) + reach) / step
        for direction in directions:
            after, before = theta + step * direction, theta - step * direction
            value = loss.value(theta, records)
            slope = (loss.value(after, records) - loss.value(before, records)) / (2.0 * step)
            bend = (loss.gradient(after, records) - loss.gradient(before, records)) / (2.0 * step)
            wrong = {
                "gradient": np.abs(slope - loss.gradient(theta, records) @ direction)
                > (_DIFFERENCE + lost) * loss.max_gradient + 1e-14 * np.abs(value) / step,
                "Hessian": np.max(np.abs(bend - loss.hessian(theta, records) @ direction), axis=1)
                > (_DIFFERENCE + lost) * loss.max_curvature,
            }
            for what, bad in wrong.items():
                if np.any(bad) and what not in seen:
                    seen.add(what)
                    place = _where(theta, records[int(np.flatnonzero(bad)[0])])
                    yield f"the {what} disagrees with finite differences {place}"


def _convexity_problems(loss: ConvexLoss, points: Points, random: np.random.Generator) -> Iterator[str]:
    records, largest = points.records, loss.max_curvature
    for theta in points.thetas if loss.has_hessian else ():
        hessian = loss.hessian(theta, records)
        skew = np.max(np.abs(hessian - np.swapaxes(hessian, 1, 2)), axis=(1, 2)) > SLACK * largest
        if np.any(skew):
            yield f"the Hessian is not symmetric {_where(theta, records[int(np.argmax(skew))])}"
            break
        smallest = np.linalg.eigvalsh(hessian)[:, 0]
        if np.any(smallest < -SLACK * largest):
            place = _where(theta, records[int(np.argmin(smallest))])
            yield f"it is not convex: the Hessian has a negative eigenvalue {place}"
            break
    for first, second in zip(points.thetas, random.permutation(points.thetas), strict=True):
        rise = (loss.gradient(first, records) - loss.gradient(second, records)) @ (first - second)
        room = SLACK * loss.max_gradient * float(np.linalg.norm(first - second))
        if np.any(rise < -room):
            other = ", ".join(f"{entry:.6g}" for entry in second[:6])
            place = _where(first, records[int(np.argmin(rise))])
            yield f"it is not convex: the gradient falls between theta=({other}) and the one {place}"
            break


def _bound_problems(loss: ConvexLoss, points: Points, random: np.random.Generator) -> Iterator[str]:
    curve, largest = loss.curve, loss.max_curvature

    def measures(theta: FloatArray, records: FloatArray) -> FloatArray:
        steep = np.linalg.norm(loss.gradient(theta, records), axis=1)
        values = np.linalg.eigvalsh(loss.hessian(theta, records))
        rank = np.sum(values > np.maximum(_RANK * values[:, -1:], 1e-12 * largest), axis=1)
        # By how much a log-determinant exceeds what the curve allows, at the worst regularisation.
        # A curve can be steep where the gradient is longest, so its rounding counts.
        about = (np.minimum(steep * (1.0 + sign * 1e-12), curve.max_slope) for sign in (-1.0, 1.0))
        allowed = curve.max_curvature_between(*about)[:, None] / (largest * _WEIGHTS)
        bent = np.log1p(np.maximum(values, 0.0)[:, :, None] / (largest * _WEIGHTS)).sum(axis=1)
        excess = np.max(bent - loss.rank * np.log1p(allowed), axis=1)
        return np.stack([steep, values[:, -1], values.sum(axis=1), rank, excess], axis=1)

    trace = np.inf if loss.max_trace is None else loss.max_trace
    bounds = (
        (loss.max_gradient, f"a gradient is longer than the declared max_gradient={loss.max_gradient:g}"),
        (largest, f"an eigenvalue of the Hessian exceeds the declared max_curvature={largest:g}"),
        (trace, f"the trace of the Hessian exceeds the declared max_trace={trace:g}"),
        (loss.rank, f"the Hessian has more than the declared rank={loss.rank}"),
        (1e-7, "a determinant exceeds what the declared curve allows"),
    )
    for (limit, text), (most, theta, record) in zip(bounds, climb(measures, points, random), strict=True):
        if most > limit * (1.0 + SLACK):
            yield f"{text} {_where(theta, record)}"


def _subspace_problems(loss: ConvexLoss, points: Points) -> Iterator[str]:
    for row in range(len(points.records)):
        record = points.records[row : row + 1]
        gradients = np.array([loss.gradient(theta, record)[0] for theta in points.thetas])
        sizes = np.linalg.svd(gradients, compute_uv=False)
        across = int(np.sum(sizes > 1e-7 * max(sizes[0], 1e-300)))
        if across > loss.gradient_dimension:
            declared = f"gradient_dimension={loss.gradient_dimension}"
            place = ", ".join(f"{entry:.6g}" for entry in record[0][:6])
            yield f"the gradients of one record span {across} dimensions, more than {declared}, at ({place})"
            return
