"""Compare ways to promise something to people who have several rows each.

    python -m bench.people [--draws 8] [--json FILE]

All promise (epsilon, delta) to a person with all of her rows, and see the same encoded rows. Ours with its
defaults and ``unit="person"``; ours on one row of each person, drawn at random, as where all but one are cut
off; ours on all rows, with a promise to a row that is so strict that the most rows a person has are promised
as much; and gradient descent with the mean gradient of each person's rows, cut to a clip.
Figures weigh every test person alike. Medians over draws of the noise.
"""

import argparse
import math
from itertools import product

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import expost
from bench.comparison import DELTA, EPSILONS, SEED, all_rows, medians
from bench.rivals import Descent, multiplier
from bench.saving import RESULTS, save
from bench.tuning import elsewhere, tuned
from expost import research
from expost.data.encoding import encode_rows
from expost.data.weights import Declared
from papers.datasets import credit

STEPS, CLIPS = (10, 30, 100), (0.5, 0.25, 0.1)
RATES, MOMENTA = (0.1, 0.4, 1.6, 6.4), (0.0, 0.9)
GOALS = {"auc": (1.0, ("auc",)), "log_loss": (-1.0, ("log_loss",))}
# The months of the table of credit, the latest first.
MONTHS = ("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")


def months(people=6_000):
    """Was a client late in a month? One to five months of each at random, and the month before each."""
    whole = credit()
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(whole))[:people]
    given = {name: np.asarray(cells, dtype=float)[chosen] for name, cells in whole.columns.items()}
    late = np.stack([given[name] for name in MONTHS])
    bills = np.stack([given[f"BILL_AMT{month}"] for month in range(1, 7)])
    counts = rng.integers(1, 6, people)
    parts = []
    for month in range(5):
        here = counts > month
        before = [late[month + 1], bills[month + 1], given["LIMIT_BAL"], given["AGE"], given["EDUCATION"]]
        parts.append((np.flatnonzero(here), np.stack(before, axis=1)[here], late[month][here] > 0.0))
    lows, highs = (0.0, 0.0, 0.0, 20.0, 0.0), (9.0, 500_000.0, 500_000.0, 80.0, 6.0)
    return *(np.concatenate(one) for one in zip(*parts, strict=True)), lows, highs


def visits(people=2_000, columns=8):
    """Invented: one to twelve visits of each person; people differ more than the visits of one do."""
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(people), rng.integers(1, 13, people))
    own = rng.uniform(-1.0, 1.0, (people, columns))[ids]
    X = np.clip(own + 0.3 * rng.normal(size=own.shape), -1.0, 1.0)
    y = rng.random(len(X)) < expit(2.0 * X @ rng.normal(size=columns))
    return ids, X, y, (-1.0,) * columns, (1.0,) * columns


TABLES = {"months of credit": months, "visits, made up": visits}


class People:
    """Rows of people for fitting and for judging, and every model on them."""

    def __init__(self, table, draws):
        ids, X, y, low, high = table()
        self.draws = draws
        names = [f"x{place}" for place in range(X.shape[1])]
        features = [
            expost.Number(name=name, low=a, high=b) for name, a, b in zip(names, low, high, strict=True)
        ]
        self.domain = expost.Domain(
            features=features, label=expost.ClassLabel(name="y", classes=(False, True))
        )
        order = np.argsort(ids, kind="stable")
        ids, X, y = ids[order], X[order], y[order].astype(int)
        tested = np.random.default_rng(2).random(ids.max() + 1) < 0.5
        rows = self.domain.encode(dict(zip(names, X.T, strict=True)))
        self.ids, self.given, self.y = ids[~tested[ids]], rows[~tested[ids]], y[~tested[ids]]
        self.most = int(np.bincount(self.ids).max())
        plan = self.plan(1.0)
        self.radius = plan.radius
        seen = all_rows(encode_rows(rows, Declared.of(plan)))
        self.X, self.test = seen[~tested[ids]], seen[tested[ids]]
        self.test_y, test_ids = y[tested[ids]], ids[tested[ids]]
        self.weights = 1.0 / np.bincount(test_ids)[test_ids]
        self.starts = np.flatnonzero(np.diff(self.ids, prepend=-1))
        self.counts = np.diff(np.append(self.starts, len(self.ids)))

    def plan(self, epsilon, unit="row"):
        """The plan of our model, as a new user would have it."""
        model = expost.LogisticRegression(
            norm=self.domain.row_norm, classes=[0, 1], epsilon=epsilon, delta=DELTA, unit=unit, random_state=0
        )
        groups = {"groups": np.arange(20)} if unit == "person" else {}
        return model.fit(self.given[:20], self.y[:20], **groups).plan_

    def strict(self, epsilon):
        """The largest promise to a row, to 1%, by which the most rows of a person are promised epsilon."""
        low, high = epsilon / 1e3, epsilon
        while high > 1.01 * low:
            middle = math.sqrt(low * high)
            kept = self.plan(middle).epsilon_for(self.most, DELTA) <= epsilon
            low, high = (middle, high) if kept else (low, middle)
        return low

    def judge(self, coefficients):
        """Scores of the models whose coefficients are the columns."""
        margins = self.test @ coefficients
        auc = [roc_auc_score(self.test_y, one, sample_weight=self.weights) for one in margins.T]
        loss = [log_loss(self.test_y, expit(one), sample_weight=self.weights) for one in margins.T]
        return {"auc": np.array(auc), "log_loss": np.array(loss)}

    def released(self, plan, rows=slice(None), groups=None):
        """Median scores of our model over the draws."""
        drawn = [
            research.draw(plan, self.given[rows], self.y[rows], random_state=SEED + k, groups=groups)[0]
            for k in range(self.draws)
        ]
        return medians(self.judge(np.stack([one.coefficients for one in drawn], axis=1)))

    def ours(self, epsilon):
        """With a promise to people."""
        return self.released(self.plan(epsilon, "person"), groups=self.ids)

    def one_row(self, epsilon):
        """One row of each person, the others cut off."""
        kept = self.starts + np.random.default_rng(3).integers(0, self.counts)
        return self.released(self.plan(epsilon), rows=kept)

    def strict_rows(self, epsilon):
        """All rows, with a stricter promise to each."""
        strict = self.strict(epsilon)
        return self.released(self.plan(strict)) | {"row": strict}

    def plain(self):
        """Without privacy, every person weighed alike."""
        weights = 1.0 / np.repeat(self.counts, self.counts)
        model = LogisticRegression(fit_intercept=False, C=100.0, solver="newton-cholesky")
        return medians(self.judge(model.fit(self.X, self.y, sample_weight=weights).coef_.T))

    def descend(self, settings, draws):
        """DP-GD from zero with full batches of people: coefficients of shape (d, settings, draws)."""
        (steps,) = {setting.steps for setting in settings}

        def columns(values):
            return np.repeat(np.array(values), draws)

        clips = columns([setting.clip * self.radius for setting in settings])
        rates = columns([setting.rate for setting in settings]) / self.radius / len(self.counts)
        momenta = columns([setting.momentum for setting in settings])
        noise = math.sqrt(steps) * columns([multiplier(setting.epsilon, DELTA) for setting in settings])
        rng = np.random.default_rng(SEED)
        weights = np.zeros((self.X.shape[1], len(clips)))
        velocity = np.zeros_like(weights)
        for _ in range(steps):
            slopes = expit(self.X @ weights) - self.y[:, None]
            sums = [np.add.reduceat(slopes * column[:, None], self.starts) for column in self.X.T]
            gradients = np.stack(sums) / self.counts[:, None]
            lengths = np.sqrt(np.sum(gradients**2, axis=0))
            total = np.einsum("dpm,pm->dm", gradients, clips / np.maximum(lengths, clips))
            drawn = np.tile(rng.standard_normal((len(weights), draws)), len(settings))
            velocity = momenta * velocity - rates * (total / clips + noise * drawn)
            weights += velocity
        return weights.reshape(len(weights), len(settings), draws)

    def try_all(self, settings, draws):
        """Median scores of settings."""
        found = {}
        for steps in {setting.steps for setting in settings}:
            some = [setting for setting in settings if setting.steps == steps]
            for setting, models in zip(some, np.moveaxis(self.descend(some, draws), 1, 0), strict=True):
                found[setting] = medians(self.judge(models))
        return found

    def results(self):
        """Scores of all models."""
        grid = [Descent(*one) for one in product(EPSILONS, STEPS, CLIPS, RATES, MOMENTA)]
        free = tuned(self.try_all, {"free": set(grid)}, self.draws, GOALS)["free"]
        fixed = {one: elsewhere("two classes", "", one)[0] for one in EPSILONS}
        return {
            "people": len(self.counts),
            "rows": len(self.ids),
            "most": self.most,
            "columns": self.X.shape[1],
            "plain": self.plain(),
            "found": {
                f"{epsilon:g}": {
                    "person": self.ours(epsilon),
                    "one row": self.one_row(epsilon),
                    "strict rows": self.strict_rows(epsilon),
                    "free": {name: free[epsilon][name] for name in GOALS},
                    "fixed": self.try_all([fixed[epsilon]], self.draws)[fixed[epsilon]],
                }
                for epsilon in EPSILONS
            },
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--json", default=RESULTS / "people.json")
    chosen = parser.parse_args()
    found = {name: People(table, chosen.draws).results() for name, table in TABLES.items()}
    save(chosen.json, {"draws": chosen.draws, "tables": found})


if __name__ == "__main__":
    main()
