"""Functions for all experiments: the paper's plan, seeded releases, losses and bounds, bands over draws."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.metrics import roc_auc_score

import expost
from expost import Loss, Plan, research
from expost.goe import LargestEigenvalue
from papers.common import FloatArray
from papers.redberg_wang_2021.report import paper_report

DELTA = RHO = 1e-6
"""The paper's failure probabilities: of the guarantee of each release, and of each bound."""
Method: TypeAlias = Literal["tight", "paper"]
REPORTS: dict[Method, research.Report | None] = {"tight": None, "paper": paper_report}
"""The report that each method reads a release by; None is the library's."""


@dataclass(frozen=True)
class Fitted:
    """A seeded release with the curator's private part; the tables are public, so all may be shown."""

    release: research.Release
    private: research.PrivateFit
    X: FloatArray
    y: FloatArray

    def losses(self) -> research.LossTerms:
        """The exact loss of every member, term by term."""
        return research.losses(self.release, self.private, self.X, self.y, member=True)


@dataclass(frozen=True)
class Reading:
    """Every member's exact loss, and the bounds that a reader can compute."""

    truth: FloatArray
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    total: FloatArray


def fit(plan: Plan, X: FloatArray, y: FloatArray, seed: int) -> Fitted:
    """Release a model of rows in the unit ball, with noise from a seed so that runs are reproducible."""
    return Fitted(*research.draw(plan, X, y, random_state=seed), X, y)


def read(fitted: Fitted, method: Method, *, failure: float = RHO) -> Reading:
    """The exact losses of the members and their bounds, each of which fails with this probability.

    ``method`` is ``"tight"`` for the library's report, or ``"paper"`` for the paper's.
    """
    found = research.bounds(
        fitted.release,
        fitted.X,
        fitted.y,
        report=REPORTS[method],
        confidence=1.0 - failure,
        member=True,
    )
    return Reading(fitted.losses().loss, found.lower, found.upper, found.report_cost, found.total)


def scores(fitted: Fitted, X: FloatArray) -> FloatArray:
    """The linear predictor of other rows."""
    return X @ fitted.release.coefficients


def auc(fitted: Fitted, X: FloatArray, y: FloatArray) -> float:
    """The AUC of the released model."""
    return float(roc_auc_score(y, scores(fitted, X)))


def own_auc(fitted: Fitted) -> float:
    """The AUC of the released model on the people it was fitted to."""
    return auc(fitted, fitted.X, fitted.y)


def own_r_squared(fitted: Fitted) -> float:
    """The share of the outcome's variance that the model explains for those it was fitted to."""
    return float(1.0 - np.mean((fitted.y - scores(fitted, fitted.X)) ** 2) / np.var(fitted.y))


def summary(reading: Reading) -> dict[str, float]:
    """Summarise one release over its people: medians, the upper 5%, the largest."""
    return {
        "truth": float(np.median(reading.truth)),
        "truth_max": float(np.max(reading.truth)),
        "upper": float(np.median(reading.upper)),
        "upper_95": float(np.quantile(reading.upper, 0.95, method="inverted_cdf")),
        "upper_max": float(np.max(reading.upper)),
        "ratio": float(np.median(ratios(reading))),
        "cost": float(np.median(reading.cost)),
        "total": float(np.median(reading.total)),
        "total_max": float(np.max(reading.total)),
        "exceeded": float(np.mean(reading.truth > reading.upper)),
    }


def ratios(reading: Reading) -> FloatArray:
    """Bound over truth; a loss can be zero by chance, so look at medians."""
    quotients: FloatArray = reading.upper / np.maximum(reading.truth, 1e-12)
    return quotients


def bands(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """For each figure its 10%, 50% and 90% point over the draws, and for the largest loss its largest."""
    return {key: band([row[key] for row in rows]) for key in rows[0]} | {
        "exceeded": max(row["exceeded"] for row in rows),
        "truth_largest": rounded(max(row["truth_max"] for row in rows)),
    }


def band(values: Iterable[float]) -> list[Any]:
    """The 10%, 50% and 90% point; None for one that is infinite, as the paper's bound is at a small λ."""
    found = np.asarray(list(values))
    if np.all(np.isfinite(found)):
        points = np.quantile(found, [0.1, 0.5, 0.9])
    else:  # infinities cannot be averaged
        points = np.quantile(found, [0.1, 0.5, 0.9], method="inverted_cdf")
    return [rounded(point) if math.isfinite(point) else None for point in points]


def cumulated(draws: Sequence[FloatArray], points: FloatArray) -> list[list[float]]:
    """The share of people at or below each point: its 10%, 50% and 90% point over the draws."""
    shares = np.array([np.searchsorted(np.sort(draw), points, side="right") / len(draw) for draw in draws])
    return [listed(row, 4) for row in np.quantile(shares, [0.1, 0.5, 0.9], axis=0).T]


def paper_plan(
    budgets: Sequence[float], dimension: int, *, loss: Loss | str = "logistic", delta: float = DELTA
) -> Plan:
    r"""The paper's releases: one budget for the model, or one each for model, gradient, Hessian (eigenvalue).

    Each costs its own ``delta``, and they add up. The report with a noisy Hessian demands a regularisation of
    at least :math:`2\sigma_3\tau` (Algorithm 2); without it, its bound on the leverage is not valid.
    """
    report = {1: "independent", 3: "dependent", 4: "adaptive"}[len(budgets)]
    parameters: dict[str, Any] = {
        "loss": loss,
        "epsilon": math.fsum(budgets),
        "delta": delta * len(budgets),
        "report": report,
        "split": None if len(budgets) == 1 else tuple(budgets),
        "calibration": "kifer2012",
    }
    plan = expost.calibrate(**parameters)
    if report != "dependent":  # the adaptive report demands nothing
        return plan
    assert plan.sigma_hessian is not None
    demanded = demanded_l2(plan.sigma_hessian, dimension)
    return plan if plan.l2 >= demanded else expost.calibrate(**parameters, l2=demanded)


def demanded_l2(sigma_hessian: float, dimension: int, *, failure: float = RHO / 6) -> float:
    """The regularisation that Algorithm 2 demands, with the true quantile of the GOE's largest eigenvalue.

    A sound reading shares the failure probability among three events, and again between bound and total.
    """
    return (1.0 + 1e-9) * 2.0 * sigma_hessian * LargestEigenvalue(dimension).isf(failure / 2.0)


def rounded(value: float, digits: int = 6) -> float:
    """Round to enough digits to draw and to quote, but few enough to read."""
    return float(f"{value:.{digits}g}")


def listed(values: Iterable[float], digits: int = 5) -> list[float]:
    """An array for a file of numbers."""
    return [rounded(float(value), digits) for value in values]
