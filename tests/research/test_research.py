"""Seeded draws, losses at any coefficients, and reports of one's own."""

import numpy as np
import pytest
from problems import CASES, rows_in_ball
from scipy.optimize import minimize

import expost
from expost import research
from expost.exceptions import DomainError, ParameterError
from papers.redberg_wang_2021.report import paper_report

RNG = np.random.default_rng(5)
X, Y = rows_in_ball(RNG, 60, 3), RNG.integers(0, 2, 60)
PLAN = expost.calibrate(epsilon=1.0, fit_intercept=True)
THETA = np.array([0.3, -0.2, 0.5, 0.1])


def objective(plan, rows, y, theta):
    """Gradient and Hessian without noise, by the textbook."""
    slope, curvature = plan.loss.derivatives(rows @ theta, y)
    return rows.T @ slope + plan.l2 * theta, (rows.T * curvature) @ rows + plan.l2 * np.eye(len(theta))


def log_density(plan, rows, y, theta):
    """Of the released coefficients: the noise that leads to them, and the change of variables."""
    gradient, hessian = objective(plan, rows, y, theta)
    return np.linalg.slogdet(hessian)[1] - gradient @ gradient / (2.0 * plan.sigma**2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_losses_at_any_coefficients_are_log_ratios_of_densities(case):
    y = case.labels(np.random.default_rng(2), len(X))
    plan = expost.calibrate(loss=case.loss, sigma=3.0, l2=2.0)
    theta = 2.0 * THETA[:3]
    release, private = research.imagine(plan, X[:40], y[:40], theta)
    gradient, hessian = objective(plan, X[:40], y[:40], theta)
    np.testing.assert_allclose(private.gradient, gradient, rtol=1e-12)
    np.testing.assert_allclose(private.hessian, hessian, rtol=1e-12)
    members = research.losses(release, private, X[:40], y[:40], member=True)
    others = research.losses(release, private, X[40:], y[40:], member=False)
    here = log_density(plan, X[:40], y[:40], theta)
    for i in range(40):
        without = np.delete(np.arange(40), i)
        assert members.signed[i] == pytest.approx(here - log_density(plan, X[without], y[without], theta))
    for i in range(40, 60):
        extra = [*range(40), i]
        assert others.signed[i - 40] == pytest.approx(here - log_density(plan, X[extra], y[extra], theta))


@pytest.mark.long
def test_convex_losses_have_losses_and_bounds_too():
    loss = expost.SmoothedNorm(3)
    plan = expost.calibrate_convex(loss, sigma=3.0, l2=2.0)

    def density(rows, theta):
        gradient = loss.gradient(theta, rows).sum(axis=0) + 2.0 * theta
        hessian = loss.hessian(theta, rows).sum(axis=0) + 2.0 * np.eye(3)
        return np.linalg.slogdet(hessian)[1] - gradient @ gradient / (2.0 * 3.0**2)

    release, private = research.draw(plan, X, None, random_state=0)
    terms = research.losses(release, private, X, None, member=True)
    theta = release.coefficients
    ratios = [density(X, theta) - density(np.delete(X, i, 0), theta) for i in range(len(X))]
    np.testing.assert_allclose(terms.signed, ratios, rtol=1e-9, atol=1e-12)
    again = research.imagine(plan, X, None, theta)[1]
    np.testing.assert_allclose(again.hessian, private.hessian, rtol=1e-12)
    # At 1e-9 for each of 60 records, a false alarm has probability 6e-8.
    found = research.bounds(release, X, None, confidence=1 - 1e-9, member=True)
    assert np.all((found.lower <= terms.loss) & (terms.loss <= found.upper))


def test_several_linear_predictors_have_losses_at_any_coefficients_too():
    y = np.random.default_rng(3).integers(0, 3, len(X)).astype(float)
    plan = expost.calibrate(loss=expost.SoftmaxLoss(3), sigma=3.0, l2=2.0)
    release, private = research.imagine(plan, X, y, np.arange(6) / 10)
    terms = research.losses(release, private, X, y, member=True)
    others = [
        research.imagine(plan, np.delete(X, i, 0), np.delete(y, i), np.arange(6) / 10)[1] for i in (0, 7)
    ]

    def density(one):
        return np.linalg.slogdet(one.hessian)[1] - one.gradient @ one.gradient / (2.0 * plan.sigma**2)

    np.testing.assert_allclose(terms.signed[[0, 7]], [density(private) - density(one) for one in others])


def test_a_draw_is_that_of_the_estimator_with_the_same_seed():
    release, private = research.draw(PLAN, X, Y, random_state=7)
    model = expost.GeneralizedLinearModel(loss=PLAN.loss, epsilon=1.0, norm=1.0, random_state=7).fit(X, Y)
    assert release.insecure
    np.testing.assert_array_equal(release.coefficients, model.publication_.release.coefficients)
    np.testing.assert_array_equal(
        research.losses(release, private, X, Y, member=True).loss, model.ex_post_losses(X, Y)
    )
    again = research.imagine(PLAN, X, Y, release.coefficients)[1]
    np.testing.assert_allclose(again.gradient, private.gradient, rtol=1e-12)
    assert not research.draw(PLAN, X, Y, random_state=None)[0].insecure


def test_a_draw_minimises_the_tilted_objective():
    plan = expost.calibrate(sigma=2.0, l2=1.5)
    release, private = research.draw(plan, X, Y, random_state=1)

    def value(theta):
        eta = X @ theta
        losses = np.logaddexp(0.0, eta) - Y * eta
        return losses.sum() + 0.75 * theta @ theta - private.gradient @ theta

    best = minimize(value, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(release.coefficients, best, atol=1e-6)


def test_the_default_report_is_that_of_a_publication():
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report="dependent").fit(X, Y)
    publication = model.publication_
    for options in ({}, {"confidence": 0.8, "member": True}, {"member": False}):
        ours = research.bounds(publication.release, X, Y, **options)
        for mine, yours in zip(ours.figures, publication.bounds(X, Y, **options).figures, strict=True):
            np.testing.assert_array_equal(mine, yours)


def test_a_report_sees_the_rows_of_the_mechanism_and_what_is_asked():
    """Inside the ball, with the intercept, in the order of the table, in one block or several."""
    release, _ = research.draw(PLAN, X, Y, random_state=0)
    asked = []

    def index(release, rows, labels, *, failure, member):
        asked.append((failure, member, rows.copy(), labels.copy()))
        start = sum(len(one[2]) for one in asked[:-1])
        place = np.arange(start, start + len(rows), dtype=float)
        return research.Figures(place, place + 1.0, place + 2.0, place + 3.0)

    far = np.concatenate([X, 5.0 * X[:3]])
    got = research.bounds(release, far, [*Y, *Y[:3]], report=index, confidence=0.75, member=False)
    assert {one[:2] for one in asked} == {(0.25, False)}
    rows = np.concatenate([one[2] for one in asked])
    np.testing.assert_array_equal(rows[:, -1], 1.0)
    np.testing.assert_allclose(rows[:60, :3], X, rtol=1e-15)
    assert np.all(np.linalg.norm(rows[:, :3], axis=1) <= 1.0 + 1e-12)
    np.testing.assert_array_equal(np.concatenate([one[3] for one in asked]), [*Y, *Y[:3]])
    np.testing.assert_array_equal(got.lower, np.arange(63.0))
    np.testing.assert_array_equal(got.total, np.arange(63.0) + 3.0)
    assert got.confidence == 0.75


def test_the_papers_report_is_one_that_can_be_evaluated():
    release, private = research.draw(PLAN, X, Y, random_state=0)
    # At 1e-9 for each of 60 records, a false alarm has probability 6e-8.
    got = research.bounds(release, X, Y, report=paper_report, confidence=1 - 1e-9)
    assert np.all(research.losses(release, private, X, Y, member=True).loss <= got.upper)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: research.draw("tight", X, Y, random_state=0), ParameterError, "`plan` must be a Plan"),
        (lambda: research.draw(PLAN, X, Y, random_state="x"), ParameterError, "`random_state` must be"),
        (lambda: research.draw(PLAN, X, Y + 1, random_state=0), DomainError, "labels outside"),
        (lambda: research.imagine(PLAN, X, Y, [[0.0]]), ParameterError, "`coefficients` must be one vector"),
        (lambda: research.imagine(PLAN, X, Y, [np.nan] * 4), ParameterError, "finite"),
        (
            lambda: research.imagine(PLAN, X, Y, THETA[:3]),
            DomainError,
            "of the 3 coefficients: with its 3 columns and",
        ),
        (lambda: research.imagine(PLAN, X * np.nan, Y, THETA), DomainError, "finite"),
        (
            lambda: research.bounds(research.Release(PLAN, THETA), X, Y, confidence=1.0, report=paper_report),
            ParameterError,
            "`confidence` must be",
        ),
        *(
            (
                lambda report=report: research.bounds(research.Release(PLAN, THETA), X, Y, report=report),
                ParameterError,
                words,
            )
            for report, words in (
                ("leverage", "`report` must be a function"),
                (lambda *_, **__: None, "`report` must return Figures"),
                (lambda *_, **__: research.Figures(*np.zeros((4, 1))), "a number for each row"),
            )
        ),
    ],
)
def test_bad_arguments_are_refused(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_bounds_of_a_publication_take_no_method():
    publication = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, Y).publication_
    with pytest.raises(TypeError, match="method"):
        publication.bounds(X, Y, method="paper")


def test_names_of_classes_are_refused_with_the_numbers_that_stand_for_them():
    X, y = np.zeros((4, 2)), np.array(["no", "yes"] * 2)
    with pytest.raises(DomainError, match=r"labels outside \{0, 1\}.*these numbers in place of the classes"):
        research.draw(expost.calibrate(epsilon=1.0), X, y, random_state=0)
