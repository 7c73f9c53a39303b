"""Coefficients without shrinkage: exact where they can be, and every part of their covariance."""

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import design_of, rows_in_ball
from scipy import stats
from scipy.special import expit

import expost
from expost.fitting.release import Release
from expost.inference.coordinates import domain_coordinates, plain_coordinates
from expost.inference.estimate import determined, estimate, model_probabilities, score_ratio
from expost.inference.inference import Inference
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.losses.softmax import centring
from expost.privacy.plan import Plan
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import capped_logistic, capped_softmax


def plan(**changes):
    scales = NoiseScales(**{"sigma": 3.0, "sigma_hessian": 0.5} | changes.pop("scales", {}))
    fields = {
        "loss": LogisticLoss(),
        "norm": 1.0,
        "fit_intercept": True,
        "report": "leverage",
        "calibration": "tight",
        "epsilon": 1.0,
        "delta": 1e-6,
        "l2": 2.0,
    }
    return Plan(scales=scales, **fields | changes)


def release_of(A, theta, made, **others):
    return Release(made, theta, hessian=A + made.l2 * np.eye(len(A)), **others)


def information(d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(3000, d))
    return X.T @ X / 4.0


PLAIN = plain_coordinates(None, 3, intercept=True)


def test_a_quadratic_objective_is_undone_exactly():
    """Where the rows' part is quadratic, one Newton step finds its minimiser, noise apart."""
    rng = np.random.default_rng(1)
    A, best, b = information(), rng.normal(size=4), 3.0 * rng.normal(size=4)
    theta = np.linalg.solve(A + 2.0 * np.eye(4), A @ best - b)
    released = Release(plan(), theta, hessian=A + 2.0 * np.eye(4))
    found = estimate(released, PLAIN)
    np.testing.assert_allclose(found.values, best - np.linalg.solve(A, b), rtol=1e-10)


def test_the_covariance_is_that_of_the_derivation():
    """Sampling and the objective's noise; then the Hessian's, by drawing it."""
    A, theta, made = (
        information(),
        np.array([0.5, -1.0, 2.0, 0.3]),
        plan(l2=40.0, scales={"sigma_hessian": 4.0}),
    )
    found = estimate(release_of(A, theta, made), PLAIN)
    inverse = np.linalg.inv(A)
    rest = found.covariance - inverse @ (A + 9.0 * np.eye(4)) @ inverse
    moved = theta - found.values
    formula = moved @ moved * inverse @ inverse + np.outer(inverse @ moved, inverse @ moved)
    np.testing.assert_allclose(rest, 16.0 * formula, rtol=1e-9)
    rng, draws = np.random.default_rng(3), []
    for _ in range(500):
        Z = rng.normal(size=(4, 4))
        noisy = release_of(A + 4.0 * (Z + Z.T) / math.sqrt(2.0), theta, made)
        draws.append(estimate(noisy, PLAIN).values)
    drawn = np.cov(np.array(draws).T)
    # Each of four variances against its chi-square law, two-sided, to first order: a false alarm of 1e-6.
    ratio, law = np.diag(drawn) / np.diag(rest), stats.chi2(499, scale=1 / 499)
    assert np.all((0.99 * law.ppf(1e-6 / 8) < ratio) & (ratio < 1.01 * law.isf(1e-6 / 8)))


def test_a_step_over_much_curvature_is_said_to_be_too_long():
    A, theta = information(), np.array([0.5, -1.0, 2.0, 0.3])
    short, long = (release_of(A, theta, plan(l2=l2, scales={"sigma_hessian": 0.1})) for l2 in (2.0, 600.0))
    step = 600.0 * np.linalg.solve(A, theta)
    expected = 0.5 * step @ A @ step / math.sqrt(np.trace(A) / 2.0)
    found = estimate(long, PLAIN)
    sampling = np.sqrt(np.max(np.diag(np.linalg.inv(A)) / np.diag(found.covariance)))
    assert found.bend == pytest.approx(expected * sampling, rel=1e-9)
    for release, bent in ((short, False), (long, True)):
        notes = " ".join(Inference(release).table(0.95).notes)
        assert ("intervals may be too narrow" in notes) == bent


@pytest.mark.parametrize(("bend", "bent"), [(0.5, False), (math.nextafter(0.5, 1.0), True)])
def test_the_warning_begins_beyond_half_a_standard_error(bend, bent):
    inference = Inference(release_of(information(), np.array([0.5, -1.0, 2.0, 0.3]), plan()))
    inference.__dict__["estimate"] = replace(inference.estimate, bend=bend)  # where it is remembered
    assert any("intervals may be too narrow" in note for note in inference.table(0.95).notes) == bent


def test_a_released_gradient_takes_its_part_of_the_noise_away():
    A, theta = information(), np.array([0.5, -1.0, 2.0, 0.3])
    without = estimate(release_of(A, theta, plan()), PLAIN)
    made = plan(report="dependent", scales={"sigma_gradient": 1.0})
    b = np.array([3.0, -1.0, 2.0, 0.5])
    found = estimate(release_of(A, theta, made, gradient=-b), PLAIN)
    # b is estimated by 9/10 of minus the gradient, and 9/10 of the variance goes.
    np.testing.assert_allclose(found.values - without.values, 0.9 * np.linalg.solve(A, b), rtol=1e-9)
    inverse, moved = np.linalg.inv(A), theta - found.values
    smaller = inverse @ (A + 0.9 * np.eye(4)) @ inverse
    smaller += 0.25 * (moved @ moved * inverse @ inverse + np.outer(inverse @ moved, inverse @ moved))
    np.testing.assert_allclose(found.covariance, smaller, rtol=1e-12, atol=1e-16)
    assert np.all(np.diag(found.covariance) < np.diag(without.covariance))


def test_what_the_noise_hides_is_held():
    A = np.diag([500.0, 400.0, 1.0, 900.0])
    theta = np.array([0.5, -1.0, 2.0, 0.3])
    found = estimate(release_of(A, theta, plan()), PLAIN)
    assert found.determined.tolist() == [True, True, False, True]
    assert found.values[2] == theta[2]
    assert found.covariance[2, 2] == pytest.approx((4.0 / math.sqrt(2.0)) ** 2)
    # Two columns that are nearly one: either is held, and the other is as uncertain as that makes it.
    A[0, 1] = A[1, 0] = math.sqrt(500.0 * 400.0)
    A[2, 2] = 300.0
    twins = estimate(release_of(A, theta, plan()), PLAIN)
    assert twins.determined.sum() == 3
    assert np.diag(twins.covariance)[[0, 1]].min() > 1.0
    assert np.diag(twins.covariance)[[2, 3]].max() < 0.1


def test_a_hessian_of_noise_determines_nothing():
    refused = release_of(np.eye(4), np.ones(4), plan())
    with pytest.raises(expost.exceptions.PublicationError, match="too much noise for this table"):
        estimate(refused, PLAIN)
    # A constant that is not determined takes no other with it.
    assert determined(np.diag([90.0, 1.0]), np.eye(2), 1.0, np.array([False, True])).tolist() == [True, False]
    assert not determined(np.eye(2), np.eye(2), 1.0, np.array([False, True])).any()
    assert determined(100.0 * np.eye(2), np.eye(2), 1.0, np.array([False, True])).all()


FEATURES = (
    expost.Number(name="age", low=18.0, high=90.0),
    expost.Category(name="ward", categories=("north", "south", "east")),
    expost.Number(name="dose", low=-5.0, high=200.0, scale="unit"),
    expost.YesNo(name="smoker"),
    expost.Category(name="sex", categories=("f", "m")),
)
BORN = expost.Date(name="born", low="1920-05-01", high="2020-01-01")
LABEL = expost.ClassLabel(name="ill", classes=("no", "yes"))


PAIRS = (
    ("age", "dose"),
    ("age", "ward"),
    ("smoker", "sex"),
    ("sex", "ward"),
    ("dose", "born"),
    ("bent", "ward"),
)
BENT = expost.Number(name="bent", low=0.0, high=10.0, knots=(2.0, 5.0), missing=4.0, recorded=True)


def products(domain):
    """The same domain with the interactions of all these pairs that it has."""
    names = {feature.name for feature in domain.features}
    wanted = [{"product": pair} for pair in PAIRS if names.issuperset(pair)]
    return expost.Domain(features=domain.features, label=LABEL, norm=5.0, interactions=wanted)


def told(values, term):
    """A term in original units: a number, days, or whether it is that category; a hat by interpolation."""
    name, _, value = term.removesuffix(" not recorded").partition("=")
    column = values[name]
    if term.endswith(" not recorded"):
        return np.isnan(column).astype(float)
    if name == "born":
        return (column - np.datetime64("1970-01-01")).astype(float)
    if name == "bent":
        nodes = [0.0, 2.0, 5.0, 10.0]
        return np.interp(
            np.where(np.isnan(column), 4.0, column), nodes, [float(node == float(value)) for node in nodes]
        )
    return (column == (value or "yes") if column.dtype.kind == "U" else column).astype(float)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "features", [FEATURES, (*FEATURES, BORN, BENT), FEATURES[1:5:3], (BENT, *FEATURES[1:2])]
)
def test_terms_of_interactions_and_curves_are_the_same_predictor(features, intercept):
    """Numbers by numbers, by categories and by curves: terms in original units give the predictor again."""
    rng, count = np.random.default_rng(4), 400
    domain = products(expost.Domain(features=features, label=LABEL))
    assert domain.interactions
    values = {
        "age": rng.uniform(18.0, 90.0, count),
        "ward": rng.choice(["north", "south", "east"], count),
        "dose": rng.uniform(-5.0, 200.0, count),
        "smoker": rng.choice(["yes", "no"], count),
        "sex": rng.choice(["f", "m"], count),
        "born": np.datetime64("1930-01-01") + rng.integers(0, 30_000, count),
        "bent": np.where(rng.random(count) < 0.3, np.nan, rng.uniform(0.0, 10.0, count)),
    }
    found = domain_coordinates(domain, 5.0, intercept=intercept)
    rows = domain.encode({feature.name: values[feature.name] for feature in features})
    rows = np.column_stack([rows, np.ones(count)]) if intercept else rows
    theta = rng.normal(size=rows.shape[1])
    phi = found.contrasts @ theta
    np.testing.assert_allclose(rows @ found.unseen, 0.0, atol=1e-12)
    assert found.unseen.shape[1] + len(phi) == len(theta)
    assert np.linalg.matrix_rank(rows @ found.basis) == len(phi)
    np.testing.assert_allclose(rows @ found.basis @ phi, rows @ theta, rtol=1e-9, atol=1e-12)
    named = dict(zip(found.names, found.units @ phi, strict=True))
    total = np.full(count, named.pop("intercept", 0.0))
    for name, effect in named.items():
        total = total + effect * np.prod([told(values, term) for term in name.split(" × ")], axis=0)
    np.testing.assert_allclose(total, rows @ theta, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "features", [FEATURES, FEATURES[:1], FEATURES[1:2], FEATURES[3:], FEATURES[2:4], (*FEATURES[:1], BORN)]
)
def test_terms_in_original_units_are_the_same_predictor(features, intercept):
    """From any coefficients: contrasts and units give every record's linear predictor again."""
    rng = np.random.default_rng(2)
    domain = expost.Domain(features=features, label=LABEL, norm=3.0)
    found = domain_coordinates(domain, 3.0, intercept=intercept)
    count = 20
    values = {
        "age": rng.uniform(18.0, 90.0, count),
        "ward": rng.choice(["north", "south", "east"], count),
        "dose": rng.uniform(-5.0, 200.0, count),
        "smoker": rng.choice(["yes", "no"], count),
        "sex": rng.choice(["f", "m"], count),
        "born": np.datetime64("1930-01-01") + rng.integers(0, 30_000, count),
    }
    rows = domain.encode({feature.name: values[feature.name] for feature in features})
    rows = np.column_stack([rows, np.ones(count)]) if intercept else rows
    theta = rng.normal(size=rows.shape[1])
    np.testing.assert_allclose(rows @ found.unseen, 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(rows @ found.basis) == found.basis.shape[1]
    phi = found.contrasts @ theta
    np.testing.assert_allclose(rows @ found.basis @ phi, rows @ theta, rtol=1e-10)
    np.testing.assert_allclose(found.contrasts @ found.basis, np.eye(len(phi)), atol=1e-12)
    named = dict(zip(found.names, found.units @ phi, strict=True))
    total = np.full(count, named.pop("intercept", 0.0))
    for name, effect in named.items():
        feature, _, category = name.partition("=")
        told = values[feature]
        if feature == "born":  # in days
            told = (told - np.datetime64("1970-01-01")).astype(float)
        column = told == category if category else (told == "yes") if feature == "smoker" else told
        total = total + effect * column.astype(float)
    np.testing.assert_allclose(total, rows @ theta, rtol=1e-9)
    assert found.names[-1] == "intercept" or not intercept
    assert found.references == (
        ("ward=north", "sex=f") if intercept and features is FEATURES else found.references
    )


def test_scaled_rows_may_see_everything():
    domain = expost.Domain(features=FEATURES, label=LABEL)
    assert domain_coordinates(domain, domain.row_norm, intercept=True).unseen.shape == (9, 0)
    assert domain_coordinates(domain, domain.longest_row, intercept=True).unseen.shape == (9, 2)


LOSSES = [
    LogisticLoss(),
    *(capped_logistic(epsilon, 1e-6) for epsilon in (0.1, 1.0, 8.0)),
    SoftmaxLoss(3),
    SoftmaxLoss(2, cap=0.7),
    *(capped_softmax(classes, epsilon, 1e-6) for classes in (3, 10) for epsilon in (0.1, 1.0, 8.0)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_labels_of_the_working_model_pull_nowhere(loss):
    """Its probabilities make the mean gradient zero, and the gradient's covariance at most ratio times A."""
    rng = np.random.default_rng(4)
    outputs = 1 if isinstance(loss, LogisticLoss) else loss.outputs
    ratio, largest = score_ratio(loss), 0.0
    for spread in (0.1, 1.0, 3.0, 6.0):
        u = spread * rng.normal(size=(200, outputs))
        scores = u[:, 0] if isinstance(loss, LogisticLoss) else u @ centring(loss.classes).T
        shares = model_probabilities(scores, loss)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
        pull, V, A = np.zeros((200, outputs)), 0.0, 0.0
        for label in range(shares.shape[1]):
            eta = u[:, 0] if isinstance(loss, LogisticLoss) else u
            slope, curvature = loss.derivatives(eta, np.full(200, float(label)))
            if isinstance(loss, LogisticLoss):
                slope, factor = slope[:, None], np.sqrt(curvature)[:, None, None]
            else:
                factor = curvature
            weight = shares[:, label, None]
            pull += weight * slope
            V = V + weight[:, :, None] * slope[:, :, None] * slope[:, None, :]
            A = A + weight[:, :, None] * factor @ factor.transpose(0, 2, 1)
        np.testing.assert_allclose(pull, 0.0, atol=1e-12)
        largest = max(largest, np.linalg.eigvals(np.linalg.solve(A, V)).real.max())
    assert largest <= ratio * (1.0 + 1e-5)
    assert ratio == 1.0 if loss.corner is None else 1.0 < ratio < 2.5


def test_without_a_cap_the_model_is_the_usual_one():
    eta = np.linspace(-30.0, 30.0, 7)
    np.testing.assert_allclose(model_probabilities(eta, LogisticLoss())[:, 1], expit(eta))
    two = model_probabilities(np.column_stack([-eta, eta]) / 2.0, SoftmaxLoss(2, cap=0.7))
    np.testing.assert_allclose(two, model_probabilities(eta, LogisticLoss(cap=0.7)), rtol=1e-9)


def test_two_classes_of_softmax_are_the_logistic_loss():
    """The same table in both forms: half of the log-odds for each class, and half of their error."""
    rng = np.random.default_rng(6)
    A, theta = information(3), rng.normal(size=3)
    logistic = Inference(release_of(A, theta, plan(l2=2.0))).table(0.95)
    scales = {"sigma": 3.0 * math.sqrt(2.0), "sigma_hessian": 1.0}
    made = plan(loss=SoftmaxLoss(2), l2=4.0, scales=scales)
    # u = -theta/√2: scores of the second class are -u/√2, and the Hessian in u is twice that in theta.
    softmax = Inference(release_of(2.0 * A, -theta / math.sqrt(2.0), made)).table(0.95)
    np.testing.assert_allclose(softmax.coefficients, np.outer([-0.5, 0.5], logistic.coefficients), rtol=1e-9)
    np.testing.assert_allclose(softmax.standard_errors[1], logistic.standard_errors / 2.0, rtol=1e-6)
    assert softmax.classes == (0, 1)


def test_intervals_of_probabilities_are_those_of_the_predictor():
    A, theta = information(3), np.array([0.5, -1.0, 0.3])
    X = rows_in_ball(np.random.default_rng(8), 30, 2)
    records = design_of(X, norm=1.0, fit_intercept=True)
    inference = Inference(release_of(A, theta, plan()))
    found = inference.probabilities(records, 0.9)
    rows = np.column_stack([X, np.ones(30)])
    eta = rows @ inference.estimate.values
    error = np.sqrt(np.einsum("ij,jk,ik->i", rows, inference.estimate.covariance, rows))
    np.testing.assert_allclose(found.estimate[:, 1], expit(eta))
    np.testing.assert_allclose(found.upper[:, 1], expit(eta + 1.6448536 * error), rtol=1e-7)
    np.testing.assert_allclose(found.lower[:, 0], 1.0 - found.upper[:, 1], rtol=1e-9)
    softmax = Inference(
        release_of(
            2.0 * A,
            -theta / math.sqrt(2.0),
            plan(loss=SoftmaxLoss(2), l2=4.0, scales={"sigma": 3.0 * math.sqrt(2.0), "sigma_hessian": 1.0}),
        )
    ).probabilities(records, 0.9)
    for one, other in zip(found, softmax, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_figures_have_the_digits_that_their_error_leaves():
    from expost.inference.table import _cells, _grouped

    assert _cells([1.11349, 0.0311, 1.0525, 1.1744, 35.8, 0.0]) == (
        "1.113",
        "0.031",
        "1.052",
        "1.174",
        "35.80",
        "<0.001",
    )
    assert _cells([-2.05e-6, 1.56e-7, -2.36e-6, -1.75e-6, -13.1, 0.5])[:2] == ("-2.05e-06", "1.56e-07")
    assert _cells([3.0, 250.0, -487.0, 493.0, 0.01, 0.99])[:3] == ("3", "250", "-487")
    assert _cells([np.nan] * 6) == ("—", "", "", "", "", "")
    assert list(_grouped(["a", "b=x", "b=y", "c=z", "intercept"])) == [
        ("a", 0),
        ("b", None),
        ("  x", 1),
        ("  y", 2),
        ("c=z", 3),
        ("intercept", 4),
    ]
    assert list(_grouped(["b=x × s", "b=y × s", "b=x × c=z", "b=y × c=z", "a × s"])) == [
        ("b × s", None),
        ("  x", 0),
        ("  y", 1),
        ("b × c", None),
        ("  x × z", 2),
        ("  y × z", 3),
        ("a × s", 4),
    ]


def test_a_cap_below_one_class_of_several_bounds_no_score():
    """Where the others' pull exceeds what a capped class says, the information is not positive: no ratio."""
    assert score_ratio(SoftmaxLoss(3, 0.05, 0.3)) == math.inf
    for loss in (capped_softmax(3, 1.0, 1e-6), capped_logistic(1.0, 1e-6)):
        assert 1.0 < score_ratio(loss) < 2.0
