"""The law of a release from one of two neighbouring data sets, as a function of the objective's noise."""

from dataclasses import dataclass, field, replace

import numpy as np

from expost._common.typing import FloatArray
from expost.exceptions import SolverError
from expost.losses import AnyLoss, VectorLoss
from expost.losses.records import Lengths
from expost.privacy.scales import NoiseScales


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """The release of one of two neighbours, for a loss of one linear predictor or of several.

    The record is the last row; a person's rows are the last ones, as many as ``weights`` has numbers.
    ``counts`` says how often each row is in this data set, and how much each of hers counts; in the smaller
    of the two she is not. Coefficients are vectors of one or two numbers.
    """

    loss: AnyLoss
    rows: FloatArray
    labels: FloatArray
    counts: FloatArray
    epsilon: float
    l2: float
    scales: NoiseScales
    reduced: bool = False
    weights: FloatArray = field(default_factory=lambda: np.ones(1))

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return self.loss.outputs * int(self.rows.shape[1])

    def direction(self) -> FloatArray:
        """A unit vector along which the record's slope changes most: its gradient's where all is zero."""
        size = len(self.weights)
        slopes = self._derivatives(np.zeros((1, self.dimension)))[0][:, -size:]
        if self.loss.outputs == 1:
            slopes = np.where(slopes * slopes[:, -1:] < 0.0, -1.0, 1.0)
        along: FloatArray = self._gradient(slopes * self.weights[:, None], self.rows[-size:])[0]
        length = float(np.linalg.norm(along))
        return along / length if length > 0.0 else np.eye(self.dimension)[0]

    def _derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradients and Hessians of the loss in the predictors: points by rows by one or two predictors."""
        points, rows, outputs = len(theta), len(self.rows), self.loss.outputs
        eta = (theta.reshape(points * outputs, -1) @ self.rows.T).reshape(points, outputs, rows)
        if not isinstance(self.loss, VectorLoss):
            labels = np.broadcast_to(self.labels, (points, rows))
            loss = self.loss.for_rows(Lengths.of(self.rows))
            slopes, curvatures = loss.derivatives(eta[:, 0], labels)
            return slopes[:, :, None], curvatures[:, :, None, None]
        flat = np.swapaxes(eta, 1, 2).reshape(-1, outputs)
        loss = self.loss.for_rows(Lengths.of(np.tile(self.rows, (points, 1))))
        gradients, factors = loss.derivatives(flat, np.tile(self.labels, points))
        bends = factors @ np.swapaxes(factors, 1, 2)
        return gradients.reshape(points, rows, outputs), bends.reshape(points, rows, outputs, outputs)

    def _gradient(self, slopes: FloatArray, rows: FloatArray) -> FloatArray:
        """The sum over rows of the Kronecker products of slopes and rows."""
        flat = np.swapaxes(slopes, 1, 2).reshape(-1, len(rows))
        return (flat @ rows).reshape(len(slopes), -1)

    def _curvature(self, bends: FloatArray, rows: FloatArray) -> FloatArray:
        """The sum over rows of the Kronecker products of Hessians in the predictors and squares of rows."""
        points, d = len(bends), rows.shape[1]
        squares = (rows[:, :, None] * rows[:, None, :]).reshape(-1, d * d)
        flat = np.moveaxis(bends, 1, 3).reshape(-1, len(rows))
        blocks = (flat @ squares).reshape(points, self.loss.outputs, self.loss.outputs, d, d)
        return np.swapaxes(blocks, 2, 3).reshape(points, self.dimension, self.dimension)

    def _hessian(self, bends: FloatArray, counts: FloatArray) -> FloatArray:
        weighted = bends * counts[:, None, None]
        return self._curvature(weighted, self.rows) + self.l2 * np.eye(self.dimension)

    def _newton(self, theta: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The perturbed gradient, the Hessian, and the size below which the gradient counts as zero."""
        slopes, bends = self._derivatives(theta)
        pulls = slopes * self.counts[:, None]
        gradient = self._gradient(pulls, self.rows) + self.l2 * theta + noise
        hessian = self._hessian(bends, self.counts)
        # Many rows may cancel, in a slope or with each other, and an error in theta's last digit moves all.
        lengths = np.linalg.norm(self.rows, axis=1)
        rounding = np.sum(np.abs(pulls), axis=2) @ lengths
        rounding += min(self.loss.curve.max_slope, 1.0) * (self.counts @ lengths) / 16.0
        rounding += np.trace(hessian, axis1=1, axis2=2) * np.linalg.norm(theta, axis=1)
        return gradient, hessian, 1e-11 * self.scales.sigma + 1e-14 * rounding

    def minimisers(self, noise: FloatArray) -> FloatArray:
        """The coefficients at each row of ``noise``: Newton steps, shortened until the gradient falls."""
        theta = np.zeros_like(noise)
        step = np.ones(len(noise))
        gradient, hessian, tolerance = self._newton(theta, noise)
        for _ in range(500):
            left = np.flatnonzero(np.linalg.norm(gradient, axis=1) > tolerance)
            if left.size == 0:
                return theta
            direction = np.linalg.solve(hessian[left], gradient[left, :, None])[..., 0]
            trial = theta[left] - step[left, None] * direction
            found = self._newton(trial, noise[left])
            better = np.linalg.norm(found[0], axis=1) < np.linalg.norm(gradient[left], axis=1)
            step[left] = np.where(better, np.minimum(2.0 * step[left], 1.0), 0.5 * step[left])
            moved = left[better]
            theta[moved] = trial[better]
            gradient[moved], hessian[moved], tolerance[moved] = (part[better] for part in found)
        raise SolverError("A perturbed objective was not minimised to rounding error. Raise `l2`.")

    def at(self, noise: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        r"""Log-ratio less epsilon, shift of the statistics, gradient and log-determinant of the record.

        .. math:: L = \pm\log\det(I + \nabla^2\ell\,H(D)^{-1}) + \|\nabla\ell\|^2/2\sigma^2
                      \pm b\cdot\nabla\ell/\sigma^2

        with a plus where the data set that the noise :math:`b` was added to holds the record. The
        log-determinant is the largest that the regularisation allows.
        """
        size, weights = len(self.weights), self.weights[:, None]
        sign = 1.0 if np.any(self.counts[-size:]) else -1.0
        theta = self.minimisers(noise)
        slopes, bends = self._derivatives(theta)
        gradient = self._gradient(weights * slopes[:, -size:], self.rows[-size:])
        record = self._curvature(weights[..., None] * bends[:, -size:], self.rows[-size:])
        base = self._hessian(bends, np.append(self.counts[:-size], np.zeros(size)))
        ratio = sign * _log_determinant(np.asarray(np.linalg.solve(base, record), dtype=np.float64))
        ratio += np.sum(gradient * (gradient / 2.0 + sign * noise), axis=1) / self.scales.sigma**2
        lengths = np.linalg.norm(gradient, axis=1)
        norms = np.linalg.norm(record, axis=(1, 2))
        if self.reduced:  # what the record adds to the reduced Hessian of one feature, and to its eigenvalue
            assert isinstance(self.loss, VectorLoss)
            norms = np.zeros(len(theta))
            for weight, (row,), label in zip(
                self.weights, self.rows[-size:], self.labels[-size:], strict=True
            ):
                mass = self.loss.smallest_mass(row * theta, np.full(len(theta), label))
                norms += weight * row**2 * mass
        shift: FloatArray = replace(self.scales, sigma_eigenvalue=None).shift(lengths, norms)
        if self.scales.sigma_eigenvalue is not None:
            # The exact change of the eigenvalue; the certificate uses a bound on it.
            rise = norms
            if not self.reduced:
                rise = np.linalg.eigvalsh(base + record)[:, 0] - np.linalg.eigvalsh(base)[:, 0]
            shift = np.hypot(shift, rise / self.scales.sigma_eigenvalue)
        return ratio - self.epsilon, shift, gradient, _log_determinant(record / self.l2)


def _log_determinant(matrices: FloatArray) -> FloatArray:
    """The logarithm of ``det(I + N)`` for matrices of one or two rows, with digits however small they are."""
    trace = np.trace(matrices, axis1=1, axis2=2)
    total: FloatArray = np.log1p(trace + (np.linalg.det(matrices) if matrices.shape[1] == 2 else 0.0))
    return total
