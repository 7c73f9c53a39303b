"""The paper's errata about the model and its cost, each as a measurement."""

import math

import numpy as np
from scipy.optimize import brentq

import expost
from expost import LogisticLoss, gaussian
from expost.audit import hockey_stick
from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.measuring import DELTA, fit, listed, paper_plan, rounded

ALLOCATION = (0.2, 0.7, 0.1)


def noise_formula() -> Numbers:
    """Theorem 1's σ read as printed, on rows of norm at most 0.01, against one record alone in the data."""
    norms = np.logspace(-3, 0, 13)
    rows = []
    for norm in norms:
        variance = norm**2 * (8.0 * math.log(2.0 / DELTA) + 4.0)
        rows.append([_delta_alone(norm, sigma) for sigma in (variance, math.sqrt(variance))])
    printed, corrected = np.array(rows).T
    here = int(np.argmin(np.abs(norms - 0.01)))
    return {
        "norms": listed(norms),
        "printed": listed(printed),
        "corrected": listed(corrected),
        "at_norm": 0.01,
        "printed_at_norm": rounded(printed[here]),
        "corrected_at_norm": rounded(corrected[here]),
    }


def _delta_alone(norm: float, sigma: float) -> float:
    """The exact δ at ε = 1 of the empty table and the same with one record, at Theorem 1's λ."""
    audit = hockey_stick(
        LogisticLoss(),
        np.empty((0, 1)),
        np.empty(0),
        np.array([norm]),
        1.0,
        epsilon=1.0,
        sigma=float(sigma),
        l2=0.5 * norm**2,
    )
    return audit.delta


def rank_one() -> Numbers:
    """The determinant term of a record with a Hessian of full rank, alone in the data, at λ = 2β/ε."""
    ranks = range(1, 11)
    curvature, l2 = 0.25, 0.5  # β, and 2β/ε at ε = 1
    terms = []
    for rank in ranks:
        without, record = l2 * np.eye(rank), curvature * np.eye(rank)
        terms.append(float(np.linalg.slogdet(without + record)[1] - np.linalg.slogdet(without)[1]))
    return {"ranks": list(ranks), "determinant_terms": listed(terms), "at_rank_3": rounded(terms[2])}


def determinant(samples: int) -> Numbers:
    """The leverage term of random records in random tables, with the printed bound and ours."""
    rng = np.random.default_rng(0)
    l2s = np.logspace(-1.5, 1.0, 11)
    largest, printed, ours, broken = [], [], [], 0
    for l2 in l2s:
        plan = expost.calibrate(sigma=5.0, l2=float(l2), delta=DELTA)
        found = 0.0
        for _ in range(samples):
            n = int(rng.integers(1, 6))
            X = rng.normal(size=(n, 3))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            y = rng.integers(0, 2, size=n).astype(float)
            fitted = fit(plan, X, y, int(rng.integers(2**31)))
            terms = fitted.losses()
            _, curvature = plan.loss.derivatives(X @ fitted.release.coefficients, y)
            broken += int(np.sum(terms.determinant > np.log1p(curvature / l2) * (1.0 + 1e-9)))
            found = max(found, float(terms.determinant.max()))
        largest.append(found)
        ours.append(math.log1p(0.25 / l2))
        printed.append(-math.log1p(-0.25 / l2) if l2 > 0.25 else None)
    return {
        "l2": listed(l2s),
        "largest": listed(largest),
        "ours": listed(ours),
        "printed": [None if value is None else rounded(value) for value in printed],
        "ours_exceeded": broken,
        "printed_at_half": rounded(-math.log1p(-0.5)),
        "ours_at_half": rounded(math.log1p(0.5)),
    }


def cube() -> Numbers:
    """The report's cost with the printed σ₃³, for one mechanism in two units of measurement."""
    rows = {}
    for unit in (1.0, 10.0):  # rows ten times as long: curvature and σ₃ a hundred times as large
        curvature, sigma = 0.25 * unit**2, 0.75 * unit**2
        tail = math.sqrt(2.0 * math.log(1.0 / DELTA))
        printed = curvature**2 / (4.0 * sigma**2) + math.sqrt(curvature**2 / (2.0 * sigma**3)) * tail
        corrected = curvature**2 / (4.0 * sigma**2) + curvature / (math.sqrt(2.0) * sigma) * tail
        rows[f"{unit:g}"] = {
            "printed": rounded(printed),
            "corrected": rounded(corrected),
            "delta_at_printed": rounded(
                float(gaussian.delta(printed, sensitivity=curvature / math.sqrt(2.0), sigma=sigma))
            ),
        }
    return {"units": rows, "delta": DELTA}


def budgets() -> Numbers:
    """The noise in the model: budgets that add up, and one joint profile for the same gradient."""
    plan = paper_plan(ALLOCATION, 21)
    sigma_hessian = 1.0

    def excess(sigma: float) -> float:
        return _joint(sigma, float(plan.sigma_gradient or 0.0), sigma_hessian).epsilon - 1.0

    sigma = float(brentq(excess, 4.3, 20.0, xtol=1e-4))
    return {
        "paper": {
            "sigma": rounded(plan.sigma),
            "sigma_gradient": rounded(plan.sigma_gradient or 0.0),
            "sigma_hessian": rounded(plan.sigma_hessian or 0.0),
        },
        "joint": {
            "sigma": rounded(sigma, 4),
            "sigma_gradient": rounded(plan.sigma_gradient or 0.0),
            "sigma_hessian": sigma_hessian,
        },
    }


def _joint(sigma: float, sigma_gradient: float, sigma_hessian: float) -> expost.Plan:
    return expost.calibrate(
        delta=DELTA,
        report="dependent",
        l2=5.0,
        sigma=sigma,
        sigma_gradient=sigma_gradient,
        sigma_hessian=sigma_hessian,
    )
