"""Other solvers of the same problem, each at the loosest tolerance with which it reaches a gradient norm."""

import importlib
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
from rich.table import Table
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as Peer

import expost

L2 = 1.0
SIGMA = 4.0


@cache
def plan():
    """The plan of our fits, made before there is a table."""
    return expost.calibrate(loss=expost.LogisticLoss(), sigma=SIGMA, l2=L2, fit_intercept=True)


def ours(X, y, l1=0.0):
    return expost.LogisticRegression(classes=[0, 1], plan=plan(), l1=l1).fit(X, y)


def clocked(X, y):
    """Our fit, its seconds before the certificate, and those of the certificate."""
    steps = []
    plan()

    @contextmanager
    def clock(_shown):
        yield lambda step: steps.append((step, time.perf_counter()))

    with patch("expost.estimators.planned.shown_steps", clock):
        start = time.perf_counter()
        model = ours(X, y)
        end = time.perf_counter()
    names, at = zip(*steps, strict=True)
    place = names.index(CERTIFYING)
    certificate = at[place + 1] - at[place]
    return model, end - start - certificate, certificate


def scikit(solver):
    def fit(X, y, tol):
        return Peer(solver=solver, C=1 / L2, tol=tol, max_iter=500).fit(X, y)

    return fit


def glum(X, y, tol):
    regressor = importlib.import_module("glum").GeneralizedLinearRegressor
    return regressor(
        family="binomial", alpha=L2 / len(y), l1_ratio=0, solver="irls-ls", gradient_tol=tol, max_iter=500
    ).fit(X, y)


def diffprivlib(X, y, tol):
    models = importlib.import_module(MODELS)
    return models.LogisticRegression(epsilon=1.0, data_norm=1.0, C=1 / L2, tol=tol, max_iter=500).fit(X, y)


# The package of each solver that is not part of ours, and its fit at a tolerance.
SOLVERS = {
    "scikit-learn newton-cholesky": (None, scikit("newton-cholesky")),
    "scikit-learn lbfgs": (None, scikit("lbfgs")),
    "glum irls-ls": ("glum", glum),
}
GOALS = {"scikit-learn newton-cholesky": 0.12, "scikit-learn lbfgs": 0.45, "glum irls-ls": 0.25}
# The step of a fit that no peer has; it is timed apart.
CERTIFYING = "Certifying the minimiser"
# Gradient norms of the mean over rows: one that every solver reaches, one for second-order methods.
NORMS = (1e-7, 1e-12)
TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
# diffprivlib minimises an objective with noise of its own, so nobody can tell how far it came.
UNKNOWABLE, MODELS, ITS_DEFAULT = "diffprivlib", "diffprivlib.models", 1e-4


@dataclass(frozen=True)
class Run:
    """A solver with the loosest tolerance that reaches a norm; no tolerance where none does."""

    solver: str
    target: float | None
    tolerance: float | None
    reached: float | None
    iterations: int | None


def gradient_norm(model, X, y):
    """How close to its minimum a peer stopped: the norm of its objective's gradient, a mean over rows."""
    weights, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    residual = expit(X @ weights + intercept) - y
    return float(np.linalg.norm(np.append(X.T @ residual + L2 * weights, residual.sum()))) / len(y)


def why_absent(package):
    """Why a peer cannot take part, or nothing where it can."""
    try:
        if package is not None:
            importlib.import_module(package)
    except ModuleNotFoundError as error:
        return "not installed" if error.name == package else f"does not import: {error}"
    except ImportError as error:
        return f"does not import: {error}".partition(" (/")[0]
    return None


def find_runs(X, y, solvers):
    """Every installed solver at every norm."""
    runs = []
    for solver in solvers:
        package, fit = SOLVERS[solver]
        if why_absent(package):
            continue
        ladder = iter(TOLERANCES)
        tolerance = reached = np.inf
        for target in NORMS:
            while reached > target and (tighter := next(ladder, None)) is not None:
                tolerance = tighter
                model = quietly(fit, X, y, tolerance)
                reached, iterations = gradient_norm(model, X, y), int(np.ravel(model.n_iter_)[0])
            runs.append(Run(solver, target, tolerance if reached <= target else None, reached, iterations))
    if solvers == tuple(SOLVERS) and not why_absent(MODELS):
        runs.append(Run(UNKNOWABLE, None, ITS_DEFAULT, None, None))
    return runs


def compare_fits(X, y, repeats, solvers=tuple(SOLVERS)):
    """The runs, and the best time of ours and of every run that reached its norm.

    Ours is under None, without its certificate, which is under its own name.
    """
    runs, times = find_runs(X, y, solvers), {}
    for _ in range(repeats):
        model = None
        for run in (None, *(run for run in runs if run.tolerance is not None)):
            if times.get(run, 0.0) > 60:
                continue
            start = time.perf_counter()
            if run is None:
                model, before, certificate = clocked(X, y)
                times[run] = min(before, times.get(run, np.inf))
                times[CERTIFYING] = min(certificate, times.get(CERTIFYING, np.inf))
                continue
            if run.solver == UNKNOWABLE:
                quietly(diffprivlib, X, y, run.tolerance)
            else:
                quietly(SOLVERS[run.solver][1], X, y, run.tolerance)
            times[run] = min(time.perf_counter() - start, times.get(run, np.inf))
    return runs, times, model._private.gradient_norm / len(y)


def quietly(fit, *arguments):
    """A fit without its warnings: that a solver did not converge is measured instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*arguments)


def show_fits(runs, times, norm, console, title, goals=GOALS):
    """One line for every solver and norm; all of them reach the first norm, to which the goals apply.

    What is ours takes its certificate with it.
    """
    table = Table(title=title, title_justify="left")
    columns = ("norm to reach", "solver", "its tolerance", "iterations", "norm reached", "seconds")
    for column in (*columns, "ours / peer", "goal"):
        table.add_column(column, justify="left" if column == "solver" else "right")
    table.add_row("", "expost, before the certificate", "", "", f"{norm:.1e}", f"{times[None]:.3f}", "", "")
    table.add_row("", "expost, the certificate", "", "", "", f"{times[CERTIFYING]:.3f}", "", "")
    for run in sorted(runs, key=lambda run: -(run.target or 0.0)):
        target = "" if run.target is None else f"{run.target:.0e}"
        reached = "unknowable" if run.reached is None else f"{run.reached:.1e}"
        if run.tolerance is None:
            table.add_row(target, run.solver, "none", str(run.iterations), reached, "not reached", "", "")
            continue
        goal = f"{goals[run.solver]:g}" if run.solver in goals and run.target == NORMS[0] else ""
        figures = [f"{run.tolerance:.0e}", "" if run.iterations is None else str(run.iterations), reached]
        figures += [f"{times[run]:.3f}", f"{(times[None] + times[CERTIFYING]) / times[run]:.3f}", goal]
        table.add_row(target, run.solver, *figures)
    console.print(table)
    for solver, package in [(name, found[0]) for name, found in SOLVERS.items()] + [(UNKNOWABLE, MODELS)]:
        if reason := why_absent(package):
            console.print(f"{solver} is absent: {reason}", highlight=False)
