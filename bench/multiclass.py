"""Compare our model of several classes, defaults untouched, with other private models on the same rows.

    python -m bench.multiclass [--draws 20] [--only TABLE ...] [--models MODEL ...] [--json FILE]

One encoding, one split, one budget; every model is fitted to the rows that ours sees. DP-GD on the softmax
loss is tuned freely on the test set, once for the accuracy and once for the log-loss. That is not private,
spends no budget here and favours it. It is also shown as a user could have it: with one setting for all
tables and tuned within its budget, by settings that `bench.fixed` chose on other tables. One-vs-rest has a
binary model of ours for each class: once with an equal share of epsilon and delta each, which is proved, and
once with the least noise that any accounting could allow them, which is not. All figures are medians over
draws of the noise.
"""

import time
from functools import partial
from itertools import product

import numpy as np
from rich.table import Table
from scipy.special import log_expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import expost
from bench import class_rivals, scores
from bench.class_rivals import ClassProblem
from bench.class_tables import HELD_OUT, TABLES
from bench.comparison import CLIPS, DELTA, EPSILONS, MOMENTA, RATES, SEED, STEPS, all_rows, medians
from bench.over_tables import run
from bench.private_tuning import tuned_privately
from bench.rivals import Descent
from bench.tuning import elsewhere, only, tuned
from expost.data.encoding import encode_rows, with_labels
from expost.data.weights import Declared
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from papers.datasets import DataUnavailable

# Small tables are cheap and their scores spread widely: they get more draws.
MORE = {1_000: 5, 10_000: 2}
TITLES = {
    "plain": "no privacy",
    "ours": "expost",
    "unclipped": "DP-GD, tuned",
    "clipped": "DP-GD, clipped, tuned",
    "fixed": "DP-GD, one setting",
    "private": "DP-GD, tuned privately",
    "rest": "one-vs-rest, ε/K",
    "rest_least": "one-vs-rest, least noise",
}
FIGURES = {"accuracy": "Accuracy", "log_loss": "Log-loss"}


class ClassComparison:
    """One table: its rows as our mechanism sees them, and every model on them."""

    def __init__(self, table, draws):
        self.table, self.draws = table, draws
        plan = self.model(1.0).fit(table.X[:20], table.y[:20]).plan_
        self.design = encode_rows(table.X, Declared.of(plan))
        self.rows, self.test_rows = (
            all_rows(self.design),
            all_rows(encode_rows(table.X_test, Declared.of(plan))),
        )
        self.problem = ClassProblem(self.rows, table.y, plan.radius, table.classes)

    def model(self, epsilon, **parameters):
        """Our estimator as a new user would call it."""
        return expost.LogisticRegression(
            norm=self.table.norm,
            classes=range(self.table.classes),
            epsilon=epsilon,
            delta=DELTA,
            random_state=SEED,
            **parameters,
        )

    def score(self, coefficients, *, binary=False):
        """Scores of models, the last axis of coefficients by features and classes."""
        odds = times(self.test_rows, coefficients)
        return scores.of_classes(log_expit(odds) if binary else odds, self.table.y_test)

    def median(self, coefficients, *, binary=False):
        """Medians of the scores over models."""
        return medians(self.score(coefficients, binary=binary))

    def plain(self):
        """Without privacy; the penalty is chosen by cross-validation on the rows for fitting."""
        base = LogisticRegression(fit_intercept=False, max_iter=1000)
        search = GridSearchCV(base, {"C": np.geomspace(1e-2, 1e4, 7)}, scoring="neg_log_loss", cv=3)
        return self.median(search.fit(self.rows, self.table.y).best_estimator_.coef_.T[:, :, None])

    def ours(self, epsilon):
        """Our model with its defaults."""
        return self.median(self.coefficients(epsilon))

    def coefficients(self, epsilon, **parameters):
        """Those of our model in every draw; the first draw is the estimator's own fit."""
        model = self.model(epsilon, **parameters).fit(self.table.X, self.table.y)
        records = with_labels(self.design, self.table.y, Declared.of(model.plan_, classes=model.classes_))
        found = [
            model.plan_.loss.by_predictor(
                perturb(model.plan_, records, noise=noise_source(seed))[0].coefficients
            ).T
            for seed in range(SEED, SEED + self.draws)
        ]
        if not np.array_equal(np.column_stack([model.coef_, model.intercept_]).T, found[0]):
            raise AssertionError("the rows compared are not those that the estimator fits")
        return np.stack(found, axis=2)

    def rest(self, parameters):
        """A binary model for each class."""
        table = self.table
        fitted = class_rivals.one_vs_rest(
            self.design, table.y, table.classes, table.norm, parameters, self.draws, SEED
        )
        return self.median(fitted, binary=True)

    def descents(self, settings, draws):
        """Median scores of settings of DP-GD; those with the same number of steps run together."""
        scored = {}
        for steps in sorted({setting.steps for setting in settings}):
            group = sorted((setting for setting in settings if setting.steps == steps), key=str)
            found = class_rivals.softmax_descent(self.problem, group, draws, DELTA, SEED)
            scored |= {setting: self.median(found[:, :, place]) for place, setting in enumerate(group)}
        return scored

    def descend(self, settings, draws, seed=SEED):
        """Coefficients of gradient descent: settings and draws are the last axes."""
        return class_rivals.softmax_descent(self.problem, settings, draws, DELTA, seed)

    def cost(self, coefficients):
        """Half the squared distance of predictions from what happened, at most 1 for each row for fitting."""
        found = softmax(times(self.rows, coefficients), axis=1)
        found[np.arange(len(found)), self.table.y] -= 1.0
        return 0.5 * np.sum(found**2, axis=(0, 1))

    def chosen_elsewhere(self, name):
        """DP-GD with one setting for all tables, and tuned within its budget among a few settings."""
        found = {"fixed": {}, "private": {}}
        for epsilon in EPSILONS:
            fixed, few = elsewhere("several classes", name, epsilon)
            own = tuned_privately(self.descend, self.cost, few, self.draws, DELTA, SEED)
            found["fixed"][epsilon] = self.median(self.descend([fixed], self.draws)[:, :, 0])
            found["private"][epsilon] = self.median(own)
        return found

    def tuned(self):
        """DP-GD with the settings that are best on the test set."""
        grid = [Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        families = {"clipped": grid, "unclipped": [setting for setting in grid if setting.clip == 1.0]}
        goals = {"accuracy": (1.0, ("accuracy",)), "log_loss": (-1.0, ("log_loss",))}
        return tuned(self.descents, families, self.draws, goals)

    def run(self, name, wanted):
        """The scores of the models that are wanted, at every epsilon, by model."""
        own = {"delta": DELTA, "classes": self.table.classes, "radius": self.problem.radius}
        evenly = partial(class_rivals.split_evenly, **own)
        least = partial(class_rivals.composed_as_gaussians, **own)

        def each(measure):
            return {epsilon: measure(epsilon) for epsilon in EPSILONS}

        groups = {
            ("plain",): lambda: {"plain": dict.fromkeys(EPSILONS, self.plain())},
            ("ours",): lambda: {"ours": each(self.ours)},
            ("rest",): lambda: {"rest": each(lambda at: self.rest(evenly(at)))},
            ("rest_least",): lambda: {"rest_least": each(lambda at: self.rest(least(at)))},
            ("fixed", "private"): lambda: self.chosen_elsewhere(name),
            ("clipped", "unclipped"): self.tuned,
        }
        return only(wanted, groups)


def times(rows, coefficients):
    """Scores of rows by classes by models."""
    found = rows @ coefficients.reshape(len(coefficients), -1)
    return found.reshape(len(rows), *coefficients.shape[1:])


def compare(name, draws, wanted):
    """One row for each epsilon and the seconds it took, or why the table is missing."""
    start, used = time.perf_counter(), time.process_time()
    try:
        table = TABLES[name]()
    except DataUnavailable as error:
        return [], f"{name} is left out: {error}"
    draws *= next((more for rows, more in MORE.items() if len(table.y) < rows), 1)
    # The tables run side by side: threads inside each would only get in each other's way.
    with threadpool_limits(1):
        comparison = ClassComparison(table, draws)
        results = comparison.run(name, wanted)
    size = {"rows": len(table.y), "test_rows": len(table.y_test), "columns": comparison.rows.shape[1]}
    size |= {"classes": table.classes, "draws": draws}
    rows = [
        {"table": name, **size, "epsilon": epsilon}
        | {peer: scored[epsilon] for peer, scored in results.items()}
        for epsilon in EPSILONS
    ]
    return rows, f"{name}: {time.perf_counter() - start:.0f} s, {time.process_time() - used:.0f} CPU s"


def show(rows, console):
    """One table for every figure."""
    for figure, title in FIGURES.items():
        table = Table(title=f"{title}, δ = {DELTA:g}", title_justify="left")
        for column in ("table", "ε", *TITLES.values()):
            table.add_column(column, justify="left" if column == "table" else "right")
        for row in rows:
            table.add_row(
                row["table"],
                f"{row['epsilon']:g}",
                *(f"{row[peer][figure]:.3f}" if peer in row else "" for peer in TITLES),
            )
        console.print(table)


def judge(rows, console):
    """How far ours is below each peer in accuracy at most, and the cases beyond 0.01."""
    for peer in list(TITLES)[2:]:
        gaps = {
            f"{row['table']} at ε = {row['epsilon']:g}": row[peer]["accuracy"] - row["ours"]["accuracy"]
            for row in rows
            if "ours" in row and peer in row
        }
        if not gaps:
            continue
        missed = "; ".join(f"{case} {gap:.3f}" for case, gap in gaps.items() if gap > 0.01) or "none"
        largest, least = max(gaps.values()), min(gaps.values())
        console.print(
            f"accuracy below {TITLES[peer]}: from {least:.3f} to {largest:.3f}; above 0.01: {missed}"
        )


def main():
    grids = {"steps": STEPS, "clips": CLIPS, "rates": RATES, "momenta": MOMENTA}
    about = __doc__.splitlines()[0]
    stated = {"grids": grids, "held_out": HELD_OUT}
    run("multiclass", about, TABLES, compare, tell=(show, judge), settings=stated)


if __name__ == "__main__":
    main()
