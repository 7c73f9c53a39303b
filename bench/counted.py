"""Would a noisy count of the table, published first, make better models? Chosen and judged on other tables.

    python -m bench.counted [--draws 4] [--json FILE]

For 1% of the precision that a budget buys, the number of rows is published with noise. Then the cap, the
penalty and whether there is a histogram follow it: few rows for the noise, some, or many. All such rules of a
grid are tried on the tables of choice. The best of those that keep the limits there, never more than 0.003 of
the AUC or 0.005 of log-loss worse than the default, is judged once on each of the two hold-outs. What follows
a published count is accounted for as Gaussian releases are: the joint certificate is not proved. Medians
over draws of the noise, one split.
"""

import argparse
import math
from dataclasses import dataclass, replace
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
from expost.privacy.histogram import SHARE as HISTOGRAM, cell_count, cell_ends
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from bench import halves
from bench.comparison import DELTA, EPSILONS, SEED, Comparison, read
from bench.saving import RESULTS, save
from expost import LogisticLoss, gaussian
from expost.fitting import recalibration
from expost.fitting.objective import Objective
from expost.fitting.recalibration import CalibrationCurve
from expost.fitting.solvers import minimize
from expost.privacy.shapes import capped_logistic
from papers.datasets import DataUnavailable

SHARE = 0.01
# How much worse than the default a rule may be in any case.
AUC, LOG_LOSS = 0.003, 0.005
# Where few rows end and many begin: counts over the noise of the Gaussian mechanism of sensitivity one.
ENDS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0)
# What is believed of scales where the prior is another one: its middle and its spread.
PRIORS = {
    "": (recalibration._USUAL, recalibration._SPREAD),
    ", scales near 1": (0.0, 0.5),
}


@dataclass(frozen=True)
class Way:
    """One way to fit: a cap that is a multiple of the default's, a penalty, or the histogram and its cap."""

    cap: float = 1.0
    l2: float = 1.0
    recalibrate: bool = False
    prior: str = ""

    def __str__(self):
        first = f"histogram{self.prior}" if self.recalibrate else f"{self.cap:g} C"
        return first + ("" if self.l2 == 1.0 else f", {self.l2:g} λ")

    def noise(self, radius, epsilon):
        """The loss, the noise of the objective, its penalty, and the noise of the histogram if there is one.

        By the theorems, without a search: docs/mathematics.md, section 6.
        """
        loss = capped_logistic(epsilon, DELTA, radius=radius, recalibrate=self.recalibrate)
        if self.cap != 1.0:
            most = self.cap * loss.cap
            loss = LogisticLoss(cap=most, corner=loss.corner, gradient_cap=most * radius)
        share = HISTOGRAM if self.recalibrate else 0.0
        one = gaussian.sigma(epsilon, DELTA)
        sigma = loss.cap * radius * one / math.sqrt(1.0 - share)
        return loss, sigma, 0.5 * self.l2 * sigma * radius, one / math.sqrt(share) if share else None


DEFAULT, OPTION = Way(), Way(recalibrate=True)
WAYS = (
    *(Way(cap, l2) for cap, l2 in product((1.0, 0.5), (1.0, 2.0))),
    *(Way(recalibrate=True, prior=prior) for prior in PRIORS),
    Way(recalibrate=True, l2=2.0),
)


def counts(comparison, theta, noise, rng):
    """The noisy histogram of scores and labels, in a tuple: there is one."""
    ends = cell_ends(noise)
    places = np.searchsorted(ends, comparison.rows @ theta, side="right")
    places += (len(ends) + 1) * (comparison.labels > 0.5)
    exact = np.bincount(places, minlength=cell_count(noise))
    return (exact + noise * rng.normal(size=len(exact)),)


class Case:
    """A table at one epsilon: the scores of every way in every draw, and the noisy counts."""

    def __init__(self, comparison, epsilon, draws):
        noise = gaussian.sigma(epsilon, DELTA)
        self.noise, self.epsilon = noise, epsilon
        # What is left of the budget, as the epsilon of the Gaussian mechanism that has so much more noise.
        left = float(gaussian.epsilon(DELTA, sensitivity=math.sqrt(1.0 - SHARE), sigma=noise))
        drawn = np.random.default_rng(SEED).normal(size=draws)
        self.counts = (len(comparison.rows) + noise / math.sqrt(SHARE) * drawn) / noise
        self.before = self.scores(comparison, [DEFAULT], epsilon, draws)[DEFAULT]
        self.ways = {}
        for group in {replace(way, prior=""): None for way in WAYS}:
            self.ways |= self.scores(
                comparison, [way for way in WAYS if replace(way, prior="") == group], left, draws
            )

    def scores(self, comparison, ways, epsilon, draws):
        """AUC and log-loss of each draw, in ways that read the same releases."""
        loss, sigma, l2, noise = ways[0].noise(comparison.problem.radius, epsilon)
        rng, drawn = np.random.default_rng(SEED), []
        for _ in range(draws):
            tilt = sigma * rng.normal(size=comparison.rows.shape[1])
            objective = Objective(comparison.checked, loss, l2, tilt, None)
            theta = minimize(objective, tolerance=1e-6 * sigma).theta
            drawn.append((theta, None if noise is None else counts(comparison, theta, noise, rng)))
        found = {}
        for way in ways:
            usual, spread = PRIORS[way.prior]
            with patch.multiple(recalibration, _USUAL=usual, _SPREAD=spread):
                predicted = [
                    read(histogram and CalibrationCurve(histogram[0], noise), comparison.test_rows @ theta)
                    for theta, histogram in drawn
                ]
            scored = comparison.judge(np.stack(predicted, axis=1))
            found[way] = np.array([scored["auc"], scored["log_loss"]])
        return found

    def change(self, rule):
        """How much better the AUC is and how much worse the log-loss, in the medians."""
        ends, ways = rule
        place = np.searchsorted(ends, self.counts)
        picked = np.choose(place, [self.ways[way][:, None] for way in ways])[:, 0]
        return np.median(picked, axis=1) - np.median(self.before, axis=1)


def prepared(fit, judge, draws):
    """A table with its records checked once for all fits."""
    comparison = Comparison(fit, judge, draws)
    plan = comparison.plan(1.0)
    comparison.checked = comparison.records(plan).checked_for(plan.loss, plan.max_weight)
    return comparison


def cases(tables, draws, console):
    """Every table at every epsilon."""
    found = {}
    for name, load in track(tables.items(), console=console, transient=True):
        try:
            fit, judge = load(0)
        except DataUnavailable as error:
            console.print(f"{name} is left out: {error}")
            continue
        if len(judge) > halves.TEST_ROWS:  # enough to judge, and sooner read by a histogram
            judge, _ = judge.split((halves.TEST_ROWS + 0.5) / len(judge), 0)
        comparison = prepared(fit, judge, draws)
        found |= {(name, epsilon): Case(comparison, epsilon, draws) for epsilon in EPSILONS}
    return found


def rules():
    """One way for all tables, or another one for few, some and many rows."""
    yield from (((), (way,)) for way in WAYS)
    yield from (((end,), ways) for end in ENDS for ways in product(WAYS, repeat=2) if ways[0] != ways[1])
    few = [way for way in WAYS if not way.prior and way != Way(l2=2.0)]
    yield from ((ends, ways) for ends in combinations(ENDS, 2) for ways in product(few, repeat=3))


def judged(found, changes):
    """Means by epsilon, the worst cases, and how many are beyond the limits."""
    keys = list(found)
    auc, loss = np.array(changes).T
    worst, most = int(np.argmin(auc)), int(np.argmax(loss))
    of = {epsilon: [place for place, key in enumerate(keys) if key[1] == epsilon] for epsilon in EPSILONS}
    return {
        "cases": len(keys),
        "auc": {f"{epsilon:g}": float(np.mean(auc[places])) for epsilon, places in of.items()},
        "log_loss": {f"{epsilon:g}": float(np.mean(loss[places])) for epsilon, places in of.items()},
        "worst_auc": [*keys[worst], float(auc[worst])],
        "worst_log_loss": [*keys[most], float(loss[most])],
        "beyond_auc": int(np.sum(auc < -AUC)),
        "beyond_log_loss": int(np.sum(loss > LOG_LOSS)),
    }


def chosen(found):
    """The rule of the largest mean of AUC less log-loss that keeps the limits, and the one of all rules."""
    # If no rule keeps the limits the default is left.
    best = safe = (-math.inf, ((), (DEFAULT,)))
    for rule in rules():
        changes = np.array([case.change(rule) for case in found.values()])
        worth = float(np.mean(changes[:, 0] - changes[:, 1]))
        best = max(best, (worth, rule), key=lambda pair: pair[0])
        if np.min(changes[:, 0]) >= -AUC and np.max(changes[:, 1]) <= LOG_LOSS:
            safe = max(safe, (worth, rule), key=lambda pair: pair[0])
    return {"within the limits": safe[1], "whatever it loses": best[1]}


def told(rule):
    """A rule in words."""
    ends, ways = rule
    parts = [f"{way} up to {end:g}σ₁" for way, end in zip(ways[:-1], ends, strict=True)]
    return "; ".join([*parts, f"{ways[-1]} beyond" if ends else f"{ways[-1]}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--json", default=RESULTS / "counted.json")
    options = parser.parse_args()
    console = Console(width=140)
    document = {"draws": options.draws, "share": SHARE, "limits": [AUC, LOG_LOSS], "rules": {}}
    with threadpool_limits(1):
        tuning = cases(halves.TUNING, options.draws, console)
        picked = chosen(tuning)
        parts = {"tuning": tuning}
        parts["hold-out"] = cases(halves.HOLD_OUT, options.draws, console)
        parts["second hold-out"] = cases(halves.SECOND, options.draws, console)
        constant = {f"always {way}": ((), (way,)) for way in WAYS}
        for title, rule in (picked | constant).items():
            figures = {
                part: judged(found, [case.change(rule) for case in found.values()])
                for part, found in parts.items()
            }
            document["rules"][title] = {"rule": told(rule)} | figures
            console.print(title, told(rule), figures)
    save(options.json, document)


if __name__ == "__main__":
    main()
