"""Check numerically that a loss has the properties that it declares, whatever its kind."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.exceptions import LossError
from expost.losses.base import SLACK, DerivativeCurve, LabelSet
from expost.losses.convex import ConvexLoss
from expost.losses.vector import AnyLoss

# The step of a finite difference in units of the parameters, its error, and that of the numbers in it.
_STEP, _ERROR, _DIGITS = 1e-5, 1e-5, 1e-14
# Records that are evaluated once more on their own.
_ALONE = 5
# Distances of labels from zero and from the ends of their set.
_LABELS = np.concatenate([[0.0], np.logspace(-3, 4, 15)])
# For one predictor, distances from zero and from the label.
_PREDICTORS = np.concatenate([[0.0], np.logspace(-6, np.log10(50.0), 120), [1e3, 1e4]])
# For several, lengths of vectors of predictors, and how many directions are tried for each, at each label.
_LENGTHS = np.concatenate([[0.0], np.logspace(-3, 2, 11), [1e3, 1e4]])
_DIRECTIONS = 24
# The numbers in all Hessians at once, the labels and axes that are tried, and the predictors there may be.
_MOST_NUMBERS, _MOST_LABELS, _MOST_AXES, _MOST_PREDICTORS = 3_000_000, 12, 8, 256
# Where differences of predictors are accurate, and a shift off the places of kinks.
_NEAR, _SHIFT = 12.0, 0.0371
# For any convex loss, lengths of parameters in units of ξ/β, the distance over which a gradient can change by
# all of its size, and how many directions and records are drawn.
_CONVEX_LENGTHS = np.array([0.0, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4])
_CONVEX_DIRECTIONS, _CONVEX_RECORDS = 4, 24
# Records whose own minimum is looked for and steps towards it, and steps of a search for a largest value.
_OWN, _NEWTON_STEPS, _SEARCH_STEPS = 8, 40, 80
# Eigenvalues of a matrix of d rows take about d³ operations: these in all, for a least number of vectors.
_WORK, _FEWEST = 1e9, 30
# Regularisations at which determinants are compared, in units of β.
_L2 = np.logspace(-3, 3, 7)


def check_loss(loss: AnyLoss) -> None:
    """Verify a loss numerically; one error lists everything that is wrong with it.

    Checked on a grid of labels across the whole label set (both ends, between them, and up to 1e4 where there
    is no end) and of linear predictors up to 1e4 from zero and from the label: that everything is finite, and
    depends on no other record; that the second derivative is nowhere negative (convexity); that both
    derivatives agree with finite differences; that the derivative curve really is an upper bound (no slope
    above ``max_slope``, no curvature above the curve at its slope), rises to its peak and falls after it, and
    has ``curvature(m) / m**2`` non-increasing; and that the label fixes the sign of the slope where the loss
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
        _refuse(loss, [f"it has {loss.outputs} linear predictors, and may have 1 to {_MOST_PREDICTORS}"])
    if loss.along_row and not isinstance(loss.curve, DerivativeCurve):
        _refuse(loss, ["its curve must be a DerivativeCurve"])
    sample, near = _one_predictor(loss) if loss.along_row else _several_predictors(loss)
    with np.errstate(all="ignore"):
        _refuse(loss, [*_shape_problems([sample])])
        problems = [*_company_problems(sample), *_difference_problems([near], lambda: np.eye(loss.outputs))]
        _refuse(loss, [*problems, *_curve_problems(sample)])


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

    These are samples, and other seeds look at other places: a bound that fails only between them is not
    found. Prove the bounds.

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
    _refuse(loss, [*_declaration_problems(loss)])
    points = _Points.of(loss, random)
    with np.errstate(all="ignore"):
        _refuse(loss, [*_shape_problems(points)])
        problems = [*_company_problems(points.sample(points.thetas[len(points.thetas) // 2]))]
        points = points.with_minima()
        drawn = partial(_rays, random, loss.n_parameters, np.ones(1), axes=0, drawn=2)
        problems += _difference_problems(points, drawn)
        problems += [*_convexity_problems(points, random), *_bound_problems(points, random)]
        _refuse(loss, [*problems, *_subspace_problems(points)])


def _refuse(loss: object, problems: list[str]) -> None:
    """Raise the error that lists what is wrong with a loss, where anything is."""
    if problems:
        raise LossError(f"{type(loss).__name__} is not a valid loss: " + "; ".join(problems) + ".")


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some records at parameters, of any convex loss or of one of linear predictors and labels."""

    loss: Any
    at: FloatArray
    """One vector for all records, or a vector of predictors for each."""
    records: FloatArray
    units: tuple[float, float] = (1.0, 1.0)
    """The size of a gradient, and that of a Hessian."""

    @cached_property
    def parts(self) -> dict[str, FloatArray]:
        """What the loss itself computes: values, first and second derivatives."""
        loss, at = self.loss, self.at
        if isinstance(loss, ConvexLoss):
            names = ["value", "gradient", "hessian" if loss.has_hessian else "factor"]
            return {name: np.asarray(getattr(loss, name)(at, self.records)) for name in names}
        eta = at[:, 0] if loss.along_row else at
        arrays = loss.value(eta, self.records), *loss.derivatives(eta, self.records)
        return dict(zip(("value", *self.words), map(np.asarray, arrays), strict=True))

    @property
    def words(self) -> tuple[str, str]:
        """What the loss calls its derivatives."""
        if self.loss.along_row:
            return "first derivative", "second derivative"
        return "gradient", "Hessian" if isinstance(self.loss, ConvexLoss) else "factor"

    @property
    def value(self) -> FloatArray:
        return self.parts["value"]

    @cached_property
    def gradient(self) -> FloatArray:
        return [*self.parts.values()][1].reshape(len(self.records), -1)

    @cached_property
    def hessian(self) -> FloatArray:
        second = [*self.parts.values()][2]
        if "factor" in self.parts:
            return np.asarray(second @ np.swapaxes(second, 1, 2))
        return second.reshape(*self.gradient.shape, -1)

    @cached_property
    def steepness(self) -> FloatArray:
        return np.asarray(np.linalg.norm(self.gradient, axis=1))

    @cached_property
    def eigenvalues(self) -> FloatArray:
        return np.asarray(np.linalg.eigvalsh(self.hessian), dtype=float)

    def rank(self, least: float = 0.0) -> FloatArray:
        """How many eigenvalues are neither rounding nor below ``least``."""
        values = self.eigenvalues
        return np.asarray(np.sum(values > np.maximum(SLACK * values[:, -1:], least), axis=1))

    @property
    def unit(self) -> float:
        """The distance over which a gradient can change by all of its size."""
        return self.units[0] / self.units[1]

    def moved(self, shift: FloatArray) -> Self:
        return replace(self, at=self.at + shift)

    def only(self, row: int) -> Self:
        at = self.at if self.at.ndim == 1 else self.at[row : row + 1]
        return replace(self, at=at, records=self.records[row : row + 1])

    def where(self, bad: BoolArray) -> str:
        """The first of the records that are marked, in words."""
        one = self.only(int(np.flatnonzero(bad)[0]))
        names = ("theta", "record") if self.at.ndim == 1 else ("eta", "y")
        return f"at {names[0]}={_listed(one.at)}, {names[1]}={_listed(one.records)}"


def _listed(numbers: FloatArray) -> str:
    entries = [f"{entry:.6g}" for entry in numbers.flat]
    return entries[0] if len(entries) == 1 else f"({', '.join(entries[:6])}{', …' * (len(entries) > 6)})"


def _rays(
    random: np.random.Generator, dimension: int, lengths: FloatArray, *, axes: int, drawn: int
) -> FloatArray:
    """Vectors of all lengths along the first axes, both ways, and in random directions."""
    ends, spread = np.eye(dimension)[:axes], random.normal(size=(drawn, dimension))
    directions = np.concatenate([ends, -ends, spread / np.linalg.norm(spread, axis=1)[:, None]])
    return np.asarray((lengths[:, None, None] * directions).reshape(-1, dimension))


def _labels_across(labels: LabelSet) -> FloatArray:
    """Labels across the whole set: its ends, between them, and far out where it has no end."""
    if labels.values is not None:
        return np.array(labels.values)
    ends = [end for end in (labels.low, labels.high) if np.isfinite(end)]
    y = np.concatenate([place + sign * _LABELS for place in (0.0, *ends) for sign in (-1.0, 1.0)])
    if len(ends) == 2:
        y = np.concatenate([y, np.linspace(ends[0], ends[1], 25)])
    return np.unique(y[labels.contains(y)])


def _one_predictor(loss: AnyLoss) -> tuple[_Sample, _Sample]:
    """Where a loss of one predictor is looked at, and where its differences are."""
    labels = _labels_across(loss.labels)

    def crossed(distances: FloatArray) -> _Sample:
        """Predictors at these distances from zero and from the label, to both sides, for every label."""
        signed = np.unique(np.concatenate([-distances, distances]))
        eta = np.stack(np.broadcast_arrays(signed, labels[:, None] + signed), axis=1)
        return _Sample(loss, eta.reshape(-1, 1), np.repeat(labels, 2 * len(signed)))

    return crossed(_PREDICTORS), crossed(np.linspace(0.0, _NEAR, 121) + _SHIFT)


def _several_predictors(loss: AnyLoss) -> tuple[_Sample, _Sample]:
    """Where a loss of several is looked at; of many points a sample, so that memory stays small."""
    random = np.random.default_rng(0)
    points = _rays(random, loss.outputs, _LENGTHS, axes=_MOST_AXES, drawn=_DIRECTIONS)
    labels = _labels_across(loss.labels)
    labels = labels[np.unique(np.linspace(0, len(labels) - 1, _MOST_LABELS).astype(int))]
    eta, y = np.tile(points, (len(labels), 1)), np.repeat(labels, len(points))
    most = max(len(labels), _MOST_NUMBERS // (loss.outputs + 1) ** 2)
    kept = np.sort(random.permutation(len(y))[:most])
    eta, y = eta[kept], y[kept]
    close = np.linalg.norm(eta, axis=1) <= _NEAR
    return _Sample(loss, eta, y), _Sample(loss, eta[close] + _SHIFT, y[close])


@dataclass(frozen=True, eq=False)
class _Points:
    """Parameters, one vector a row, and records, every one of which is looked at with every vector."""

    loss: ConvexLoss
    thetas: FloatArray
    records: FloatArray

    @classmethod
    def of(cls, loss: ConvexLoss, random: np.random.Generator) -> "_Points":
        """Records across the set with labels across theirs, and parameters of all lengths."""
        d, unit = loss.n_parameters, loss.max_gradient / loss.max_curvature
        rows, labels = loss.record_set.draw(random, _CONVEX_RECORDS), _labels_across(loss.labels)
        if len(labels):
            chosen = np.resize(labels, max(len(rows), len(labels)))
            rows = np.resize(rows, (len(chosen), rows.shape[1]))
            rows = np.column_stack([rows, random.permutation(chosen)])
        lengths = np.concatenate([unit * _CONVEX_LENGTHS, loss.parameter_scale * _CONVEX_LENGTHS[3:6]])
        thetas = _rays(random, d, lengths, axes=_CONVEX_DIRECTIONS, drawn=_CONVEX_DIRECTIONS)
        thetas = random.permutation(np.unique(thetas, axis=0))
        most = max(_FEWEST, int(_WORK / (len(rows) * d**3)))
        return cls(loss, np.concatenate([np.zeros((1, d)), thetas[: most - 1]]), rows)

    def __iter__(self) -> Iterator[_Sample]:
        return map(self.sample, self.thetas)  # made anew each time: all Hessians together may be too many

    def sample(self, theta: FloatArray) -> _Sample:
        return _Sample(self.loss, theta, self.records, (self.loss.max_gradient, self.loss.max_curvature))

    def with_minima(self) -> "_Points":
        """Also the places where single records have their minimum: there curvature is often largest."""
        rows = np.unique(np.linspace(0, len(self.records) - 1, _OWN).astype(int))
        own = [_minimum(self.sample(np.zeros(self.thetas.shape[1])).only(row)) for row in rows.tolist()]
        return replace(self, thetas=np.concatenate([self.thetas, np.array(own)]))


def _minimum(one: _Sample) -> FloatArray:
    """Close to the minimum of one record's loss, by damped Newton steps."""
    ridge, longest = 1e-6 * one.units[1] * np.eye(len(one.at)), one.unit
    for _ in range(_NEWTON_STEPS):
        step = -np.linalg.lstsq(one.hessian[0] + ridge, one.gradient[0], rcond=None)[0]
        length = float(np.linalg.norm(step))
        if not np.isfinite(length) or length <= 1e-12 * longest:
            break
        one = one.moved(step * min(1.0, longest / length))
    return one.at


def _shape_problems(samples: Iterable[_Sample]) -> Iterator[str]:
    wrong: set[str] = set()
    for sample in samples:
        n, d = len(sample.records), sample.at.shape[-1]
        first, second = ((n,), (n,)) if sample.loss.along_row else ((n, d), (n, d, d))
        for (what, array), wanted in zip(sample.parts.items(), ((n,), first, second), strict=True):
            problem = ""
            if what == "factor":  # which may have any number of columns
                wanted = (n, d, (*array.shape, 0, 0)[2])
            if array.shape != wanted:
                problem = f"has shape {array.shape} for {n} records of {d} parameters"
            elif np.any(bad := np.any(~np.isfinite(array.reshape(n, -1)), axis=1)):
                problem = f"is not finite {sample.where(bad)}"
            if problem and what not in wrong:
                wrong.add(what)
                yield f"the {what} {problem}"


def _company_problems(sample: _Sample) -> Iterator[str]:
    """Evaluate some records once more, without the others."""
    rows = range(0, len(sample.records), -(-len(sample.records) // _ALONE))
    for what, name in zip(("value", *sample.words), ("value", "gradient", "hessian"), strict=True):
        together = getattr(sample, name)
        alone = np.concatenate([getattr(sample.only(row), name) for row in rows])
        if not np.allclose(alone, together[rows], rtol=1e-9, atol=1e-9 * (1.0 + np.abs(together).max())):
            yield f"the {what} of a record depends on the other records of its block"


def _difference_problems(samples: Iterable[_Sample], directions: Callable[[], FloatArray]) -> Iterator[str]:
    """Compare derivatives with central differences along some directions."""
    wrong: set[str] = set()
    for sample in samples:
        step = _STEP * sample.unit
        rounding = _DIGITS / step
        # Where parameters or records are long compared with the step, the difference has lost digits.
        records = sample.records.reshape(len(sample.records), -1)
        reach = np.linalg.norm(sample.at, axis=-1) + np.linalg.norm(records, axis=1)
        bent, value = np.linalg.norm(sample.hessian, axis=(1, 2)), np.abs(sample.value)
        room = (
            (_ERROR + rounding * reach) * (sample.units[0] + sample.steepness) + rounding * value,
            (_ERROR + rounding * reach) * (sample.units[1] + bent) + rounding * sample.steepness,
        )
        for direction in directions():
            after, before = (sample.moved(sign * step * direction) for sign in (1.0, -1.0))
            # Far from zero the step itself is rounded, so what is compared is the step that was taken.
            taken = np.broadcast_to(after.at - before.at, sample.gradient.shape)
            slope = after.value - before.value - np.vecdot(sample.gradient, taken)
            bend = after.gradient - before.gradient - np.einsum("ijk,ik->ij", sample.hessian, taken)
            off = np.abs(slope), np.max(np.abs(bend), axis=1)
            for what, size, most in zip(sample.words, off, room, strict=True):
                if what not in wrong and np.any(bad := size > 2.0 * step * most):
                    wrong.add(what)
                    yield f"the {what} disagrees with finite differences {sample.where(bad)}"


def _curve_problems(sample: _Sample) -> Iterator[str]:
    loss, curve, y = sample.loss, sample.loss.curve, sample.records
    if loss.along_row and np.any(bad := sample.hessian[:, 0, 0] < 0.0):
        yield f"it is not convex: the second derivative is negative {sample.where(bad)}"
    if curve.outputs != loss.outputs:
        yield f"the curve has outputs={curve.outputs}, the loss {loss.outputs}"
    if np.any(bad := sample.steepness > curve.max_slope * (1.0 + SLACK)):
        what = "the slope exceeds" if loss.along_row else "the gradient is longer than"
        yield f"{what} the declared max_slope={curve.max_slope:g} {sample.where(bad)}"
    if curve.sign_fixed and not loss.along_row:
        yield "the curve declares sign_fixed, which is for one linear predictor only: set it to False"
    for label in np.unique(y) if curve.sign_fixed and loss.along_row else ():
        slopes = sample.gradient[y == label]
        if np.unique(np.sign(slopes[slopes != 0.0])).size > 1:
            yield f"the sign of the slope is declared fixed but changes for y={label:g}"
    yield from curve.shape_problems()
    if curve.outputs == loss.outputs:
        for text, bad in curve.record_problems(sample.gradient, sample.hessian, y):
            yield f"{text} {sample.where(bad)}"
    if np.any(bad := sample.rank() > curve.rank):
        yield f"the Hessian has more than the declared rank={curve.rank} {sample.where(bad)}"


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
    yield from curve.shape_problems()


def _convexity_problems(points: _Points, random: np.random.Generator) -> Iterator[str]:
    loss = points.loss
    for sample in points if loss.has_hessian else ():
        hessian, least = sample.hessian, SLACK * loss.max_curvature
        if np.any(bad := np.max(np.abs(hessian - np.swapaxes(hessian, 1, 2)), axis=(1, 2)) > least):
            yield f"the Hessian is not symmetric {sample.where(bad)}"
            break
        if np.any(bad := sample.eigenvalues[:, 0] < -least):
            yield f"it is not convex: the Hessian has a negative eigenvalue {sample.where(bad)}"
            break
    for sample, theta in zip(points, random.permutation(points.thetas), strict=True):
        apart = sample.at - theta
        rise = (sample.gradient - points.sample(theta).gradient) @ apart
        if np.any(bad := rise < -SLACK * loss.max_gradient * float(np.linalg.norm(apart))):
            between = f"between theta={_listed(theta)} and the one {sample.where(bad)}"
            yield f"it is not convex: the gradient falls {between}"
            break


def _bound_problems(points: _Points, random: np.random.Generator) -> Iterator[str]:
    loss, curve, largest = points.loss, points.loss.curve, points.loss.max_curvature

    def measures(sample: _Sample) -> FloatArray:
        steep, values = sample.steepness, sample.eigenvalues
        # By how much a log-determinant exceeds what the curve allows, at the worst regularisation.
        # A curve can be steep where the gradient is longest, so its rounding counts.
        about = (np.minimum(steep * (1.0 + sign * 1e-12), curve.max_slope) for sign in (-1.0, 1.0))
        allowed = curve.max_curvature_between(*about)[:, None] / (largest * _L2)
        bent = np.log1p(np.maximum(values, 0.0)[:, :, None] / (largest * _L2)).sum(axis=1)
        excess = np.max(bent - loss.rank * np.log1p(allowed), axis=1)
        rank = sample.rank(1e-12 * largest)
        return np.stack([steep, values[:, -1], values.sum(axis=1), rank, excess], axis=1)

    trace = np.inf if loss.max_trace is None else loss.max_trace
    bounds = (
        (loss.max_gradient, f"a gradient is longer than the declared max_gradient={loss.max_gradient:g}"),
        (largest, f"an eigenvalue of the Hessian exceeds the declared max_curvature={largest:g}"),
        (trace, f"the trace of the Hessian exceeds the declared max_trace={trace:g}"),
        (loss.rank, f"the Hessian has more than the declared rank={loss.rank}"),
        (1e-7, "a determinant exceeds what the declared curve allows"),
    )
    seen = np.array([measures(sample) for sample in points])
    for column, (limit, text) in enumerate(bounds):
        place, row = np.unravel_index(int(np.argmax(seen[:, :, column])), seen.shape[:2])
        most, best = float(seen[place, row, column]), points.sample(points.thetas[place]).only(int(row))
        # From the largest that was seen, random steps of many lengths look for a larger one.
        for length in np.repeat(np.logspace(1, -3, _SEARCH_STEPS // 4), 4) * best.unit:
            tried = best.moved(length * random.normal(size=len(best.at)) / np.sqrt(len(best.at)))
            if (value := float(measures(tried)[0, column])) > most:
                most, best = value, tried
        if most > limit * (1.0 + SLACK):
            yield f"{text} {best.where(np.ones(1, dtype=bool))}"


def _subspace_problems(points: _Points) -> Iterator[str]:
    declared = points.loss.gradient_dimension
    gradients = np.array([sample.gradient for sample in points])
    sizes = np.linalg.svd(np.swapaxes(gradients, 0, 1), compute_uv=False)
    across = np.sum(sizes > 1e-7 * np.maximum(sizes[:, :1], 1e-300), axis=1)
    if np.any(bad := across > declared):
        row = int(np.argmax(bad))
        yield (
            f"the gradients of one record span {across[row]} dimensions, more than "
            f"gradient_dimension={declared}, at {_listed(points.records[row])}"
        )
