"""Compare models of counts, amounts and quantiles, defaults untouched, with other models on the same rows.

    python -m bench.outcomes [--draws 20] [--only TABLE ...] [--json FILE]

One encoding (the domain's), one split, one budget, as in ``bench.peers``. The model without privacy is
scikit-learn's (its penalty chosen by cross-validation) or, of quantiles, statsmodels' without a penalty.
Gradient descent has the likelihood's gradient or the pinball loss's, clipped, and is tuned freely on the test
set. Scores are D² as scikit-learn has it, of predictions within the declared bounds; medians over draws.
"""

import time
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from rich.table import Table
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import expost
from bench import rivals
from bench.comparison import DELTA, EPSILONS, MOMENTA, RATES, SEED, STEPS, Comparison
from bench.outcome_tables import AMOUNTS, CHOSEN_ON, COUNTS, NUMBERS
from bench.over_tables import run
from bench.peers import MORE, SMALL
from bench.rivals import Descent, Problem
from bench.tuning import tuned
from papers.datasets import DataUnavailable

CLIPS = (4.0, 1.0, 0.3, 0.1, 0.03)
LEVELS = (0.5, 0.9)
KINDS = {
    "counts": (COUNTS, expost.PoissonRegression, ({},)),
    "amounts": (AMOUNTS, expost.GammaRegression, ({},)),
    "quantiles": (NUMBERS, expost.QuantileRegression, tuple({"level": level} for level in LEVELS)),
}
TABLES = [f"{kind}: {name}" for kind, (tables, *_) in KINDS.items() for name in tables]
# The multiple of the default width that was best on the tables for choosing, where another was.
WIDER = {"counts": 2.0}
# Linear predictors beyond this are of means that no outcome comes near.
FAR = 30.0


@dataclass(frozen=True)
class Slopes(Problem):
    """A problem with the gradients of a likelihood, or of the pinball loss of a level."""

    kind: str
    level: float | None

    def slopes(self, predictors, y):
        """The derivative of each record's loss in its linear predictor."""
        if self.kind == "quantiles":
            return np.where(predictors > y, 1.0 - self.level, -self.level).astype(predictors.dtype)
        means = np.exp(np.clip(predictors, -FAR, FAR))
        return means - y if self.kind == "counts" else 1.0 - y / means


class Outcomes(Comparison):
    """One table of counts, amounts or numbers, and every model on it."""

    def __init__(self, kind, fitted, judged, draws, level=None):
        self.kind, self.level, self.label = kind, level, fitted.domain.label
        super().__init__(fitted, judged, draws)
        self.problem = Slopes(self.rows, self.labels, self.problem.radius, False, kind, level)
        self.outcomes = np.clip(np.asarray(judged.outcome, dtype=float), self.label.low, self.label.high)

    def model(self, epsilon, **parameters):
        """Our estimator as a new user would call it."""
        level = {} if self.level is None else {"level": self.level}
        fixed = {"domain": self.domain, "epsilon": epsilon, "delta": DELTA, "random_state": SEED}
        return KINDS[self.kind][1](**fixed, **level, **parameters)

    def default(self, epsilon):
        """The loss that our estimator takes, and which of its arguments is its width."""
        few = self.small
        loss = self.model(epsilon).fit(few.columns, few.outcome).plan_.loss
        return loss, "scale" if self.kind == "quantiles" else "threshold"

    def wider(self, epsilon):
        """Scores of our model with the width that was best on the tables that are for choosing."""
        loss, argument = self.default(epsilon)
        return self.ours(epsilon, **{argument: WIDER[self.kind] * getattr(loss, argument)})

    def judge(self, predictions):
        """D² of the models whose predictors of the test rows are the columns."""
        predicted = self.label.unscaled(np.asarray(predictions, dtype=np.float64))
        deviance = partial(mean_deviance, self.outcomes, kind=self.kind, level=self.level)
        centre = np.mean(self.outcomes) if self.level is None else np.quantile(self.outcomes, self.level)
        return {"d2": 1.0 - deviance(predicted) / deviance(np.full((1, 1), centre))}

    def plain(self):
        """Without privacy; the penalty of means is chosen by cross-validation on the rows for fitting."""
        if self.kind == "quantiles":
            from statsmodels.regression.quantile_regression import QuantReg

            found = QuantReg(self.labels, self.rows).fit(q=self.level, max_iter=5000).params
        else:
            base = PoissonRegressor if self.kind == "counts" else GammaRegressor
            grid = {"alpha": np.geomspace(1e-6, 1.0, 7)}
            search = GridSearchCV(base(fit_intercept=False, solver="newton-cholesky", max_iter=300), grid)
            found = search.fit(self.rows, self.labels).best_estimator_.coef_
        return self.median(np.reshape(found, (-1, 1)))

    def run(self):
        """Every model's scores at every epsilon."""
        grid = [Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        attempt = partial(self.try_all, rivals.gradient_descent)
        results = {
            "plain": dict.fromkeys(EPSILONS, self.plain()),
            "ours": {epsilon: self.ours(epsilon) for epsilon in EPSILONS},
        }
        if self.kind in WIDER:
            results["wider"] = {epsilon: self.wider(epsilon) for epsilon in EPSILONS}
        return results | tuned(attempt, {"clipped": grid}, self.draws, {"d2": (1.0, ("d2",))})


def mean_deviance(outcomes, predicted, *, kind, level):
    """The mean deviance, or pinball loss, of predictions: one column per model."""
    y = outcomes[:, None]
    if kind == "quantiles":
        return np.mean(np.maximum(level * (y - predicted), (level - 1.0) * (y - predicted)), axis=0)
    ratio = y / np.maximum(predicted, np.finfo(float).tiny)
    if kind == "amounts":
        return 2.0 * np.mean(ratio - 1.0 - np.log(ratio), axis=0)
    logs = np.where(y > 0.0, y * np.log(np.where(y > 0.0, ratio, 1.0)), 0.0)
    return 2.0 * np.mean(logs - y + predicted, axis=0)


def opened(name, draws, most=None):
    """The comparisons of a table, or of so many of its rows: one for every level, with what is said of it."""
    kind, title = name.split(": ")
    tables, _, settings = KINDS[kind]
    pair = tables[title]()
    if most is not None and most < len(pair[0]):
        pair = pair[0].split(most / len(pair[0]), SEED)[0], pair[1]
    draws *= MORE if len(pair[0]) < SMALL else 1
    chosen = list(tables).index(title) < CHOSEN_ON
    for parameters in settings:
        about = {"table": name, "kind": kind, **parameters, "chosen_on": chosen, "rows": len(pair[0])}
        yield about, Outcomes(kind, *pair, draws, **parameters)


def compare(name, draws, _):
    """One row for each epsilon and level, and the seconds it took, or why the table is missing."""
    start, rows = time.perf_counter(), []
    try:
        with threadpool_limits(1):
            for about, comparison in opened(name, draws):
                size = {"columns": comparison.rows.shape[1], "draws": comparison.draws}
                results = comparison.run()
                rows += [
                    {**about, **size, "epsilon": epsilon}
                    | {peer: scored[epsilon] for peer, scored in results.items()}
                    for epsilon in EPSILONS
                ]
    except DataUnavailable as error:
        return [], f"{name} is left out: {error}"
    return rows, f"{name}: {time.perf_counter() - start:.0f} s"


def show(rows, console):
    """One table for every kind."""
    for kind in KINDS:
        table = Table(title=f"D² of {kind}, δ = {DELTA:g}", title_justify="left")
        for column in ("table", "chosen on", "level", "ε", "no privacy", "expost", "DP-GD, tuned"):
            table.add_column(column, justify="left" if column == "table" else "right")
        for row in rows:
            if row["kind"] == kind:
                figures = [f"{row[peer]['d2']:.3f}" for peer in ("plain", "ours", "clipped")]
                chosen = "yes" if row["chosen_on"] else ""
                table.add_row(
                    row["table"], chosen, f"{row.get('level', '')}", f"{row['epsilon']:g}", *figures
                )
        console.print(table)


def main():
    grids = {"steps": STEPS, "clips": CLIPS, "rates": RATES, "momenta": MOMENTA}
    run("outcomes", __doc__.splitlines()[0], TABLES, compare, tell=(show,), settings={"grids": grids})


if __name__ == "__main__":
    main()
