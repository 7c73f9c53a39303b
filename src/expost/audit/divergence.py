"""The hockey-stick divergence of two neighbouring data sets, by integration over the noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.audit.release_law import ReleaseLaw
from expost.exceptions import DomainError
from expost.losses import AnyLoss
from expost.privacy import gaussian
from expost.privacy.scales import NoiseScales

# A cell is an interval in one column, and each column is a separate integral: columns, lower and upper ends.
Columns: TypeAlias = NDArray[np.intp]
Cells: TypeAlias = tuple[Columns, FloatArray, FloatArray]

_TOLERANCE = 1e-9  # of one cell, relative to the integral of its column
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def even_cells(reach: float, number: int, columns: int) -> Cells:
    """Cells of equal width over ``[-reach, reach]``, the same number in every column."""
    edges = np.linspace(-reach, reach, number + 1)
    column = np.repeat(np.arange(columns), number)
    return column, np.tile(edges[:-1], columns), np.tile(edges[1:], columns)


def cut(at: Callable[[Columns, FloatArray], tuple[FloatArray, ...]], cells: Cells) -> Cells:
    """Cut cells until slope and log-determinant change little in each, then at the roots of the excess.

    With little regularisation a slope goes from flat to steep within a very small part of the noise's range.
    It is monotone, and the log-determinant rises and falls once, so the ends of a cell show what is inside.
    """
    column, low, high = cells
    done: list[Cells] = []
    largest = 0.0
    for _ in range(12):
        _, _, slope, log_determinant = at(column, np.stack([low, high], axis=1))
        largest = max(largest, float(np.max(np.abs(slope))))
        uneven = np.abs(np.diff(slope)[:, 0]) > 0.1 * largest
        uneven |= np.abs(np.diff(log_determinant)[:, 0]) > 0.2
        done.append((column[~uneven], low[~uneven], high[~uneven]))
        grid = np.linspace(low[uneven], high[uneven], 5, axis=1)
        column, low, high = np.repeat(column[uneven], 4), grid[:, :-1].ravel(), grid[:, 1:].ravel()
        if low.size == 0:
            break
    done.append((column, low, high))
    column, low, high = (np.concatenate(part) for part in zip(*done, strict=True))

    positive = at(column, np.stack([low, high], axis=1))[0] > 0.0
    kinked = np.flatnonzero(positive[:, 0] != positive[:, 1])
    left, right = low[kinked], high[kinked]
    for _ in range(4 if kinked.size else 0):  # each round narrows the bracket sixteenfold
        grid = np.linspace(left, right, 17, axis=1)
        switched = (at(column[kinked], grid)[0] > 0.0) == positive[kinked, 1:]
        first = np.maximum(np.argmax(switched, axis=1), 1)[:, None]
        left, right = (np.take_along_axis(grid, first - back, axis=1)[:, 0] for back in (1, 0))
    return _balanced(*_split((column, low, high), kinked, left, right))


def _split(cells: Cells, places: NDArray[Any], left: FloatArray, right: FloatArray) -> Cells:
    """Cut the cells in these places in three, at ``left`` and ``right``."""
    column, low, high = cells
    top = high[places]
    high[places] = left
    column = np.append(column, np.tile(column[places], 2))
    return column, np.concatenate([low, left, right]), np.concatenate([high, right, top])


def _balanced(column: Columns, low: FloatArray, high: FloatArray) -> Cells:
    """Cut cells next to much smaller ones: a change may continue before the wide cell's first node."""
    for _ in range(12):
        order = np.lexsort((low, column))
        column, low, high = column[order], low[order], high[order]
        width = high - low
        smaller = np.where(column[1:] == column[:-1], np.minimum(width[1:], width[:-1]), math.inf)
        wide = width > 8.0 * np.minimum(np.append(smaller, math.inf), np.append(math.inf, smaller))
        if not wide.any():
            break
        ends = width[wide] / 8.0
        column, low, high = _split((column, low, high), wide, low[wide] + ends, high[wide] - ends)
    return column, low, high


def integrate(
    function: Callable[[Columns, FloatArray], FloatArray], cells: Cells, columns: int
) -> tuple[FloatArray, FloatArray]:
    """Integrate over the cells of each column, halving those that still change; values and errors."""

    def quadrature(column: Columns, low: FloatArray, high: FloatArray) -> FloatArray:
        radius = (high - low)[:, None] / 2.0
        values = function(column, (low + high)[:, None] / 2.0 + radius * _NODES)
        return (radius * values) @ _WEIGHTS

    column, low, high = cells
    coarse = quadrature(column, low, high)
    value, error = np.zeros(columns), np.zeros(columns)
    for depth in range(20):
        middle = (low + high) / 2.0
        halves = np.tile(column, 2), np.concatenate([low, middle]), np.concatenate([middle, high])
        parts = quadrature(*halves)
        fine = parts.reshape(2, -1).sum(axis=0)
        gap = np.abs(fine - coarse)
        estimate = value + np.bincount(column, fine, columns)
        settled = (gap <= _TOLERANCE * estimate[column]) | (depth == 19)
        value += np.bincount(column[settled], fine[settled], columns)
        error += np.bincount(column[settled], gap[settled], columns)
        if settled.all():
            break
        again = np.tile(~settled, 2)
        column, low, high = halves[0][again], halves[1][again], halves[2][again]
        coarse = parts[again]
    return value, error


_REACH = 10.0  # in standard deviations; leaving out the mass beyond, below 2e-23, can only lower a result


@dataclass(frozen=True)
class Audit:
    r"""Hockey-stick divergences of one pair of neighbours.

    ``remove`` is :math:`H_\epsilon(P_{D+z} \| P_D)`, ``add`` is :math:`H_\epsilon(P_D \| P_{D+z})`, and
    ``error`` estimates how far the quadrature of either may be off.

    Privacy
    -------
    As private as the pair: of invented neighbours it is public.
    """

    add: float
    remove: float
    error: float

    @property
    def delta(self) -> float:
        """The larger divergence less its error: no valid guarantee claims a smaller delta."""
        return max(0.0, max(self.add, self.remove) - self.error)


def hockey_stick(
    loss: AnyLoss,
    X: ArrayLike,
    y: ArrayLike,
    record: ArrayLike,
    label: ArrayLike,
    *,
    epsilon: float,
    sigma: float,
    l2: float,
    sigma_gradient: float | None = None,
    sigma_hessian: float | None = None,
    sigma_eigenvalue: float | None = None,
    sigma_recalibration: float | None = None,
    counts: ArrayLike | None = None,
    reduced: bool = False,
    weights: ArrayLike | None = None,
) -> Audit:
    r"""How well the whole publication tells a data set from the same data set with one more record or person.

    .. math:: H_\epsilon(P\|Q) = \int (p - e^\epsilon q)_+
              = \mathrm{E}_b\left[\delta_G(\epsilon - L(\hat\theta_b);\, \Delta(\hat\theta_b))\right],
              \quad b \sim N(0, \sigma^2 I)

    ``L`` is the log-ratio of the two densities of the coefficients. Given these, the noisy statistics
    are a Gaussian mechanism with profile :math:`\delta_G` and whitened shift

    .. math:: \Delta^2 = \|\nabla\ell\|^2/\sigma_2^2 + \|\nabla^2\ell\|_F^2/2\sigma_3^2
              + (\lambda_{\min}(H(D{+}z)) - \lambda_{\min}(H(D)))^2/\sigma_4^2.

    Either divergence is a lower bound on the delta of every valid guarantee at this epsilon.

    Parameters
    ----------
    loss
        The loss of a record, of one linear predictor or of two: softmax has two with three classes.
    X, y
        Rows and labels of the smaller data set, which may be empty. There is one feature or, with one linear
        predictor, there may be two.
    record, label
        The additional record of the larger data set, or the rows of a person and the label of each.
    epsilon, l2
        Where to evaluate the divergence, and the regularisation :math:`\lambda`.
    sigma, sigma_gradient, sigma_hessian, sigma_eigenvalue, sigma_recalibration
        Scales :math:`\sigma, \sigma_2, \sigma_3, \sigma_4` of the objective's noise and of the statistics;
        ``None`` where one is not released.
    counts
        How often each row of ``X`` is in the data set; once if not given.
    reduced
        Whether the Hessian of three classes, and its eigenvalue, are the reduced ones
        (:class:`~expost.privacy.softmax_profile.SoftmaxProfile`).
    weights
        How much each row of the person counts; by default all alike, and together as one.

    Notes
    -----
    The integral is over the noise, by adaptive Gauss-Legendre quadrature. ``error`` is the change under the
    last halving of the cells plus one part in a billion for rounding: an estimate, usually much larger than
    the true error, and not a proof.

    Privacy
    -------
    Output is private if the rows are: it is computed from them without noise. Use made-up rows.

    Examples
    --------
    >>> from expost import LogisticLoss
    >>> audit = hockey_stick(LogisticLoss(), np.empty((0, 1)), [], [1.0], 1.0, epsilon=1.0, sigma=1.0, l2=1.0)
    >>> print(f"{audit.add:.6f} {audit.remove:.6f}")
    0.048696 0.000000
    """
    rows, labels = np.asarray(X, float), np.asarray(y, float)
    person = np.atleast_2d(np.asarray(record, float))
    shares = np.full(len(person), 1.0 / len(person)) if weights is None else np.asarray(weights, float)
    repeats = np.ones(len(labels)) if counts is None else np.asarray(counts, float)
    if person.ndim != 2 or not 1 <= person.shape[1] <= most_features(loss):
        wanted = "a vector of length 1 or 2, and of length 1 with two linear predictors"
        raise parameter_error("record", wanted, np.asarray(record).tolist())
    if reduced and loss.outputs == 1:
        raise parameter_error("reduced", "False with one linear predictor", reduced)
    hers = np.ravel(np.asarray(label, float))
    _check_records(loss, rows, labels, repeats, person, hers, shares)
    labels = np.append(labels, hers)
    statistics = (sigma_gradient, sigma_hessian, sigma_eigenvalue, sigma_recalibration)
    without = ReleaseLaw(
        loss,
        rows=np.vstack([rows, person]),
        labels=labels,
        counts=np.append(repeats, np.zeros(len(person))),
        epsilon=check_positive("epsilon", epsilon),
        l2=check_positive("l2", l2),
        # A statistic with infinite noise is not released.
        scales=NoiseScales(sigma, *(None if scale == math.inf else scale for scale in statistics)),
        reduced=reduced,
        weights=shares,
    )
    add, add_error = _divergence(without)
    remove, remove_error = _divergence(replace(without, counts=np.append(repeats, shares)))
    return Audit(add, remove, max(add_error, remove_error) + 1e-9 * max(add, remove))


def _check_records(
    loss: AnyLoss,
    rows: FloatArray,
    labels: FloatArray,
    repeats: FloatArray,
    person: FloatArray,
    hers: FloatArray,
    shares: FloatArray,
) -> None:
    if labels.ndim != 1 or rows.shape != (len(labels), person.shape[1]) or repeats.shape != labels.shape:
        raise DomainError("`X`, `y`, `record` and `counts` do not have matching shapes.")
    if len(hers) != len(person) or shares.shape != hers.shape or not np.all(shares >= 0.0):
        raise DomainError("`label` and `weights` must be one number for each row of `record`.")
    if not (np.all(loss.labels.contains(np.append(labels, hers))) and np.all(np.isfinite(rows))):
        raise DomainError(f"Rows must be finite and labels in {loss.labels}.")
    if not np.all((repeats >= 1.0) & (repeats == np.floor(repeats))):
        raise DomainError("`counts` must be whole numbers of at least 1.")


def most_features(loss: AnyLoss) -> int:
    """How many features an audit can have: integrals are over one or two coefficients."""
    outputs = loss.outputs
    if outputs > 2:
        raise parameter_error(
            "loss", "one of at most two linear predictors (three classes)", f"one of {outputs}"
        )
    return 2 // outputs


def _density(u: FloatArray) -> FloatArray:
    return np.exp(-0.5 * u**2) / math.sqrt(2.0 * math.pi)


def _divergence(law: ReleaseLaw) -> tuple[float, float]:
    """Hockey-stick divergence to the neighbour, and the estimated error."""
    if law.dimension == 1:
        values, errors = _along(law, np.zeros(1))
        return min(1.0, float(values[0])), float(errors[0])
    worst = 0.0

    def across(_: Columns, u: FloatArray) -> FloatArray:
        nonlocal worst
        values, errors = _along(law, u.ravel())
        density = _density(u)
        worst = max(worst, float(np.max(density.ravel() * errors)))
        return density * values.reshape(u.shape)

    (value,), (error,) = integrate(across, even_cells(_REACH, 5, 1), 1)
    return min(1.0, float(value)), float(error + 2.0 * _REACH * worst)


def _along(law: ReleaseLaw, across: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrals along the record's direction, one for each coordinate ``across`` it (unused in one)."""
    along = law.direction()
    axes = along[None] if law.dimension == 1 else np.stack([along, [-along[1], along[0]]])

    def at(column: Columns, u: FloatArray) -> tuple[FloatArray, ...]:
        coordinates = np.stack([u, np.broadcast_to(across[column][:, None], u.shape)], axis=-1)
        noise = law.scales.sigma * coordinates[..., : law.dimension].reshape(-1, law.dimension) @ axes
        excess, shift, gradient, log_determinant = law.at(noise)
        return tuple(part.reshape(u.shape) for part in (excess, shift, gradient @ along, log_determinant))

    def integrand(column: Columns, u: FloatArray) -> FloatArray:
        excess, shift, _, _ = at(column, u)
        return _density(u) * gaussian.delta(-excess, sensitivity=shift, sigma=1.0)

    return integrate(integrand, cut(at, even_cells(_REACH, 10, len(across))), len(across))
