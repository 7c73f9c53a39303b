"""The law of a release from one of two neighbouring data sets, as a function of the objective's noise."""

from dataclasses import dataclass, replace

import numpy as np

from expost._common.typing import FloatArray
from expost.exceptions import SolverError
from expost.losses import Loss
from expost.privacy.scales import NoiseScales


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """The release of one of two neighbours, in coordinates whose first axis points along the record.

    The record is the last row. ``counts`` says how often each row is in this data set, and
    ``base_counts`` how often it is in the smaller of the two.
    """

    loss: Loss
    rows: FloatArray
    labels: FloatArray
    counts: FloatArray
    base_counts: FloatArray
    epsilon: float
    l2: float
    scales: NoiseScales

    @property
    def sigma(self) -> float:
        """The noise of the objective."""
        return self.scales.sigma

    def _derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        eta = theta @ self.rows.T
        return self.loss.derivatives(eta, np.broadcast_to(self.labels, eta.shape))

    def _hessian(self, curvatures: FloatArray) -> FloatArray:
        d = self.rows.shape[1]
        squares = (self.rows[:, :, None] * self.rows[:, None, :]).reshape(-1, d * d)
        return (curvatures @ squares).reshape(-1, d, d) + self.l2 * np.eye(d)

    def _newton(self, theta: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The perturbed gradient, the Hessian, and the size below which the gradient counts as zero."""
        slopes, curvatures = self._derivatives(theta)
        pulls = slopes * self.counts
        gradient = pulls @ self.rows + self.l2 * theta + noise
        hessian = self._hessian(curvatures * self.counts)
        # Many rows may cancel, in a slope or with each other, and an error in theta's last digit moves all.
        lengths = np.linalg.norm(self.rows, axis=1)
        rounding = (
            np.abs(pulls) @ lengths + min(self.loss.curve.max_slope, 1.0) * (self.counts @ lengths) / 16.0
        )
        rounding += np.trace(hessian, axis1=1, axis2=2) * np.linalg.norm(theta, axis=1)
        return gradient, hessian, 1e-11 * self.sigma + 1e-14 * rounding

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
        r"""Log-ratio less epsilon, shift of the statistics, slope and log-determinant of the record.

        .. math:: L = \pm\log(1 + \kappa\,x^\top H(D)^{-1}x) + \|\nabla\ell\|^2/2\sigma^2
                      \pm b\cdot\nabla\ell/\sigma^2

        with a plus where the data set that the noise :math:`b` was added to holds the record.
        """
        sign = 1.0 if self.counts[-1] else -1.0
        length = self.rows[-1, 0]
        slopes, curvatures = self._derivatives(self.minimisers(noise))
        gradient, curvature = slopes[:, -1] * length, curvatures[:, -1] * length**2
        base = self._hessian(curvatures * self.base_counts)
        first_axis = np.eye(base.shape[-1])[:, :1]
        inverse = np.linalg.solve(base, np.broadcast_to(first_axis, (*base.shape[:-1], 1)))[:, 0, 0]
        ratio = sign * np.log1p(curvature * inverse)
        ratio += gradient * (gradient / 2.0 + sign * noise[:, 0]) / self.sigma**2
        shift = replace(self.scales, sigma_eigenvalue=None).shift(gradient, curvature)
        if self.scales.sigma_eigenvalue is not None:
            # The exact change of the eigenvalue; the certificate uses a bound on it.
            grown = base + curvature[:, None, None] * (first_axis @ first_axis.T)
            rise = np.linalg.eigvalsh(grown)[:, 0] - np.linalg.eigvalsh(base)[:, 0]
            shift = np.hypot(shift, rise / self.scales.sigma_eigenvalue)
        return ratio - self.epsilon, shift, slopes[:, -1], np.log1p(curvature / self.l2)
