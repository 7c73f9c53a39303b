"""Every model on one table: ours with its defaults, and the other private models with their best settings."""

from functools import partial
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

import expost
from bench import rivals, scores
from bench.rivals import Descent, Newton, Problem
from bench.tuning import tuned
from expost.data.encoding import encode_rows, with_labels
from expost.data.weights import Declared
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 8.0)
# The grids of free tuning; a clip of 1 is R, which is none for the logistic loss.
STEPS, CLIPS = (1, 3, 10, 30, 100), (1.0, 0.5, 0.25, 0.1, 0.03)
RATES, MOMENTA = (0.025, 0.1, 0.4, 1.6, 6.4, 25.6), (0.0, 0.9)
NEWTON_STEPS, SHARES, FLOORS = (1, 3, 8), (0.2, 0.5), (0.4, 1.6, 6.4, 25.6, 102.4)
SEED = 2


class Comparison:
    """One table: its rows as our mechanism sees them, and every model on them."""

    def __init__(self, fitted, judged, draws):
        self.fitted, self.judged, self.draws = fitted, judged, draws
        self.domain = fitted.domain
        self.logistic = self.domain.classes is not None
        # Encoded once. A fit of these rows equals one of the records with the domain; `ours` checks it.
        self.encoded = fitted.domain.encode(fitted.columns), judged.domain.encode(judged.columns)
        plan = self.model(1.0).fit(self.small.columns, self.small.outcome).plan_
        self.rows, self.test_rows = (all_rows(encode_rows(rows, Declared.of(plan))) for rows in self.encoded)
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
        """Medians of the scores over the columns."""
        return {name: float(np.median(values)) for name, values in self.score(coefficients).items()}

    def plain(self):
        """Without privacy; the penalty is chosen by cross-validation on the rows for fitting."""
        if self.logistic:
            base = LogisticRegression(fit_intercept=False, solver="newton-cholesky")
            grid, scoring = {"C": np.geomspace(1e-2, 1e4, 7)}, "neg_log_loss"
        else:
            base = Ridge(fit_intercept=False)
            grid, scoring = {"alpha": np.geomspace(1e-3, 1e3, 13)}, "r2"
        search = GridSearchCV(base, grid, scoring=scoring).fit(self.rows, self.labels)
        return self.median(search.best_estimator_.coef_.reshape(-1, 1))

    def ours(self, epsilon, **parameters):
        """Scores of our model, with its defaults if none are given."""
        return self.median(self.releases(epsilon, **parameters)[1])

    def releases(self, epsilon, **parameters):
        """The plan and the coefficients of every draw; the first draw is the estimator's own fit."""
        model = self.model(epsilon, **parameters).fit(self.fitted.columns, self.fitted.outcome)
        plan = model.plan_
        declared = Declared.of(plan, classes=self.domain.classes, domain=self.domain)
        rows = encode_rows(self.encoded[0], Declared.of(plan))
        records = with_labels(rows, self.fitted.outcome, declared)
        draws = range(SEED, SEED + self.draws)
        corners = model.publication_.release.corners
        coefficients = [
            perturb(plan, records, noise=noise_source(seed), corners=corners)[0].coefficients
            for seed in draws
        ]
        first = np.append(np.ravel(model.coef_), model.intercept_)
        if not np.array_equal(first, coefficients[0]):
            raise AssertionError("the rows compared are not those that the estimator fits")
        return plan, np.stack(coefficients, axis=1)

    def tuned(self, release, families):
        """The median scores of the settings that are best on the test set, at every epsilon, by family."""
        classes = {"auc": (1.0, ("auc",)), "log_loss": (-1.0, ("log_loss", "calibration"))}
        goals = classes if self.logistic else {"r2": (1.0, ("r2",))}
        return tuned(partial(self.try_all, release), families, self.draws, goals)

    def try_all(self, release, settings, draws):
        """Median scores of every setting; those with the same number of steps run together."""
        scored = {}
        for steps in sorted({setting.steps for setting in settings}):
            group = sorted((setting for setting in settings if setting.steps == steps), key=str)
            coefficients = release(self.problem, group, draws, DELTA, SEED)
            scored |= {setting: self.median(coefficients[:, place]) for place, setting in enumerate(group)}
        return scored

    def run(self):
        """Every model's scores at every epsilon."""
        results = {"plain": dict.fromkeys(EPSILONS, self.plain())}
        results["ours"] = {epsilon: self.ours(epsilon) for epsilon in EPSILONS}
        results["kifer"] = {epsilon: self.ours(epsilon, calibration="kifer2012") for epsilon in EPSILONS}
        grid = [Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        families = {"clipped": grid}
        if self.logistic:
            families["unclipped"] = [setting for setting in grid if setting.clip == 1.0]
            second = [Newton(*setting) for setting in product(EPSILONS, NEWTON_STEPS, SHARES, FLOORS)]
            results |= self.tuned(rivals.newton, {"newton": second})
        else:
            for name, release in (("adassp", rivals.adaptive_statistics), ("ssp", rivals.statistics)):
                results[name] = {
                    epsilon: self.median(release(self.problem, epsilon, self.draws, DELTA, SEED))
                    for epsilon in EPSILONS
                }
        return results | self.tuned(rivals.gradient_descent, families)


def all_rows(records):
    """The rows as the mechanism sees them."""
    parts = records.sweep(lambda blocks: [block.X.copy() for block in blocks])
    return np.concatenate([rows for part in parts for rows in part])
