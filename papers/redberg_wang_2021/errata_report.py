"""The paper's errata about the report and what it is read from, each as a measurement."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

import expost
from expost.goe import LargestEigenvalue
from papers.common import FloatArray
from papers.redberg_wang_2021.errata import ALLOCATION
from papers.redberg_wang_2021.experiment import Numbers
from papers.redberg_wang_2021.measuring import DELTA, fit, listed, paper_plan, read, rounded
from papers.redberg_wang_2021.synthetic import directions

LEVEL = 0.05
"""A failure probability large enough to be counted."""
PRINTED_QUANTILE, PRINTED_FAILURE = 12.0, 8.465e-6


def inner_product(runs: int) -> Numbers:
    """How often the printed bound on the inner product fails, and the sound ones, at a level of 5%."""
    plan = paper_plan(ALLOCATION, 20)
    assert plan.sigma_gradient is not None
    quantile = float(ndtri(1.0 - LEVEL / 2.0))
    failures: dict[str, list[float]] = {"printed": [], "absolute": [], "ours": []}
    for seed in range(runs):
        sample = directions(1000, 20, seed)
        fitted = fit(plan, sample.X, sample.y, seed)
        assert fitted.release.gradient is not None
        slope, _ = plan.loss.derivatives(sample.X @ fitted.release.coefficients, sample.y)
        size = np.abs(slope) * np.linalg.norm(sample.X, axis=1)
        truth = np.abs(slope * (sample.X @ fitted.private.gradient))
        measured = slope * (sample.X @ fitted.release.gradient)
        alone, margin = plan.sigma * size * quantile, plan.sigma_gradient * size * quantile
        failures["printed"].append(float(np.mean(truth > np.abs(np.minimum(measured + margin, alone)))))
        failures["absolute"].append(float(np.mean(truth > np.minimum(np.abs(measured) + margin, alone))))
        reading = read(fitted, "tight", failure=LEVEL)
        failures["ours"].append(
            float(np.mean((reading.truth > reading.upper) | (reading.truth < reading.lower)))
        )
    return {"runs": runs, "level": LEVEL} | {
        name: rounded(float(np.mean(shares))) for name, shares in failures.items()
    }


def leverage_estimate(runs: int) -> Numbers:
    """How often ``(3/2) xᵀĤ⁻¹x`` fails at Theorem 1's λ, which the paper's experiments say they use."""
    d = 50
    inflations = (1.0, 2.0, 5.0, 10.0, 20.0, 53.0)
    shares: dict[str, list[float]] = {"meaningless": [], "too_small": []}
    for inflation in inflations:
        plan = expost.calibrate(
            epsilon=3.0,
            delta=3 * DELTA,
            report="dependent",
            split=(1.0, 1.0, 1.0),
            calibration="kifer2012",
            l2=0.5 * inflation,
        )
        meaningless, too_small = [], []
        for seed in range(runs):
            sample = directions(1000, d, seed)
            fitted = fit(plan, sample.X, sample.y, seed)
            assert fitted.release.hessian is not None
            _, curvature = plan.loss.derivatives(sample.X @ fitted.release.coefficients, sample.y)
            estimate = 1.5 * _forms(fitted.release.hessian, sample.X)
            truth = _forms(fitted.private.hessian, sample.X)
            meaningless.append(np.mean((estimate < 0.0) | (curvature * estimate >= 1.0)))
            too_small.append(np.mean(estimate < truth))
        shares["meaningless"].append(rounded(float(np.mean(meaningless))))
        shares["too_small"].append(rounded(float(np.mean(too_small))))
    return {"inflations": list(inflations), "l2": [0.5 * inflation for inflation in inflations]} | shares


def _forms(matrix: FloatArray, X: FloatArray) -> FloatArray:
    forms: FloatArray = np.vecdot(X, np.linalg.solve(matrix, X.T).T)
    return forms


def quantile(matrices: int) -> Numbers:
    """The largest eigenvalue of GOE(50): exactly, and in simulated matrices."""
    d = 50
    law = LargestEigenvalue(d)
    rng = np.random.default_rng(0)
    found = np.concatenate([_largest(rng.normal(size=(500, d, d))) for _ in range(matrices // 500)])
    edges = np.linspace(10.5, 18.0, 61)
    return {
        "exact": rounded(law.sf(PRINTED_QUANTILE)),
        "simulated": rounded(float(np.mean(found > PRINTED_QUANTILE))),
        "matrices": matrices,
        "true_quantile": rounded(law.isf(PRINTED_FAILURE / 2.0)),
        "misread": rounded(law.sf(PRINTED_QUANTILE * math.sqrt(2.0))),
        "edges": listed(edges),
        "law": listed(law.cdf(edges[i + 1]) - law.cdf(edges[i]) for i in range(60)),
        "histogram": listed(np.histogram(found, edges)[0] / matrices),
    }


def _largest(squares: FloatArray) -> FloatArray:
    symmetric = (squares + squares.transpose(0, 2, 1)) / math.sqrt(2.0)
    return np.asarray(np.linalg.eigvalsh(symmetric)[:, -1], dtype=np.float64)


def eigenvalue(samples: int) -> Numbers:
    """How far a record with a Hessian of rank ten can move the smallest eigenvalue."""
    rng = np.random.default_rng(0)
    d, rank = 20, 10
    spectral, frobenius = [], []
    for matrix, record in _pairs(rng, d, rank, samples):
        moved = np.linalg.eigvalsh(matrix + record)[0] - np.linalg.eigvalsh(matrix)[0]
        spectral.append(moved / np.linalg.norm(record, 2))
        frobenius.append(moved / np.linalg.norm(record))
    return {
        "rank": rank,
        "samples": samples,
        "largest_of_spectral": rounded(max(spectral)),
        "largest_of_frobenius": rounded(max(frobenius)),
    }


def _pairs(
    rng: np.random.Generator, d: int, rank: int, samples: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    for _ in range(samples):
        basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
        # The record adds curvature where the table has least, which is the hardest case.
        flat = np.where(np.arange(d) < rank, 1.0, 1.0 + rng.uniform(1.0, 50.0, size=d))
        bends = np.where(np.arange(d) < rank, rng.uniform(0.9, 1.0, size=d), 0.0)
        yield basis @ np.diag(flat) @ basis.T, basis @ np.diag(bends) @ basis.T


def no_condition(runs: int) -> Numbers:
    """Our report with a noisy Hessian at a λ far below the one that the paper's demands."""
    d = 20
    plan = expost.calibrate(epsilon=1.0, delta=DELTA, report="leverage")
    assert plan.sigma_hessian is not None
    demanded = 2.0 * plan.sigma_hessian * LargestEigenvalue(d).isf(LEVEL / 2.0)
    failures, gains = [], []
    for seed in range(runs):
        sample = directions(2000, d, seed)
        fitted = fit(plan, sample.X, sample.y, seed)
        reading = read(fitted, "tight", failure=LEVEL)
        failures.append(np.mean((reading.truth > reading.upper) | (reading.truth < reading.lower)))
        gains.append(np.median(reading.upper / read(fitted, "paper", failure=LEVEL).upper))
    return {
        "runs": runs,
        "l2": rounded(plan.l2),
        "demanded": rounded(demanded),
        "failures": rounded(float(np.mean(failures))),
        "of_paper": rounded(float(np.median(gains))),
    }
