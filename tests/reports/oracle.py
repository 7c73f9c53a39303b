"""The exact loss of a whole publication for each record, which the bounds must cover."""

import numpy as np
from problems import design_of, with_intercept

from expost import calibrate
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.losses import VectorLoss


class Problem:
    """A small table, some outsiders, and the private values that only a test may use."""

    def __init__(
        self,
        X,
        y,
        outsiders,
        loss,
        *,
        report=None,
        fit_intercept=True,
        weights=None,
        plan=None,
        **budget,
    ):
        self.loss, self.fit_intercept = loss, fit_intercept
        self.plan = plan or calibrate(loss=loss, report=report, fit_intercept=fit_intercept, **budget)
        self.X = {True: X[:outsiders], False: X[outsiders:]}
        self.y = {True: y[:outsiders], False: y[outsiders:]}
        self.weights = {True: None, False: None}
        if weights is not None:
            self.weights = {True: weights[:outsiders], False: weights[outsiders:]}
        self.design = {side: self.designed(self.X[side]) for side in (True, False)}

    def designed(self, X):
        return design_of(X, norm=self.plan.norm, fit_intercept=self.fit_intercept)

    def records(self, member):
        """The encoded records of that side."""
        return self.design[member].labelled(self.y[member], self.weights[member])

    def fit(self, seed):
        return perturb(self.plan, self.records(True), noise=SeededNoise(seed))

    def model_loss(self, private, *, member):
        """Signed log-odds of the coefficients, for every record of that side."""
        return ex_post_terms(private, self.records(member), self.loss, member=member).signed

    def total_loss(self, release, private, *, member):
        """Signed log-odds of the coefficients and of every statistic: Gaussian densities, by definition."""
        gradients, parts = self.derivatives(release.coefficients, member)
        sign = -1.0 if member else 1.0  # the neighbouring table has one record less or one more
        total = self.model_loss(private, member=member)
        plan = self.plan
        if release.gradient is not None:
            noise = release.gradient - private.gradient
            shift = sign * gradients
            total = total + (np.sum(shift**2, axis=1) - 2.0 * shift @ noise) / (2.0 * plan.sigma_gradient**2)
        if release.hessian is None:
            return total
        outer, matrix = sign * parts, self.measured(release, private)
        noise = release.hessian - matrix
        # tr(E²)/4σ₃² is the exponent of the GOE.
        square = np.sum(outer**2, axis=(1, 2)) - 2.0 * np.sum(outer * noise, axis=(1, 2))
        total = total + square / (4.0 * plan.sigma_hessian**2)
        if release.eigenvalue is not None:
            here = np.linalg.eigvalsh(matrix)[0]
            there = np.linalg.eigvalsh(matrix + outer)[:, 0]
            noise = release.eigenvalue - here
            square = (there - here) ** 2 - 2.0 * (there - here) * noise
            total = total + square / (2.0 * plan.sigma_eigenvalue**2)
        return total

    def derivatives(self, coefficients, member):
        """Gradients, and each record's part in the matrix that is measured, whole or reduced."""
        rows, y = with_intercept(self.X[member], self.fit_intercept), self.y[member]
        weights = np.ones(len(rows)) if self.weights[member] is None else self.weights[member]
        squares = weights[:, None, None] * rows[:, :, None] * rows[:, None, :]
        if not isinstance(self.loss, VectorLoss):
            slope, curvature = self.loss.derivatives(rows @ coefficients, y)
            return (weights * slope)[:, None] * rows, curvature[:, None, None] * squares
        eta = rows @ coefficients.reshape(self.loss.outputs, -1).T
        slopes, factor = self.loss.derivatives(eta, y)
        gradients = (weights[:, None] * slopes)[:, :, None] * rows[:, None, :]
        if self.plan.reduced:
            parts = self.loss.smallest_mass(eta, y)[:, None, None] * squares
        else:
            bends = factor @ np.swapaxes(factor, 1, 2)
            parts = np.stack([np.kron(bend, square) for bend, square in zip(bends, squares, strict=True)])
        return gradients.reshape(len(rows), -1), parts

    def measured(self, release, private):
        """The matrix of which the Hessian and the eigenvalue are statistics."""
        if not self.plan.reduced:
            return private.hessian
        parts = self.derivatives(release.coefficients, True)[1]
        return self.plan.l2 * np.eye(parts.shape[1]) + parts.sum(axis=0)
