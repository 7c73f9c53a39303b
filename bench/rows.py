"""Compare models of ordered classes and of times, defaults untouched, with other models on the same records.

    python -m bench.rows [--draws 8] [--only TABLE ...] [--json FILE]

One encoding (the domain's), one split, one budget, as in ``bench.peers``. Without privacy, ordered classes
have statsmodels' ``OrderedModel`` and times a logistic regression of scikit-learn on a row for each period
that a record was at risk in. Gradient descent has the loss of ours without its cap, by person: the logistic
losses of her rows, each weighing one over the number of places. Her gradient is clipped, and all settings are
tuned on the test set. Classes are predicted by the median. Figures are medians over draws of the noise.
"""

import time
import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import expost
from bench.comparison import DELTA, EPSILONS, SEED, all_rows, medians
from bench.over_tables import run
from bench.peers import MORE
from bench.rivals import Descent, descended
from bench.row_tables import CHOSEN_ON, ORDERED, TIMES
from bench.tuning import tuned
from expost.data.encoding import encode_records, encode_rows
from expost.data.weights import Declared
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.fitting.prediction import concordance
from papers.datasets import DataUnavailable

KINDS = {"ordered": (ORDERED, expost.OrdinalRegression), "times": (TIMES, expost.SurvivalRegression)}
TABLES = [f"{kind}: {name}" for kind, (tables, _) in KINDS.items() for name in tables]
# What is tuned for, whether large or small is good, and what is shown.
GOALS = {
    "ordered": {"accuracy": (1.0, ("accuracy",)), "mae": (-1.0, ("mae",))},
    "times": {"concordance": (1.0, ("concordance",))},
}
STEPS, CLIPS = (3, 10, 30), (0.5, 0.15, 0.05)
RATES, MOMENTA = (0.1, 0.4, 1.6, 6.4, 25.6), (0.0, 0.9)
# Tables of fewer rows are cheap and their scores spread widely: they get more draws.
SMALL = 1_000


@dataclass(frozen=True)
class Steps:
    """Records for fitting: of each of their rows the label, 0 or 1, and whether the row counts."""

    X: np.ndarray
    answers: np.ndarray
    counted: np.ndarray
    radius: float


def clipped_sum(X, answers, counted, weights, clips):
    """The sum of the gradients of people, each cut to its clip: features first, then the places; by model.

    A person's loss is the sum of the logistic losses of her rows (x, e_k) that count, over the number of rows
    that she could have.
    """
    places = answers.shape[1]
    slopes = (X @ weights[:-places])[:, None, :] + weights[-places:]
    slopes = (0.5 + 0.5 * np.tanh(0.5 * slopes) - answers[:, :, None]) * counted[:, :, None] / places
    along = slopes.sum(axis=1)
    lengths = np.sum(X * X, axis=1, keepdims=True)
    norms = np.sqrt(lengths * along**2 + np.einsum("rkm,rkm->rm", slopes, slopes))
    kept = clips / np.maximum(norms, clips)
    return np.vstack([X.T @ (along * kept), np.einsum("rkm,rm->km", slopes, kept)])


def descend(problem, settings, draws, delta, seed):
    """DP-GD with a person in place of a record: coefficients of shape (d + places, settings, draws)."""
    given = [one.astype(np.float32) for one in (problem.X, problem.answers, problem.counted)]

    def of_block(rows, weights, clips):
        return clipped_sum(*(one[rows] for one in given), weights, clips)

    d = problem.X.shape[1] + problem.answers.shape[1]
    return descended(of_block, problem, d, settings, draws, delta, seed)


class Rows:
    """One table, and every model on it."""

    def __init__(self, kind, fitted, judged, draws):
        self.kind, self.fitted, self.judged, self.draws = kind, fitted, judged, draws
        self.domain, self.label = fitted.domain, fitted.domain.label
        self.places = self.label.places
        plan = self.model(1.0).fit(fitted.columns, fitted.outcome).plan_
        self.radius = plan.radius
        # The column of ones that other models have last is each row's own here.
        self.X, self.test = (
            all_rows(encode_rows(self.domain.encode(one.columns), Declared.of(plan)))[:, :-1]
            for one in (fitted, judged)
        )
        declared = self.declared(plan)
        self.codes, self.test_codes = (declared.labels(one.outcome, len(one)) for one in (fitted, judged))

    def model(self, epsilon):
        """Our estimator as a new user would call it."""
        return KINDS[self.kind][1](domain=self.domain, epsilon=epsilon, delta=DELTA, random_state=SEED)

    def declared(self, plan):
        """What is declared about the records of a plan."""
        return Declared.of(plan, classes=getattr(self.label, "classes", None), domain=self.domain)

    def judge(self, coefficients):
        """Scores of the models whose coefficients are the columns: features first, then the places."""
        along, places = self.test @ coefficients[: -self.places], coefficients[-self.places :]
        if self.kind == "ordered":
            reached = np.sum(along[:, None, :] + places > 0.0, axis=1)
            misses = np.abs(reached - self.test_codes[:, None])
            return {"accuracy": np.mean(misses == 0, axis=0), "mae": np.mean(misses, axis=0)}
        ones = np.ones(len(self.test))
        times = [
            self.label.predicted(np.asarray(one[:, None] + place, dtype=np.float64))
            for one, place in zip(along.T, places.T, strict=True)
        ]
        return {"concordance": np.array([concordance(one, self.test_codes, ones) for one in times])}

    def ours(self, epsilon):
        """Scores of our model; the first draw is the estimator's own fit."""
        model = self.model(epsilon).fit(self.fitted.columns, self.fitted.outcome)
        plan, corners = model.plan_, model.publication_.release.corners
        records = encode_records(self.fitted.columns, self.fitted.outcome, self.declared(plan))
        found = [
            perturb(plan, records, noise=noise_source(seed), corners=corners)[0].coefficients
            for seed in range(SEED, SEED + self.draws)
        ]
        if not np.array_equal(model.publication_.coefficients, found[0]):
            raise AssertionError("the rows compared are not those that the estimator fits")
        return medians(self.judge(np.stack(found, axis=1)))

    def plain(self):
        """Without privacy."""
        found = self.by_order() if self.kind == "ordered" else self.by_periods()
        return medians(self.judge(found[:, None]))

    def constant(self):
        """Without features: the most common class, and the median, of the records for fitting."""
        common = np.argmax(np.bincount(self.codes.astype(int)))
        misses = np.abs(self.test_codes - np.median(self.codes))
        return {"accuracy": float(np.mean(self.test_codes == common)), "mae": float(np.mean(misses))}

    def by_order(self):
        """The coefficients of statsmodels' cumulative logit, whose thresholds are minus our intercepts."""
        from statsmodels.miscmodels.ordinal_model import OrderedModel

        model = OrderedModel(self.codes.astype(int), self.X, distr="logit")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Hessians, which are not used here
            params = model.fit(method="bfgs", maxiter=500, disp=0, skip_hessian=True).params
        found = np.asarray(params)
        return np.append(found[: self.X.shape[1]], -model.transform_threshold_params(found)[1:-1])

    def by_periods(self):
        """The coefficients of a logistic regression on the rows that count, with hardly a penalty."""
        happened, counts = self.label.answers(self.codes)
        person, period = np.nonzero(counts)
        rows = np.column_stack([self.X[person], np.eye(self.places)[period]])
        fit = LogisticRegression(C=100.0, fit_intercept=False, max_iter=1000)
        return fit.fit(rows, happened[person, period]).coef_[0]

    def run(self):
        """Every model's scores at every epsilon."""
        results = {
            "plain": dict.fromkeys(EPSILONS, self.plain()),
            "ours": {epsilon: self.ours(epsilon) for epsilon in EPSILONS},
        }
        if self.kind == "ordered":
            results["constant"] = dict.fromkeys(EPSILONS, self.constant())
        grid = [Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        return results | tuned(self.try_all, {"clipped": grid}, self.draws, GOALS[self.kind])

    def try_all(self, settings, draws):
        """Median scores of every setting; those with the same number of steps run together."""
        problem, scored = Steps(self.X, *self.label.answers(self.codes), self.radius), {}
        for steps in sorted({setting.steps for setting in settings}):
            group = sorted((setting for setting in settings if setting.steps == steps), key=str)
            found = descend(problem, group, draws, DELTA, SEED)
            scored |= {one: medians(self.judge(found[:, place])) for place, one in enumerate(group)}
        return scored


def compare(name, draws, _):
    """One row for each epsilon, and the seconds it took, or why the table is missing."""
    start, (kind, title) = time.perf_counter(), name.split(": ")
    tables, _ = KINDS[kind]
    try:
        with threadpool_limits(1):
            fitted, judged = tables[title]()
            draws *= MORE if len(fitted) < SMALL else 1
            comparison = Rows(kind, fitted, judged, draws)
            results = comparison.run()
    except DataUnavailable as error:
        return [], f"{name} is left out: {error}"
    about = {"table": name, "kind": kind, "rows": len(fitted), "test_rows": len(judged), "draws": draws}
    about |= {"columns": comparison.X.shape[1], "places": comparison.places}
    about["chosen_on"] = kind == "ordered" and list(tables).index(title) < CHOSEN_ON
    rows = [
        {**about, "epsilon": epsilon} | {peer: scored[epsilon] for peer, scored in results.items()}
        for epsilon in EPSILONS
    ]
    return rows, f"{name}: {time.perf_counter() - start:.0f} s"


def show(rows, console):
    """One table for every kind."""
    for kind, figures in GOALS.items():
        table = Table(title=f"{kind}, δ = {DELTA:g}", title_justify="left")
        peers = ("constant",) * (kind == "ordered") + ("plain", "ours", "clipped")
        for column in ("table", "ε", *(f"{figure}, {peer}" for figure in figures for peer in peers)):
            table.add_column(column)
        for row in rows:
            if row["kind"] == kind:
                found = [f"{row[peer][figure]:.3f}" for figure in figures for peer in peers]
                table.add_row(row["table"], f"{row['epsilon']:g}", *found)
        console.print(table)


def main():
    grids = {"steps": STEPS, "clips": CLIPS, "rates": RATES, "momenta": MOMENTA}
    run("rows", __doc__.splitlines()[0], TABLES, compare, tell=(show,), settings={"grids": grids})


if __name__ == "__main__":
    main()
