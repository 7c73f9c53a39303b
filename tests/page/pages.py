"""Publications of every loss and report kind for the page's tests, and random people to read them."""

import math
from functools import cache

import node
import numpy as np
import pandas as pd
import pytest
from problems import REGISTRY, encoded_table

from expost import (
    AmountLabel,
    BoundedGamma,
    BoundedPoisson,
    Category,
    ClassLabel,
    CountLabel,
    Domain,
    LogisticLoss,
    Number,
    NumberLabel,
    PseudoHuber,
    Publication,
    SmoothedHinge,
    SmoothedPinball,
    SoftmaxLoss,
    SquaredLoss,
    TimeLabel,
    YesNo,
    calibrate,
    total,
)
from expost.data.encoding import encode_records, with_labels
from expost.data.tables import open_table
from expost.data.weights import UNWEIGHTED, Declared
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.losses.corners import Corners
from expost.page.numbers import CONFIDENCES

EXAMPLES = {
    "logistic": LogisticLoss(),
    "soft": LogisticLoss(soft=True),
    "capped": LogisticLoss(cap=0.65, corner=0.8),
    "capped-gradients": LogisticLoss(cap=0.5, corner=0.8, gradient_cap=0.9),
    "hinge": SmoothedHinge(0.3),
    "huber": PseudoHuber(0.7),
    "huber-gradients": PseudoHuber(0.3, gradient_cap=0.4),
    "squared": SquaredLoss(),
    "quantile": SmoothedPinball(0.8, 0.2),
    "count": BoundedPoisson(8.0, 1.5),
    "amount": BoundedGamma(0.6),
    "softmax": SoftmaxLoss(4),
    "softmax-capped": SoftmaxLoss(3, cap=0.65),
    "softmax-gradients": SoftmaxLoss(3, cap=0.5, gradient_cap=0.9),
}
CLASSES = ("no", "yes", "perhaps", "later")
# Every loss of the registry is tested: one without an example fails by its name.
LOSSES = [*EXAMPLES, *(name for name in REGISTRY if name not in {loss.name for loss in EXAMPLES.values()})]
KINDS = ("independent", "leverage", "dependent", "adaptive")
# Every loss with some report; of several classes, whose plans and figures take longest, `make test` has one.
SOME = [
    pytest.param(loss, KINDS[place % 4], marks=[pytest.mark.docs] * (loss in ("softmax", "softmax-capped")))
    for place, loss in enumerate(LOSSES)
]
FEATURES = (
    Number(name="age", low=0.0, high=100.0, missing=50.0),
    Number(name="income", low=-1000.0, high=90000.0, scale="unit"),
    Category(name="ward", categories=("north", "south, old", 'the "east"'), missing="north"),
    YesNo(name="smoker", missing=False),
    YesNo(name="insured"),
)
SCALES = {"sigma_gradient": 3.0, "sigma_hessian": 0.4, "sigma_eigenvalue": 0.5}
WITH = {"independent": 0, "leverage": 1, "dependent": 2, "adaptive": 3}


def example(name):
    """An instance of a loss to test with."""
    if name not in EXAMPLES:
        pytest.fail(f"the registry has the loss {name!r}, and tests/page/pages.py has no example of it")
    return EXAMPLES[name]


def domain_for(loss):
    """The domain for a loss; None for soft labels, which a domain cannot declare."""
    if loss.labels.values is not None:
        classes = CLASSES[: len(loss.labels.values)]
        return Domain(features=FEATURES, label=ClassLabel(name="ill", classes=classes), norm=1.6)
    if loss.log_link:
        count, amount = CountLabel(name="score", high=30.0), AmountLabel(name="score", low=0.5, high=40.0)
        return Domain(features=FEATURES, label=count if loss.name == "bounded_poisson" else amount)
    if math.isfinite(loss.labels.high):
        return None
    return Domain(features=FEATURES, label=NumberLabel(name="score", low=-5.0, high=20.0))


def people(rng, count, domain, loss):
    """Answers as texts, some missing where that is allowed, some beyond their bounds; the outcome last."""
    if domain is None:
        rows = rng.normal(size=(count, 4)) * rng.choice([0.1, 1.0, 30.0], size=(count, 1))
        low, high = loss.labels.low, loss.labels.high
        return [[repr(float(x)) for x in row] + [repr(float(rng.uniform(low, high)))] for row in rows]
    columns = [
        [str(x) if x < 130 else "" for x in rng.uniform(-20, 140, count).round(3).tolist()],
        [repr(x) for x in rng.normal(30000, 40000, count).tolist()],
        rng.choice(["north", "south, old", 'the "east"', ""], count).tolist(),
        rng.choice(["yes", "No", "TRUE", "0", ""], count).tolist(),
        rng.choice(["yes", "no", " y", "f"], count).tolist(),
    ]
    if loss.labels.values is None:
        columns.append([repr(x) for x in rng.uniform(-9, 25, count).tolist()])
    else:
        columns.append(rng.choice(domain.label.classes, count).tolist())
    return [list(row) for row in zip(*columns, strict=True)]


def as_table(answers, domain, *, classified=False):
    """The same answers as the library takes them; ``classified`` where there are classes and no domain."""
    rows, labels = [row[:-1] for row in answers], [row[-1] for row in answers]
    if domain is None:
        X = np.array([[float(text) for text in row] for row in rows])
        return X, labels if classified else np.array(labels, dtype=float)
    names = [feature.name for feature in domain.features]
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    if isinstance(domain.label, TimeLabel):  # from codes: a time within the last period that counts
        codes = np.array(labels, dtype=float)
        return frame, (domain.label.length * (codes // 2), codes % 2)
    return frame, labels if domain.classes is not None else np.array(labels, dtype=float)


@cache
def published(
    name,
    kind,
    *,
    cornered=False,
    fit_intercept=True,
    rows=120,
    seed=3,
    weighting=UNWEIGHTED,
    reduced=False,
    sigma=4.0,
    sigma_gradient=SCALES["sigma_gradient"],
    unit="row",
    sigma_recalibration=None,
):
    loss = example(name)
    domain = domain_for(loss)
    norm = 1.3 if domain is None else domain.row_norm
    order = ("sigma_hessian", "sigma_gradient", "sigma_eigenvalue")[: WITH[kind]]
    plan = calibrate(
        loss=loss,
        norm=norm,
        report=kind,
        fit_intercept=fit_intercept,
        l2=2.0,
        sigma=sigma,
        max_weight=weighting.largest,
        reduced=reduced,
        unit=unit,
        recalibrate=sigma_recalibration is not None,
        sigma_recalibration=sigma_recalibration,
        **{scale: (SCALES | {"sigma_gradient": sigma_gradient})[scale] for scale in order},
    )
    X, y = as_table(people(np.random.default_rng(seed), rows, domain, loss), domain)
    design = encoded_table(open_table(X, domain), norm=norm, fit_intercept=fit_intercept)
    classes = getattr(domain and domain.label, "classes", None)
    declared = Declared.of(plan, classes=classes, domain=domain, weighting=weighting)
    records = with_labels(design, y, declared)
    if unit == "person":
        records = encode_records(X, y, declared, groups=np.arange(rows) // 3)
    columns = records.design.dimension - fit_intercept
    corners = Corners.of(2.0, np.where(np.arange(columns) == 1, 0.0, -0.3), np.inf, intercept=fit_intercept)
    release, _ = perturb(
        plan,
        records,
        noise=SeededNoise(seed),
        corners=corners if cornered else None,
    )
    names = None if domain is None else domain.column_names
    return Publication.from_release(
        release, classes=classes, feature_names=names, domain=domain, weighting=weighting
    )


@cache
def wide(name):
    """A publication with eight numbers and six lists, a Hessian among its statistics."""
    loss = example(name)
    numbers = [Number(name=f"n{k}", low=-1.0, high=1.0 + k) for k in range(8)]
    lists = [Category(name=f"c{k}", categories=tuple("abcdef"[: 3 + k % 3])) for k in range(5)]
    domain = Domain(features=(*numbers, *lists, YesNo(name="z")), label=domain_for(loss).label)
    rng, rows = np.random.default_rng(7), 150
    columns = {one.name: rng.uniform(one.low, one.high, rows) for one in numbers}
    columns |= {one.name: rng.choice(one.categories, rows) for one in lists}
    frame = pd.DataFrame(columns | {"z": rng.choice(["yes", "no"], rows)})
    label = domain.label
    y = rng.choice(label.classes, rows) if domain.classes else rng.uniform(label.low, label.high, rows)
    shape = {"norm": domain.row_norm, "fit_intercept": True, "l2": 2.0, "sigma": 4.0, "sigma_hessian": 2.0}
    plan = calibrate(
        loss=loss, report="leverage", reduced=domain.classes is not None and name == "softmax", **shape
    )
    declared = Declared.of(plan, classes=domain.classes, domain=domain, weighting=UNWEIGHTED)
    release, _ = perturb(plan, encode_records(frame, y, declared, None), noise=SeededNoise(3))
    public = {"classes": domain.classes, "feature_names": domain.column_names, "domain": domain}
    return Publication.from_release(release, **public, weighting=UNWEIGHTED)


def questions(rng, count):
    """How to read each record: the place of a confidence, the membership, and for how many records."""
    return [
        {
            "confidence": int(rng.integers(len(CONFIDENCES))),
            "member": [True, False, None][rng.integers(3)],
            "every": bool(rng.integers(2)),
        }
        for _ in range(count)
    ]


def by_python(publication, answers, asked, *, sharing=1, weights=None):
    """The library's figures: lower, upper, report's cost and total of each record."""
    figures = np.empty((len(answers), 4))
    for places, options in _alike(asked):
        X, y = as_table([answers[place] for place in places], publication.domain)
        bounds = publication.bounds(
            X,
            y,
            sample_weight=None if weights is None else [weights[place] for place in places],
            **options | {"confidence": 1.0 - (1.0 - options["confidence"]) / sharing},
        )
        figures[places] = np.column_stack([bounds.lower, bounds.upper, bounds.report_cost, bounds.total])
    return figures


def persons_by_python(publication, persons, asked, forgotten, *, sharing=1, weights=None):
    """The library's figures of people: each has the answers of several rows, and some that are forgotten."""
    levels, figures = list(CONFIDENCES.values()), np.empty((len(persons), 4))
    for place, (rows, options) in enumerate(zip(persons, asked, strict=True)):
        X, y = as_table(rows, publication.domain)
        bounds = publication.bounds(
            X,
            y,
            groups=[1] * len(rows),
            forgotten=forgotten[place],
            sample_weight=None if weights is None else weights[place],
            confidence=1.0 - (1.0 - levels[options["confidence"]]) / sharing,
            member=options["member"],
            simultaneous="all" if options["every"] else None,
        )
        figures[place] = [bounds.lower[0], bounds.upper[0], bounds.report_cost[0], bounds.total[0]]
    return figures


def totals_by_python(publications, answers, asked, groups=None):
    """The library's bound on what several publications cost each record, or these groups, together."""
    totals = np.empty(len(answers))
    for places, options in _alike(asked):
        X, y = as_table([answers[place] for place in places], publications[0].domain)
        totals[places] = total(publications, X, y, groups=groups, **options)
    return totals


def _alike(asked):
    """The places of questions that are the same, and the question as the library asks it."""
    groups: dict[tuple, list[int]] = {}
    for place, options in enumerate(asked):
        groups.setdefault(tuple(options.values()), []).append(place)
    levels = list(CONFIDENCES.values())
    for (confidence, member, every), places in groups.items():
        simultaneous = "all" if every else None
        yield places, {"confidence": levels[confidence], "member": member, "simultaneous": simultaneous}


def by_node(numbers, asked):
    """The page's figures, from its own modules: ``asked`` holds publication, answers and options.

    Without a publication, None, the figures are the bound of all together and the wallet, -1 where none is.
    """
    return np.array(node.answer("batch.mjs", {"numbers": numbers, "asked": asked}))


def discrepancy(ours, theirs):
    """The largest relative difference of upper end, report's cost and total, and of the lower end.

    The lower end is a difference of the terms, which may cancel, so it is measured against the upper end.
    """
    scale = np.abs(theirs)
    scale[:, 0] = theirs[:, 1]
    return float(np.max(np.abs(ours - theirs) / np.where(scale > 0.0, scale, 1.0)))
