"""Publications for tests, and functions to forge one: change fields, then compute the hash again."""

import json
import warnings
from functools import cache

import numpy as np

import expost
from expost._common.strict_json import digest
from expost.exceptions import UndeclaredWarning

rng = np.random.default_rng(12)
X = rng.normal(size=(60, 2)) / 3
Y = rng.integers(0, 2, 60)
KINDS = ("independent", "leverage", "dependent", "adaptive")


def fit(kind="independent", table=X, labels=Y, **changes):
    parameters = {"norm": 1.0, "classes": [0, 1], "report": kind, "random_state": 5} | changes
    return expost.LogisticRegression(**parameters).fit(table, labels)


@cache
def published(kind="independent"):
    return fit(kind).publication_


@cache
def squared():
    plan = expost.calibrate(loss="squared", sigma=1.0, l2=1.0, fit_intercept=True)
    model = expost.LinearRegression(plan=plan, random_state=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndeclaredWarning)
        return model.fit(X, X[:, 0]).publication_


def document(kind="independent"):
    return json.loads(published(kind).to_json())


def signed(fields):
    """The text of a file with these fields and a matching hash."""
    others = {key: value for key, value in fields.items() if key != "sha256"}
    return json.dumps(others | {"sha256": digest(others)})


def forged(kind="independent", **changes):
    """A file with changed fields, given by dotted names, and a matching hash."""
    fields = document(kind)
    for name, value in changes.items():
        *path, last = name.split("__")
        place = fields
        for part in path:
            place = place[part]
        place[last] = value
    return signed(fields)
