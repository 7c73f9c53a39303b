"""Check numerically that a loss has the properties that it declares, whatever its kind."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from expost._common.typing import BoolArray, FloatArray
from expost.exceptions import LossError
from expost.losses import samples
from expost.losses.base import SLACK, DerivativeCurve
from expost.losses.convex import ConvexLoss
from expost.losses.samples import Sample
from expost.losses.vector import AnyLoss

# The step of a finite difference in units of the parameters, its error, and that of the numbers in it.
_STEP, _ERROR, _DIGITS = 1e-5, 1e-5, 1e-14
# The linear predictors there may be, records that are evaluated once more on their own, and steps of a search
# for a largest value.
_MOST_PREDICTORS, _ALONE, _SEARCH_STEPS = 256, 5, 80
# Regularisations at which determinants are compared, in units of β.
_L2 = np.logspace(-3, 3, 7)


def check_loss(loss: AnyLoss) -> None:
    """Verify a loss numerically; one LossError lists everything that is wrong with it, and where.

    Looked at are labels across the whole set, up to 1e4 where it has no end, and linear predictors up to
    1e4 from zero and from the label. Everything must be finite and depend on no other record, the second
    derivative must not be negative, and both derivatives must agree with finite differences. The curve must
    bound every slope and the curvature at it, rise to its peak and fall after it, and have
    ``curvature(m) / m**2`` non-increasing. The label must fix the sign of the slope where the loss says so.
    The accountant relies on each of these. Where ``curvature(m) / m`` rises, the loss is valid, and its
    reports get more noise (:attr:`expost.losses.base.DerivativeCurve.ratio_falls`).

    A loss of several linear predictors is checked at predictors of lengths up to 1e4 in directions along the
    axes and drawn from a fixed seed: its gradients in the place of slopes, the eigenvalues of its Hessians in
    the place of curvatures, and their ranks as well. A loss that declares the gradients and Hessians of a
    softmax loss (:class:`~expost.losses.softmax_curve.SoftmaxCurve`) must have none but these, or smaller
    Hessians. Directions are samples: a bound that fails only between them is not found.

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
    sample, near = samples.one_predictor(loss) if loss.along_row else samples.several_predictors(loss)
    along_axes = partial(_differences, lambda: np.eye(loss.outputs))
    with np.errstate(all="ignore"):
        _refuse(loss, _found([sample], _shapes))
        _refuse(loss, [*_found([sample], _company), *_found([near], along_axes), *_found([sample], _curve)])


def check_convex_loss(loss: ConvexLoss, *, seed: int = 0) -> None:
    """Verify a convex loss numerically; one LossError lists everything that is wrong with it, and where.

    Records are drawn from all of the declared set and of the label set. Parameters are drawn at distances up
    to ten thousand times the one over which a gradient can change, and where single records have their
    minimum; from the largest value found of each bounded quantity, random steps look for a larger one. What
    is declared must fit together. Everything must be finite and depend on no other record, and derivatives
    must agree with finite differences. Hessians must be symmetric and have no negative eigenvalue, and
    gradients be monotone between distant parameters. Gradients, eigenvalues, traces, ranks and the dimension
    of one record's gradients must stay within what is declared, and the curve bound every determinant.

    These are samples, and other seeds look at other places: a bound that fails only between them is not
    found. Prove the bounds.

    Privacy
    -------
    Needs no table.

    Examples
    --------
    >>> from expost.losses import SmoothedNorm
    >>> check_convex_loss(SmoothedNorm(2))
    """
    random = np.random.default_rng(seed)
    _refuse(loss, _declaration_problems(loss))
    sample, thetas = samples.convex_sample(loss, random)
    with np.errstate(all="ignore"):
        _refuse(loss, _found(sample.at_each(thetas), _shapes))
        problems = [*_found(sample.at_each(thetas[[len(thetas) // 2]]), _company)]
        thetas = np.concatenate([thetas, samples.minima(sample)])
        drawn = partial(samples.rays, random, loss.n_parameters, np.ones(1), axes=0, drawn=2)
        for look in (partial(_differences, drawn), _hessians):
            problems += _found(sample.at_each(thetas), look)
        for further in (_monotonicity_problems, _bound_problems, _subspace_problems):
            problems += further(sample, thetas, random)
        _refuse(loss, problems)


def _refuse(loss: object, problems: Iterable[str]) -> None:
    """Raise the error that lists what is wrong with a loss, where anything is."""
    if found := "; ".join(problems):
        raise LossError(f"{type(loss).__name__} is not a valid loss: {found}.")


_Findings = Iterator[tuple[str, BoolArray | None]]
"""What may be wrong, and with which records; None where it is wrong and no single record shows it."""


def _found(looked_at: Iterable[Sample], look: Callable[[Sample], _Findings]) -> Iterator[str]:
    """Everything that is wrong with samples, each with the first record that shows it."""
    found: set[str] = set()
    for sample in looked_at:
        for text, bad in look(sample):
            if text not in found and (bad is None or np.any(bad)):
                found.add(text)
                yield text if bad is None else f"{text} {sample.where(bad)}"


def _shapes(sample: Sample) -> _Findings:
    n, d = len(sample.records), sample.at.shape[-1]
    first, second = ((n,), (n,)) if sample.loss.along_row else ((n, d), (n, d, d))
    for (what, array), wanted in zip(sample.parts.items(), ((n,), first, second), strict=True):
        if what == "factor":  # which may have any number of columns
            wanted = (n, d, (*array.shape, 0, 0)[2])
        if array.shape != wanted:
            yield f"the {what} has shape {array.shape} for {n} records of {d} parameters", None
        else:
            yield f"the {what} is not finite", np.any(~np.isfinite(array.reshape(n, -1)), axis=1)


def _company(sample: Sample) -> _Findings:
    """Evaluate some records once more, without the others."""
    rows = range(0, len(sample.records), -(-len(sample.records) // _ALONE))
    for what, name in zip(("value", *sample.words), ("value", "gradient", "hessian"), strict=True):
        together = getattr(sample, name)
        alone = np.concatenate([getattr(sample.only(row), name) for row in rows])
        if not np.allclose(alone, together[rows], rtol=1e-9, atol=1e-9 * (1.0 + np.abs(together).max())):
            yield f"the {what} of a record depends on the other records of its block", None


def _differences(directions: Callable[[], FloatArray], sample: Sample) -> _Findings:
    """Compare derivatives with central differences along some directions."""
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
            yield f"the {what} disagrees with finite differences", size > 2.0 * step * most


def _curve(sample: Sample) -> _Findings:
    loss, curve, y = sample.loss, sample.loss.curve, sample.records
    if loss.along_row:
        yield "it is not convex: the second derivative is negative", sample.hessian[:, 0, 0] < 0.0
    if curve.outputs != loss.outputs:
        yield f"the curve has outputs={curve.outputs}, the loss {loss.outputs}", None
    longer = "the slope exceeds" if loss.along_row else "the gradient is longer than"
    steep = sample.steepness > curve.max_slope * (1.0 + SLACK)
    yield f"{longer} the declared max_slope={curve.max_slope:g}", steep
    if curve.sign_fixed:
        yield from _fixed_sign(sample)
    for text in curve.shape_problems():
        yield text, None
    if curve.outputs == loss.outputs:
        yield from curve.record_problems(sample.gradient, sample.hessian, y)
    yield f"the Hessian has more than the declared rank={curve.rank}", sample.rank() > curve.rank


def _fixed_sign(sample: Sample) -> _Findings:
    if not sample.loss.along_row:
        yield "the curve declares sign_fixed, which is for one linear predictor only: set it to False", None
        return
    for label in np.unique(sample.records):
        slopes = sample.gradient[sample.records == label]
        if np.unique(np.sign(slopes[slopes != 0.0])).size > 1:
            yield f"the sign of the slope is declared fixed but changes for y={label:g}", None


def _declaration_problems(loss: ConvexLoss) -> Iterator[str]:
    sizes = {name: getattr(loss, name) for name in ("max_gradient", "max_curvature", "parameter_scale")}
    if loss.max_trace is not None:
        sizes["max_trace"] = loss.max_trace
    for name, value in sizes.items():
        if not 0.0 < value < np.inf:
            none = "None or " * (name == "max_trace")
            yield f"{name} must be {none}finite and above 0, and is {value:g}"
            return
    d, across, rank, curve = loss.n_parameters, loss.gradient_dimension, loss.rank, loss.curve
    inside = 1 <= across <= d
    problems = {
        f"gradient_dimension must be between 1 and n_parameters={d}, and is {across}": not inside,
        # The columns of a Hessian are differences of gradients, in the limit.
        f"rank must be between 1 and gradient_dimension={across}, and is {rank}": inside
        and not 1 <= rank <= across,
        f"the curve has outputs={curve.outputs} and rank={curve.rank}, the loss "
        f"gradient_dimension={across} and rank={rank}": (curve.outputs, curve.rank) != (across, rank),
        "the curve declares sign_fixed, which is for losses of a linear predictor: set it to False": (
            curve.sign_fixed
        ),
        f"the curve ends at max_slope={curve.max_slope:g}, below max_gradient={loss.max_gradient:g}": (
            curve.max_slope < loss.max_gradient
        ),
    }
    yield from (text for text, holds in problems.items() if holds)
    yield from curve.shape_problems()


def _hessians(sample: Sample) -> _Findings:
    if not sample.loss.has_hessian:
        return
    hessian, least = sample.hessian, SLACK * sample.units[1]
    lopsided = np.max(np.abs(hessian - np.swapaxes(hessian, 1, 2)), axis=(1, 2)) > least
    yield "the Hessian is not symmetric", lopsided
    yield "it is not convex: the Hessian has a negative eigenvalue", sample.eigenvalues[:, 0] < -least


def _monotonicity_problems(start: Sample, thetas: FloatArray, random: np.random.Generator) -> Iterator[str]:
    others = random.permutation(thetas)
    for sample, other in zip(start.at_each(thetas), start.at_each(others), strict=True):
        apart = sample.at - other.at
        rise = (sample.gradient - other.gradient) @ apart
        if np.any(bad := rise < -SLACK * sample.units[0] * float(np.linalg.norm(apart))):
            between = f"between theta={samples.listed(other.at)} and the one {sample.where(bad)}"
            yield f"it is not convex: the gradient falls {between}"
            return


def _bound_problems(start: Sample, thetas: FloatArray, random: np.random.Generator) -> Iterator[str]:
    loss, curve, largest = start.loss, start.loss.curve, start.loss.max_curvature

    def measures(sample: Sample) -> FloatArray:
        steep, values = sample.steepness, sample.eigenvalues
        # By how much a log-determinant exceeds what the curve allows, at the worst regularisation.
        # A curve can be steep where the gradient is longest, so its rounding counts.
        about = [np.minimum(steep * (1.0 + sign * 1e-12), curve.max_slope) for sign in (-1.0, 1.0)]
        allowed = curve.max_curvature_between(*about)[:, None] / (largest * _L2)
        bent = np.log1p(np.maximum(values, 0.0)[:, :, None] / (largest * _L2)).sum(axis=1)
        excess = np.max(bent - loss.rank * np.log1p(allowed), axis=1)
        rank = sample.rank(1e-12 * largest)
        beyond = (values[:, -1] - curve.largest_eigenvalue(*about)) / largest
        return np.stack([steep, values[:, -1], values.sum(axis=1), rank, excess, beyond], axis=1)

    trace = np.inf if loss.max_trace is None else loss.max_trace
    bounds = (
        (loss.max_gradient, f"a gradient is longer than the declared max_gradient={loss.max_gradient:g}"),
        (largest, f"an eigenvalue of the Hessian exceeds the declared max_curvature={largest:g}"),
        (trace, f"the trace of the Hessian exceeds the declared max_trace={trace:g}"),
        (loss.rank, f"the Hessian has more than the declared rank={loss.rank}"),
        (1e-7, "a determinant exceeds what the declared curve allows"),
        (1e-7, "an eigenvalue of the Hessian exceeds the curve, which then needs an `eigenvalue`,"),
    )
    seen = np.array([measures(sample) for sample in start.at_each(thetas)])
    for column, (limit, text) in enumerate(bounds):
        place, row = np.unravel_index(int(np.argmax(seen[:, :, column])), seen.shape[:2])
        most, best = float(seen[place, row, column]), start.moved(thetas[place]).only(int(row))
        # From the largest that was seen, random steps of many lengths look for a larger one.
        for length in np.repeat(np.logspace(1, -3, _SEARCH_STEPS // 4), 4) * best.unit:
            tried = best.moved(length * random.normal(size=len(best.at)) / np.sqrt(len(best.at)))
            if (value := float(measures(tried)[0, column])) > most:
                most, best = value, tried
        if most > limit * (1.0 + SLACK):
            yield f"{text} {best.where(np.ones(1, dtype=bool))}"


def _subspace_problems(start: Sample, thetas: FloatArray, random: np.random.Generator) -> Iterator[str]:
    declared = start.loss.gradient_dimension
    gradients = np.array([sample.gradient for sample in start.at_each(thetas)])
    sizes = np.linalg.svd(np.swapaxes(gradients, 0, 1), compute_uv=False)
    across = np.sum(sizes > 1e-7 * np.maximum(sizes[:, :1], 1e-300), axis=1)
    if np.any(bad := across > declared):
        row = int(np.argmax(bad))
        yield (
            f"the gradients of one record span {across[row]} dimensions, more than "
            f"gradient_dimension={declared}, at {samples.listed(start.records[row])}"
        )
