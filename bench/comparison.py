"""Every model on one table: ours with its defaults, and the other private models with their best settings."""

from functools import partial
from itertools import product

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

import expost
from bench import rivals, scores
from bench.private_tuning import tuned_privately
from bench.rivals import Descent, Newton, Problem
from bench.tuning import elsewhere, only, tuned
from expost.data.encoding import encode_rows, with_labels
from expost.data.weights import Declared
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.fitting.recalibration import calibration_of

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 8.0)
# The grids of free tuning; a clip of 1 is R, which is none for the logistic loss.
STEPS, CLIPS = (1, 3, 10, 30, 100), (1.0, 0.5, 0.25, 0.1, 0.03)
RATES, MOMENTA = (0.025, 0.1, 0.4, 1.6, 6.4, 25.6), (0.0, 0.9)
NEWTON_STEPS, SHARES, FLOORS = (1, 3, 8), (0.2, 0.5), (0.4, 1.6, 6.4, 25.6, 102.4)
SEED = 2
# At which recalibrated scores are computed, those between them on lines.
POINTS = 500


class Comparison:
    """One table: its rows as our mechanism sees them, and every model on them."""

    def __init__(self, fitted, judged, draws):
        self.fitted, self.judged, self.draws = fitted, judged, draws
        self.domain = fitted.domain
        self.logistic = self.domain.classes is not None
        # Encoded once. A fit of these rows equals one of the records with the domain; `ours` checks it.
        self.encoded = fitted.domain.encode(fitted.columns), judged.domain.encode(judged.columns)
        plan = self.plan(1.0)
        self.rows, self.test_rows = (all_rows(encode_rows(rows, Declared.of(plan))) for rows in self.encoded)
        self.labels, self.test_labels = fitted.labels(), judged.labels()
        self.problem = Problem(self.rows, self.labels, plan.radius, self.logistic)

    @property
    def small(self):
        """A few records: what a plan says does not depend on them."""
        return self.fitted.split(min(0.5, 20.0 / len(self.fitted)), 0)[0]

    def plan(self, epsilon, **parameters):
        """The plan of our model."""
        return self.model(epsilon, **parameters).fit(self.small.columns, self.small.outcome).plan_

    def model(self, epsilon, **parameters):
        """Our estimator as a new user would call it."""
        estimator = expost.LogisticRegression if self.logistic else expost.LinearRegression
        return estimator(domain=self.domain, epsilon=epsilon, delta=DELTA, random_state=SEED, **parameters)

    def score(self, coefficients):
        """Scores of the models whose coefficients are the columns."""
        return self.judge(self.test_rows @ coefficients)

    def judge(self, predictions):
        """Scores of the predictors of the test rows, one column per model."""
        judge = scores.classification if self.logistic else scores.regression
        return judge(predictions, self.test_labels)

    def median(self, coefficients):
        """Medians of the scores over the columns."""
        return medians(self.score(coefficients))

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
        releases = self.releases(epsilon, **parameters)
        return medians(self.judge(np.stack([self.predictions(one) for one in releases], axis=1)))

    def predictions(self, release):
        """The predictors of the test rows, as published numbers read them where there are some."""
        return read(calibration_of(release), self.test_rows @ release.coefficients)

    def coefficients(self, epsilon, **parameters):
        """The coefficients of our model in every draw."""
        return np.stack([one.coefficients for one in self.releases(epsilon, **parameters)], axis=1)

    def releases(self, epsilon, **parameters):
        """What is released in every draw; the first draw is the estimator's own fit."""
        model = self.model(epsilon, **parameters).fit(self.fitted.columns, self.fitted.outcome)
        corners, records = model.publication_.release.corners, self.records(model.plan_)
        found = [
            perturb(model.plan_, records, noise=noise_source(seed), corners=corners)[0]
            for seed in range(SEED, SEED + self.draws)
        ]
        if not np.array_equal(np.append(np.ravel(model.coef_), model.intercept_), found[0].coefficients):
            raise AssertionError("the rows compared are not those that the estimator fits")
        return found

    def records(self, plan):
        """The rows for fitting and their labels, as a plan takes them."""
        declared = Declared.of(plan, classes=self.domain.classes, domain=self.domain)
        return with_labels(encode_rows(self.encoded[0], Declared.of(plan)), self.fitted.outcome, declared)

    def descend(self, settings, draws, seed=SEED):
        """Coefficients of gradient descent: settings and draws are the last axes."""
        return rivals.gradient_descent(self.problem, settings, draws, DELTA, seed)

    def cost(self, coefficients):
        """The squared error of each model's predictions of the rows for fitting, at most 1 for each row."""
        found = self.rows @ coefficients
        errors = (expit(found) if self.logistic else found) - self.labels[:, None]
        return np.sum(np.minimum(errors**2, 1.0), axis=0)

    def chosen_elsewhere(self, name):
        """DP-GD with one setting for all tables, and tuned within its budget among a few settings."""
        kind, found = "two classes" if self.logistic else "regression", {"fixed": {}, "private": {}}
        for epsilon in EPSILONS:
            fixed, few = elsewhere(kind, name, epsilon)
            own = tuned_privately(self.descend, self.cost, few, self.draws, DELTA, SEED)
            found["fixed"][epsilon] = self.median(self.descend([fixed], self.draws)[:, 0])
            found["private"][epsilon] = self.median(own)
        return found

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

    def run(self, name, wanted):
        """The scores of the models that are wanted, at every epsilon, by model."""

        def each(measure):
            return {epsilon: measure(epsilon) for epsilon in EPSILONS}

        grid = [Descent(*setting) for setting in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        families = {"clipped": grid}
        groups = {
            ("plain",): lambda: {"plain": dict.fromkeys(EPSILONS, self.plain())},
            ("ours",): lambda: {"ours": each(self.ours)},
            ("kifer",): lambda: {"kifer": each(partial(self.ours, calibration="kifer2012"))},
            ("fixed", "private"): lambda: self.chosen_elsewhere(name),
        }
        if self.logistic:
            families["unclipped"] = [setting for setting in grid if setting.clip == 1.0]
            second = [Newton(*setting) for setting in product(EPSILONS, NEWTON_STEPS, SHARES, FLOORS)]
            groups["newton",] = lambda: self.tuned(rivals.newton, {"newton": second})
            groups["recalibrated",] = lambda: {"recalibrated": each(partial(self.ours, recalibrate=True))}
        else:
            for peer, release in (("adassp", rivals.adaptive_statistics), ("ssp", rivals.statistics)):
                groups[peer,] = partial(self.by_statistics, peer, release)
        groups[*families] = lambda: self.tuned(rivals.gradient_descent, families)
        return only(wanted, groups)

    def by_statistics(self, peer, release):
        """A regression by noisy statistics."""
        drawn = {at: release(self.problem, at, self.draws, DELTA, SEED) for at in EPSILONS}
        return {peer: {epsilon: self.median(found) for epsilon, found in drawn.items()}}


def read(curve, scores):
    """Scores as a histogram reads them, which is smooth and rising: between so many points on lines."""
    if curve is None:
        return scores
    points = np.linspace(np.min(scores), np.max(scores), POINTS)
    return np.interp(scores, points, curve.corrected(points))


def medians(scored):
    """The median of every score."""
    return {name: float(np.median(values)) for name, values in scored.items()}


def all_rows(records):
    """The rows as the mechanism sees them."""
    parts = records.sweep(lambda blocks: [block.X.copy() for block in blocks])
    return np.concatenate([rows for part in parts for rows in part])
