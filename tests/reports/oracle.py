"""The exact loss of a whole publication for each record, which the bounds must cover."""

import numpy as np
from problems import design_of, with_intercept

from expost import calibrate
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise


class Problem:
    """A small table, some outsiders, and the private values that only a test may use."""

    def __init__(
        self,
        X,
        y,
        outsiders,
        loss,
        *,
        report,
        regularizer=None,
        fit_intercept=True,
        weights=None,
        **budget,
    ):
        self.loss, self.regularizer, self.fit_intercept = loss, regularizer, fit_intercept
        self.plan = calibrate(loss=loss, report=report, fit_intercept=fit_intercept, **budget)
        self.X = {True: X[:outsiders], False: X[outsiders:]}
        self.y = {True: y[:outsiders], False: y[outsiders:]}
        self.weights = {True: None, False: None}
        if weights is not None:
            self.weights = {True: weights[:outsiders], False: weights[outsiders:]}
        self.design = {side: self.designed(self.X[side]) for side in (True, False)}

    def designed(self, X):
        return design_of(X, norm=self.plan.norm, fit_intercept=self.fit_intercept)

    def fit(self, seed):
        return perturb(
            self.plan,
            self.design[True],
            self.y[True],
            noise=SeededNoise(seed),
            regularizer=self.regularizer,
            weights=self.weights[True],
        )

    def model_loss(self, private, *, member):
        """Signed log-odds of the coefficients, for every record of that side."""
        return ex_post_terms(
            private,
            self.design[member],
            self.y[member],
            self.loss,
            member=member,
            weights=self.weights[member],
        ).signed

    def total_loss(self, release, private, *, member):
        """Signed log-odds of the coefficients and of every statistic: Gaussian densities, by definition."""
        rows = with_intercept(self.X[member], self.fit_intercept)
        slope, curvature = self.loss.derivatives(rows @ release.coefficients, self.y[member])
        if self.weights[member] is not None:
            slope, curvature = self.weights[member] * slope, self.weights[member] * curvature
        sign = -1.0 if member else 1.0  # the neighbouring table has one record less or one more
        total = self.model_loss(private, member=member)
        plan = self.plan
        if release.gradient is not None:
            noise = release.gradient - private.gradient
            shift = sign * slope[:, None] * rows
            total = total + (np.sum(shift**2, axis=1) - 2.0 * shift @ noise) / (2.0 * plan.sigma_gradient**2)
        outer = sign * curvature[:, None, None] * rows[:, :, None] * rows[:, None, :]
        if release.hessian is not None:
            noise = release.hessian - private.hessian
            # tr(E²)/4σ₃² is the exponent of the GOE.
            square = np.sum(outer**2, axis=(1, 2)) - 2.0 * np.sum(outer * noise, axis=(1, 2))
            total = total + square / (4.0 * plan.sigma_hessian**2)
        if release.eigenvalue is not None:
            here = np.linalg.eigvalsh(private.hessian)[0]
            there = np.linalg.eigvalsh(private.hessian + outer)[:, 0]
            noise = release.eigenvalue - here
            square = (there - here) ** 2 - 2.0 * (there - here) * noise
            total = total + square / (2.0 * plan.sigma_eigenvalue**2)
        return total
