"""Compare our models, defaults untouched, with other private models on the same rows and budget.

    python -m bench.peers [--draws 20] [--only TABLE ...] [--json FILE]

One encoding (the domain's), one split, one budget. Every model is fitted to the rows that ours sees. Gradient
descent and Newton are tuned freely on the test set, which is not private and which nobody may do: it favours
them. They are tuned once for the AUC or R² and once more for the log-loss, which is shown with its
calibration error. All figures are medians over draws of the noise. Tables that cannot be had are named; the
numbers go to the file that the documents read only if no table is missing.
"""

import argparse
import time
from dataclasses import asdict
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegressionCV, RidgeCV

import expost
from bench import rivals, scores
from bench.declared import TABLES, UNTUNED
from bench.rivals import Descent, Newton, Problem
from bench.saving import RESULTS, save
from expost.data.encoding import encode_rows, with_labels
from expost.fitting.fit import fit
from papers.datasets import DataUnavailable

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 8.0)
# The grids of free tuning; a clip of 1 is R, which is none for the logistic loss.
STEPS, CLIPS = (1, 3, 10, 30, 100), (1.0, 0.5, 0.25, 0.1, 0.03)
RATES, MOMENTA = (0.025, 0.1, 0.4, 1.6, 6.4, 25.6), (0.0, 0.9)
NEWTON_STEPS, SHARES, FLOORS = (1, 3, 8), (0.2, 0.5), (0.1, 0.4, 1.6, 6.4, 25.6)
# Tuning looks at a few draws; the medians are over others.
TUNING_DRAWS, TUNING_SEED, SEED = 5, 1, 2
TITLES = {
    "plain": "no privacy",
    "ours": "expost",
    "unclipped": "DP-GD, tuned",
    "clipped": "DP-GD, clipped, tuned",
    "newton": "DP-Newton, tuned",
    "adassp": "AdaSSP",
    "ssp": "SSP",
    "kifer": "Kifer's calibration",
}
FIGURES = {"auc": "AUC", "r2": "R²", "log_loss": "Log-loss", "calibration": "Calibration error"}


class Comparison:
    """One table: its rows as our mechanism sees them, and every model on them."""

    def __init__(self, fitted, judged, draws):
        self.fitted, self.judged, self.draws = fitted, judged, draws
        self.domain = fitted.domain
        self.logistic = self.domain.classes is not None
        # Encoded once. A fit of these rows equals one of the records with the domain; `ours` checks it.
        self.encoded = fitted.domain.encode(fitted.columns), judged.domain.encode(judged.columns)
        plan = self.model(1.0).fit(self.small.columns, self.small.outcome).plan_
        self.rows, self.test_rows = (all_rows(encode_rows(rows, plan)) for rows in self.encoded)
        self.labels, self.test_labels = fitted.labels(), judged.labels()
        self.problem = Problem(self.rows, self.labels, plan.radius, self.logistic)

    @property
    def small(self):
        """A few records: what a plan says does not depend on them."""
        return self.fitted.split(min(0.5, 20.0 / len(self.fitted)), 0)[0]

    def model(self, epsilon, **parameters):
        """Our estimator as a new user would call it."""
        estimator = expost.LogisticRegression if self.logistic else expost.LinearRegression
        return estimator(domain=self.domain, epsilon=epsilon, delta=DELTA, random_state=SEED, **parameters)

    def score(self, coefficients):
        """Scores of the models whose coefficients are the columns."""
        judge = scores.classification if self.logistic else scores.regression
        return judge(self.test_rows @ coefficients, self.test_labels)

    def median(self, coefficients):
        return {name: float(np.median(values)) for name, values in self.score(coefficients).items()}

    def plain(self):
        """Without privacy; the penalty is chosen by cross-validation on the rows for fitting."""
        if self.logistic:
            model = LogisticRegressionCV(
                Cs=np.geomspace(1e-2, 1e4, 7),
                fit_intercept=False,
                solver="newton-cholesky",
                scoring="neg_log_loss",
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            )
        else:
            model = RidgeCV(np.geomspace(1e-3, 1e3, 13), fit_intercept=False)
        return self.median(model.fit(self.rows, self.labels).coef_.reshape(-1, 1))

    def ours(self, epsilon, **parameters):
        """Our model with its defaults; the first draw is the estimator's own fit."""
        model = self.model(epsilon, **parameters).fit(self.fitted.columns, self.fitted.outcome)
        plan = model.plan_
        records = with_labels(
            encode_rows(self.encoded[0], plan),
            self.fitted.outcome,
            plan,
            classes=self.domain.classes,
            domain=self.domain,
        )
        draws = range(SEED, SEED + self.draws)
        coefficients = [fit(plan, records, random_state=seed)[0].coefficients for seed in draws]
        first = np.append(np.ravel(model.coef_), model.intercept_)
        if not np.array_equal(first, coefficients[0]):
            raise AssertionError("the rows compared are not those that the estimator fits")
        return self.median(np.stack(coefficients, axis=1))

    def tuned(self, release, settings, key):
        """The median scores of the settings that are best on the test set for a score, at every epsilon.

        For classes, a second setting is the best for the log-loss, and gives the calibration error too.
        """
        tried = {}
        for group in by_steps(settings):
            found = self.score_all(release, group, TUNING_DRAWS, TUNING_SEED)
            tried.update(zip(group, found, strict=True))
        goals = {key: max} | ({"log_loss": min} if self.logistic else {})
        best = {
            (epsilon, goal): choose(
                [setting for setting in tried if setting.epsilon == epsilon],
                key=lambda setting, goal=goal: tried[setting][goal],
            )
            for epsilon in EPSILONS
            for goal, choose in goals.items()
        }
        final = {}
        for group in by_steps(sorted(set(best.values()), key=str)):
            found = self.score_all(release, group, self.draws, SEED)
            final.update(zip(group, found, strict=True))
        results = {}
        for epsilon in EPSILONS:
            setting = best[epsilon, key]
            results[epsilon] = {key: final[setting][key], "setting": asdict(setting)}
            if self.logistic:
                chosen = final[best[epsilon, "log_loss"]]
                results[epsilon] |= {name: chosen[name] for name in ("log_loss", "calibration")}
        return results

    def score_all(self, release, settings, draws, seed):
        """Median scores of settings with the same number of steps."""
        coefficients = release(self.problem, settings, draws, DELTA, seed)
        return [self.median(coefficients[:, place]) for place in range(len(settings))]

    def run(self, clock):
        """Every model's scores at every epsilon."""
        results = {"plain": dict.fromkeys(EPSILONS, clock("plain", self.plain))}
        results["ours"] = clock("ours", lambda: {epsilon: self.ours(epsilon) for epsilon in EPSILONS})
        results["kifer"] = clock(
            "kifer", lambda: {epsilon: self.ours(epsilon, calibration="kifer2012") for epsilon in EPSILONS}
        )
        grid = [Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        descent, key = rivals.gradient_descent, "auc" if self.logistic else "r2"
        results["clipped"] = clock("clipped", lambda: self.tuned(descent, grid, key))
        if self.logistic:
            whole = [setting for setting in grid if setting.clip == 1.0]
            results["unclipped"] = clock("unclipped", lambda: self.tuned(descent, whole, key))
            second = [Newton(*setting) for setting in product(EPSILONS, NEWTON_STEPS, SHARES, FLOORS)]
            results["newton"] = clock("newton", lambda: self.tuned(rivals.newton, second, key))
        else:
            for name, release in (("adassp", rivals.adaptive_statistics), ("ssp", rivals.statistics)):
                results[name] = {
                    epsilon: self.median(release(self.problem, epsilon, self.draws, DELTA, SEED))
                    for epsilon in EPSILONS
                }
        return results


def all_rows(design):
    """The rows as the mechanism sees them."""
    ((_, rows),) = design.blocks([slice(0, design.n_rows)])
    return rows.copy()


def by_steps(settings):
    """Settings in groups of the same number of steps."""
    for steps in sorted({setting.steps for setting in settings}):
        yield [setting for setting in settings if setting.steps == steps]


def compare(name, draws, console):
    """One row for each epsilon, or nothing where the table is missing."""
    try:
        pair = TABLES[name]()
    except DataUnavailable as error:
        console.print(f"{name} is left out: {error}", markup=False, highlight=False, soft_wrap=True)
        return []
    seconds = {}

    def clock(part, work):
        start = time.perf_counter()
        result = work()
        seconds[part] = time.perf_counter() - start
        return result

    comparison = Comparison(*pair, draws)
    results = comparison.run(clock)
    spent = ", ".join(f"{part} {value:.0f} s" for part, value in seconds.items())
    console.print(f"{name}: {spent}", markup=False, highlight=False)
    size = {"rows": len(pair[0]), "test_rows": len(pair[1]), "columns": comparison.rows.shape[1]}
    return [
        {"table": name, **size, "epsilon": epsilon}
        | {peer: scored[epsilon] for peer, scored in results.items()}
        for epsilon in EPSILONS
    ]


def show(rows, console):
    """One table for every figure."""
    for figure, title in FIGURES.items():
        chosen = [row for row in rows if figure in row["ours"]]
        if not chosen:
            continue
        peers = [peer for peer in TITLES if any(figure in row.get(peer, ()) for row in chosen)]
        table = Table(title=f"{title}, δ = {DELTA:g}", title_justify="left")
        for column in ("table", "ε", *(TITLES[peer] for peer in peers)):
            table.add_column(column, justify="left" if column == "table" else "right")
        for row in chosen:
            figures = (f"{row[peer][figure]:.3f}" for peer in peers)
            table.add_row(row["table"], f"{row['epsilon']:g}", *figures)
        console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="TABLE")
    parser.add_argument("--json", help="where the numbers go (default: bench/results/peers.json)")
    options = parser.parse_args()
    console = Console(width=140)
    found = {name: compare(name, options.draws, console) for name in options.only}
    rows = [row for part in found.values() for row in part]
    show(rows, console)
    complete = set(found) == set(TABLES) and all(found.values())
    if not (options.json or complete):
        console.print("A table is missing, so the documents' file of numbers was not written.")
        return
    grids = {"steps": STEPS, "clips": CLIPS, "rates": RATES, "momenta": MOMENTA}
    document = {
        "delta": DELTA,
        "draws": options.draws,
        "tuning_draws": TUNING_DRAWS,
        "grids": grids | {"newton_steps": NEWTON_STEPS, "shares": SHARES, "floors": FLOORS},
        "untuned": UNTUNED,
        "rows": rows,
    }
    save(options.json or RESULTS / "peers.json", document)


if __name__ == "__main__":
    main()
