"""Small tables of every awkward kind, and the truth about them in many digits."""

from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np

from expost._common import kernels
from expost.data.blocks import Block
from expost.data.design import Design
from expost.fitting.certified.bound import ExactProblem
from expost.losses import (
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    PseudoHuber,
    SmoothedHinge,
    SmoothedPinball,
    SquaredLoss,
)
from expost.losses.records import Lengths

DIGITS = 70


@dataclass(frozen=True)
class RowBlocks:
    """A table whose blocks are in memory, read in one part; in compiled code where a pass has some."""

    blocks: list

    def sweep(self, work):
        if kernels.library() is None or not getattr(work, "compiles", False):
            return [work(iter(self.blocks))]
        # So far beyond every row that none is scaled.
        design = Design(self.blocks[0][0].shape[1] if self.blocks else 1, 1e300, intercept=False)
        return [work.compiled(design.raw(Block(*block) for block in self.blocks))]


@dataclass
class Table:
    name: str
    X: np.ndarray
    y: np.ndarray
    loss: object
    l2: float
    radius: float
    tilt: tuple
    weights: np.ndarray | None = None

    def problem(self, block=300):
        n = len(self.y)
        blocks = [
            (
                np.ascontiguousarray(self.X[i : i + block]),
                self.y[i : i + block],
                None if self.weights is None else self.weights[i : i + block],
            )
            for i in range(0, n, block)
        ]
        return ExactProblem(
            RowBlocks(blocks),
            self.loss,
            self.l2,
            self.radius,
            self.tilt,
            max_weight=1.0 if self.weights is None else float(self.weights.max(initial=1e-9)),
        )

    def derivatives(self, w):
        """Slopes and curvatures in doubles."""
        slope, curvature = self.loss.for_rows(Lengths.of(self.X)).derivatives(self.X @ w, self.y)
        weights = 1.0 if self.weights is None else self.weights
        return weights * slope, weights * curvature


def tilt(random, sigma, d):
    step = 2.0 ** (np.floor(np.log2(sigma)) - 40)
    return np.rint(random.normal(0, sigma / step, d)) * step, random.normal(0, sigma * 2.0**-29, d)


def into_ball(X, radius):
    lengths = np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-13)
    return X * np.minimum(1.0, radius / np.where(lengths > 0, lengths, 1.0))


def labels_for(random, loss, eta):
    n = len(eta)
    if isinstance(loss, LogisticLoss):
        return (
            random.uniform(size=n) if loss.soft else (random.uniform(size=n) < 0.5 + 0.4 * np.tanh(eta)) * 1.0
        )
    if isinstance(loss, SmoothedHinge):
        return np.where(random.uniform(size=n) < 0.5 + 0.4 * np.tanh(eta), 1.0, -1.0)
    if loss.log_link:
        return np.minimum(random.gamma(2.0, 0.5, n) * np.exp(np.clip(eta, -3.0, 3.0)), loss.labels.high)
    return eta + random.normal(size=n)


LOSSES = [
    LogisticLoss(),
    LogisticLoss(soft=True),
    LogisticLoss(cap=0.6, corner=0.75),
    SmoothedHinge(),
    SmoothedHinge(0.05),
    PseudoHuber(),
    PseudoHuber(0.1),
    SquaredLoss(),
    LogisticLoss(cap=0.6, corner=0.75, gradient_cap=0.3),
    PseudoHuber(0.1, gradient_cap=0.1),
    SmoothedPinball(0.9, 0.05),
    BoundedPoisson(2.0, 0.8),
    BoundedGamma(0.5),
]


def random_table(seed):
    random = np.random.default_rng(seed)
    n, d = int(random.integers(1, 40)), int(random.integers(1, 6))
    loss = LOSSES[seed % len(LOSSES)]
    radius = float(2.0 ** random.uniform(-3, 3))
    X = into_ball(random.normal(size=(n, d)) * radius, radius)
    l2 = float(radius**2 * 10 ** random.uniform(-2, 1))
    sigma = float(radius * 10 ** random.uniform(-1, 1.5))
    y = labels_for(random, loss, X @ random.normal(size=d) * 3)
    return Table(f"random {seed}", X, y, loss, l2, radius, tilt(random, sigma, d))


def weighted_table(seed):
    """A random table whose weights differ by many orders of magnitude; some are zero."""
    random = np.random.default_rng([seed, 1])
    table = random_table(seed)
    n = len(table.y)
    weights = 10.0 ** random.uniform(-3, 3, n)
    weights[random.uniform(size=n) < 0.2] = 0.0
    weights[random.uniform(size=n) < 0.1] = 1e-300
    return replace(table, name=f"weighted {seed}", weights=weights)


def adversarial_tables():
    random = np.random.default_rng(5)
    logistic = LogisticLoss()

    def make(name, X, y, loss=logistic, l2=2.112, radius=1.0, sigma=4.225):
        return Table(name, X, y, loss, l2, radius, tilt(random, sigma, X.shape[1]))

    one = into_ball(random.normal(size=(1, 4)), 1.0)
    many = into_ball(random.normal(size=(200, 4)), 1.0)
    yes = (random.uniform(size=200) < 0.5) * 1.0
    direction = np.array([1.0, -1.0, 0.5, 0.2])
    yield make("one row", one, np.ones(1))
    yield make("one row of 200 columns", into_ball(random.normal(size=(1, 200)), 1.0), np.zeros(1))
    yield make("more columns than rows", into_ball(random.normal(size=(20, 30)), 1.0), yes[:20])
    yield make("identical rows", np.repeat(one, 300, axis=0), np.ones(300))
    yield make("identical rows, mixed labels", np.repeat(one, 200, axis=0), yes)
    yield make("separable", many, (many @ direction > 0) * 1.0, l2=1e-3)
    yield make(
        "nearly dependent columns", np.c_[many[:, :2] * 0.5, many[:, :1] * 0.5 * (1 + 1e-9)], yes, l2=1e-2
    )
    yield make("rows of 1e-300", many * 1e-300, yes)
    yield make("rows of 1e-30, radius too", many * 1e-30, yes, radius=1e-30, l2=1e-60, sigma=4e-30)
    yield make("rows of 1e30", many * 1e30 * (1 - 1e-12), yes, radius=1e30, l2=2e60, sigma=4e30)
    yield make("mixed sizes", many * 10.0 ** random.uniform(-30, 0, (200, 1)), yes)
    yield make("penalty 1e30", many, yes, l2=1e30)
    yield make("penalty 1e-6", many, yes, l2=1e-6)
    yield make("sigma 1e-12", many, yes, sigma=1e-12)
    yield make("sigma 1e12", many, yes, sigma=1e12)
    yield make("sharp corner", many, yes, loss=LogisticLoss(cap=0.7, corner=1 - 1e-5), sigma=1e3)
    yield make("zero rows", np.zeros((5, 3)), np.ones(5))
    yield make("hinge, sharp", many, 2 * yes - 1, loss=SmoothedHinge(1e-3))
    yield make("pseudo-Huber, far labels", many, random.normal(size=200) * 1e8, loss=PseudoHuber(0.2))
    yield make("squared, huge labels", many, random.normal(size=200) * 1e30, loss=SquaredLoss())
    yield make("squared, labels of 1e300", many, random.normal(size=200) * 1e300, loss=SquaredLoss())
    yield make("pseudo-Huber, labels of 1e300", many, random.normal(size=200) * 1e300, loss=PseudoHuber(0.3))
    yield make("pinball, far labels", many, random.normal(size=200) * 1e8, loss=SmoothedPinball(0.3, 1e-3))
    yield make("Poisson, far predictors", many, 8.0 * yes, loss=BoundedPoisson(8.0, 0.1), sigma=1e4)
    yield make("Gamma, far predictors", many, 1e15 * yes, loss=BoundedGamma(0.1), sigma=1e4)
    yield make("no rows", np.zeros((0, 3)), np.ones(0))
    yield make(
        "squared, ill conditioned",
        np.c_[many[:, :2] * 0.5, many[:, :1] * 0.5 * (1 + 1e-9)],
        yes,
        loss=SquaredLoss(),
        l2=1e-20,
    )
    yield make("binary columns", (random.uniform(size=(200, 4)) < 0.01) * 0.5, yes)


def of_row(loss, row):
    """The loss that a row has where caps follow its length, from the formula."""
    most, cap = getattr(loss, "gradient_cap", None), getattr(loss, "cap", getattr(loss, "threshold", None))
    if most is None:
        return loss
    length = float(np.linalg.norm(row))
    share = 16.0 if length == 0.0 else mp.mpf(most) / mp.mpf(cap) / length
    factor = float(mp.mpf(2) ** (max(mp.floor(64 * mp.log(share, 2)), 0) / mp.mpf(64)))
    if isinstance(loss, PseudoHuber):
        return PseudoHuber(cap * min(factor, 16.0))
    return LogisticLoss() if cap * factor >= 1.0 else LogisticLoss(cap=cap * factor, corner=loss.corner)


def derivatives(loss, eta, y):
    if isinstance(loss, LogisticLoss) and loss.corner is not None:
        c, m0 = mp.mpf(loss.cap), mp.mpf(loss.cap * loss.corner)
        side = 1 - 2 * y
        t, r = side * eta - mp.log(m0 / (1 - m0)), m0 * (1 - m0) / (c - m0)
        if t > 0:
            return side * (c - (c - m0) * mp.exp(-r * t)), m0 * (1 - m0) * mp.exp(-r * t)
    if isinstance(loss, LogisticLoss):
        p = 1 / (1 + mp.exp(-eta))
        return p - y, p / (1 + mp.exp(eta))
    if isinstance(loss, SmoothedHinge):
        a = mp.mpf(loss.scale)
        t = (1 - y * eta) / a
        p = 1 / (1 + mp.exp(-t))
        return -y * p, p / (1 + mp.exp(t)) / a
    if isinstance(loss, PseudoHuber):
        c, r = mp.mpf(loss.threshold), eta - y
        s = mp.sqrt(1 + (r / c) ** 2)
        return r / s, s**-3
    if isinstance(loss, SmoothedPinball):
        h = mp.mpf(loss.scale)
        p = 1 / (1 + mp.exp(-(eta - y) / h))
        return p - mp.mpf(loss.level), p / (1 + mp.exp((eta - y) / h)) / h
    if loss.log_link:
        poisson, c = isinstance(loss, BoundedPoisson), mp.mpf(loss.threshold)
        power = mp.exp(eta) if poisson else y * mp.exp(-eta)
        r = power - y if poisson else 1 - power
        s = mp.sqrt(1 + (r / c) ** 2)
        return r / s, power / s**3
    return eta - y, mp.mpf(1)


def gradient(table, w, *, hessian=False):
    """Gradient of the whole objective, and its Hessian, in the digits that are set."""
    d = len(w)
    g = [mp.mpf(table.l2) * w[j] + mp.mpf(table.tilt[0][j]) + mp.mpf(table.tilt[1][j]) for j in range(d)]
    H = mp.eye(d) * mp.mpf(table.l2)
    weights = np.ones(len(table.y)) if table.weights is None else table.weights
    for row, label, weight in zip(table.X, table.y, weights, strict=True):
        x = [mp.mpf(float(v)) for v in row]
        m, k = (
            mp.mpf(float(weight)) * value
            for value in derivatives(of_row(table.loss, row), mp.fdot(x, w), mp.mpf(float(label)))
        )
        for j in range(d):
            g[j] += m * x[j]
        if hessian:
            for j in range(d):
                for i in range(j + 1):
                    H[j, i] += k * x[j] * x[i]
    for j in range(d):
        for i in range(j):
            H[i, j] = H[j, i]
    return g, H


def distance_to_minimiser(table, W, grid):
    """From the point on the grid to the true minimiser, by Newton steps in 70 digits from there.

    With many columns the steps take a double Hessian, and there are more of them.
    """
    with mp.workdps(DIGITS + 60 + 2 * len(str(max(abs(count) for count in W)))):
        start = [mp.mpf(count) * mp.mpf(grid) for count in W]
        w = list(start)
        many = len(W) > 10
        for _ in range(12 if many else 6):
            g, H = gradient(table, w, hessian=not many)
            if many:
                top = max(abs(value) for value in g) or mp.mpf(1)
                curvature = table.derivatives(np.array([float(v) for v in w]))[1]
                matrix = (table.X * curvature[:, None]).T @ table.X + table.l2 * np.eye(len(W))
                share = np.linalg.solve(matrix, np.array([float(value / top) for value in g]))
                step = mp.matrix([mp.mpf(float(value)) * top for value in share])
            else:
                step = mp.lu_solve(H, mp.matrix(g))
            w = [a - b for a, b in zip(w, step, strict=True)]
            if mp.norm(step) <= mp.mpf(10) ** -DIGITS * (1 + mp.norm(mp.matrix(w))):
                break
        return mp.sqrt(sum((a - b) ** 2 for a, b in zip(start, w, strict=True)))


def newton_start(table, steps=60):
    """A double start of the ordinary quality, and the double Hessian there."""
    X, d = table.X, table.X.shape[1]
    b = table.tilt[0] + table.tilt[1]

    def at(w):
        m, k = table.derivatives(w)
        return m @ X + table.l2 * w + b, (X * k[:, None]).T @ X + table.l2 * np.eye(d)

    w = np.zeros(d)
    g, H = at(w)
    for _ in range(steps):
        step, share = np.linalg.solve(H, g), 1.0
        while share > 1e-12:
            trial = at(w - share * step)
            if np.linalg.norm(trial[0]) <= (1 - 1e-4 * share) * np.linalg.norm(g):
                break
            share /= 2
        else:
            break
        w, (g, H) = w - share * step, trial
        if np.linalg.norm(g) < 1e-10 * (1 + np.linalg.norm(b)):
            break
    return w, H
