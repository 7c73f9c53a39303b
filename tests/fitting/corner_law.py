"""The law of a minimiser with corners, by its formula written out once more, and by integration."""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

from expost.losses.corners import Corners

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True)
class Law:
    """Logistic regression of few rows, some of them one person's, without an intercept."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    sigma: float
    l2: float
    corners: Corners

    def without(self, rows):
        kept = ~np.isin(np.arange(len(self.y)), rows)
        return Law(self.X[kept], self.y[kept], self.weights[kept], self.sigma, self.l2, self.corners)

    def gradient(self, theta):
        slopes = self.weights * (expit(theta @ self.X.T) - self.y)
        return slopes @ self.X + self.l2 * theta

    def hessian(self, theta):
        p = expit(theta @ self.X.T)
        rows = np.einsum("...i,ij,ik->...jk", self.weights * p * (1.0 - p), self.X, self.X)
        return rows + self.l2 * np.eye(self.X.shape[1])

    def log_density(self, theta):
        """On the face of each point: Lebesgue measure in free coordinates, atoms in the others."""
        gradient, hessian = self.gradient(theta), self.hessian(theta)
        below, above = self.corners.slopes(theta)
        at = below < above
        with np.errstate(invalid="ignore"):
            free = -0.5 * ((gradient + below) / self.sigma) ** 2 - np.log(self.sigma * np.sqrt(2.0 * np.pi))
        low, high = (-gradient - above) / self.sigma, (-gradient - below) / self.sigma
        # In the tail that has digits.
        low, high = np.where(low + high > 0.0, -high, low), np.where(low + high > 0.0, -low, high)
        with np.errstate(divide="ignore"):
            atom = log_ndtr(high) + np.log1p(-np.exp(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0)))
        block = np.where(at[..., :, None] | at[..., None, :], np.eye(theta.shape[-1]), hessian)
        return np.sum(np.where(at, atom, free), axis=-1) + np.linalg.slogdet(block)[1]

    def faces(self, panels, reach=9.0):
        """All faces, as points and weights of a quadrature rule that has nearly all of the mass."""
        zero = np.zeros(self.X.shape[1])
        far = (np.linalg.norm(self.gradient(zero)) + reach * self.sigma + self.corners.l1.max()) / self.l2
        lines = []
        for kinks in np.array(self.corners.kinks).T:
            inner = sorted({kink for kink in kinks if np.isfinite(kink)})
            low, high = (
                end if np.isfinite(end) else sign * far for end, sign in zip(kinks[::2], (-1, 1), strict=True)
            )
            edges = sorted({low, *inner, high})
            pieces = [(np.array([kink]), np.ones(1)) for kink in inner]
            lines.append(pieces + [rule(a, b, panels) for a, b in itertools.pairwise(edges)])
        for face in itertools.product(*lines):
            points = np.stack(np.meshgrid(*(points for points, _ in face), indexing="ij"), axis=-1)
            weights = np.prod(np.meshgrid(*(weights for _, weights in face), indexing="ij"), axis=0)
            yield points.reshape(-1, len(face)), weights.ravel()


def rule(low, high, panels):
    edges = np.linspace(low, high, panels + 1)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (NODES + 1.0)).ravel(), (half * WEIGHTS).ravel()


def corners_of(kind, dimension, rng, l1):
    """The kinds of corners of the tests: an L1 penalty, a box, signs, or everything mixed."""
    low, high = np.full(dimension, -np.inf), np.full(dimension, np.inf)
    if kind == "l1":
        return Corners.of(l1, low, high, intercept=False)
    if kind == "box":
        ends = rng.uniform(0.2, 1.0, size=(2, dimension))
        return Corners.of(0.0, -ends[0], ends[1], intercept=False)
    if kind == "signs":
        up = rng.random(dimension) < 0.5
        return Corners.of(0.0, np.where(up, 0.0, low), np.where(up, high, 0.0), intercept=False)
    low[0], high[-1] = -0.3, 0.4
    return Corners.of(l1, low, high, intercept=False)


KINDS = ("l1", "box", "signs", "mixed")


def law_of(seed, kind, *, dimension=2, rows=6, sigma=2.0, l2=1.5, people=False):
    """A law of a random table; with people, weights of one half or a third for the first rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, dimension))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    weights = np.ones(rows)
    if people:
        weights[: 1 + seed % 3] = 1.0 / (1 + seed % 3)
    y = rng.integers(0, 2, rows).astype(float)
    return Law(X, y, weights, sigma, l2, corners_of(kind, dimension, rng, 0.5 * sigma))


def cell_probability(law, place, kink, low, high):
    """That the coefficient at ``place`` of two is on a kink and the other one in a cell, from the noise."""
    other = 1 - place

    def noise(t):
        theta = np.full((len(t), 2), kink)
        theta[:, other] = t
        below, _ = law.corners.slopes(theta)
        return -(law.gradient(theta)[:, other] + below[:, other]), theta

    # For each noise of the free coordinate its value is found by bisection: it falls as the noise rises.
    b, weights = rule(*sorted(noise(np.array([low, high]))[0]), 6)
    a, c = np.full(len(b), low), np.full(len(b), high)
    for _ in range(55):
        middle = 0.5 * (a + c)
        above = noise(middle)[0] > b
        a, c = np.where(above, middle, a), np.where(above, c, middle)
    theta = noise(0.5 * (a + c))[1]
    below, above = (slopes[:, place] for slopes in law.corners.slopes(theta))
    gradient = law.gradient(theta)[:, place]
    inside = ndtr((-gradient - below) / law.sigma) - ndtr((-gradient - above) / law.sigma)
    return weights @ (np.exp(-0.5 * (b / law.sigma) ** 2) / (law.sigma * np.sqrt(2.0 * np.pi)) * inside)
