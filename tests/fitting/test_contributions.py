"""What recalibrates a model: its numbers, their noise, and what they cost, by ratios of densities."""

import math

import numpy as np
import pytest
from problems import capped_curvature, capped_slope, rows_in_ball, with_intercept
from scipy import stats
from scipy.sparse import csr_array
from spaces import SPACES

import expost
from expost.data.blocks import Block
from expost.data.design import Design
from expost.data.encoding import encode_records
from expost.data.weights import Declared
from expost.exceptions import PublicationError
from expost.fitting.contributions import Contributions, Totals
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise, SeededNoise
from expost.fitting.private_fit import recover
from expost.privacy.precision import statistic_grid
from expost.privacy.recalibration import cell_ends
from expost.privacy.shapes import capped_logistic

LOSS = capped_logistic(2.0, 1e-6, cap=0.45)


def planned(**options):
    scales = {"sigma": 1.3, "l2": 0.4, "sigma_recalibration": 2.5}
    return expost.calibrate(loss=LOSS, fit_intercept=True, recalibrate=True, **scales | options)


def table(seed, rows=60, columns=3):
    rng = np.random.default_rng(seed)
    return rows_in_ball(rng, rows, columns), rng.integers(0, 2, rows) * 1.0


def records(plan, X, y, **others):
    return encode_records(X, y, Declared.of(plan, n_features=X.shape[1]), **others)


def fitted(plan, X, y, seed=1, noise=None):
    return perturb(plan, records(plan, X, y), noise=noise or SeededNoise(seed))


def by_hand(X, y, theta, noise):
    """The cell of each row, by a loop over the ends."""
    ends = cell_ends(noise)
    scores = with_intercept(X, True) @ theta
    return np.array(
        [
            sum(end <= score for end in ends) + (len(ends) + 1) * int(label)
            for score, label in zip(scores, y, strict=True)
        ]
    )


def log_law(theta, noisy, X, y, plan):
    """The logarithm of the density of the coefficients and of the counts, up to a constant."""
    gradient, hessian = plan.l2 * theta, plan.l2 * np.eye(len(theta))
    for row, label in zip(with_intercept(X, True), y, strict=True):
        side = 1 - 2 * label
        slope = side * capped_slope(side * row @ theta, LOSS.cap, LOSS.corner)
        bend = capped_curvature(side * row @ theta, LOSS.cap, LOSS.corner)
        gradient, hessian = gradient + slope * row, hessian + bend * np.outer(row, row)
    counts = np.bincount(by_hand(X, y, theta, plan.sigma_recalibration), minlength=len(noisy))
    model = -gradient @ gradient / (2.0 * plan.sigma**2) + np.linalg.slogdet(hessian)[1]
    return model + np.sum(stats.norm.logpdf(noisy, counts, plan.sigma_recalibration))


def test_exact_losses_are_the_ratio_of_densities():
    """In one dimension and in more, for members, outsiders, families, and families who change."""
    plan = planned()
    for columns in (1, 3):
        X, y = table(columns, 24, columns)
        extra, labels = table(9, 3, columns)
        release, private = fitted(plan, X, y)
        theta, noisy = release.coefficients, release.recalibration
        here = log_law(theta, noisy, X, y, plan)
        found = ex_post_terms(private, records(plan, X, y), LOSS, member=True)
        left = [log_law(theta, noisy, np.delete(X, i, 0), np.delete(y, i), plan) for i in range(len(X))]
        assert found.signed == pytest.approx(here - np.array(left), abs=1e-9)
        found = ex_post_terms(private, records(plan, extra, labels), LOSS, member=False)
        more = [
            log_law(theta, noisy, np.vstack([X, x]), np.append(y, label), plan)
            for x, label in zip(extra, labels, strict=True)
        ]
        assert found.signed == pytest.approx(here - np.array(more), abs=1e-9)
        # A family of three who leave, and one of whom two leave while somebody comes.
        group = records(plan, X[:3], y[:3], groups=["a"] * 3)
        gone = here - log_law(theta, noisy, X[3:], y[3:], plan)
        assert ex_post_terms(private, group, LOSS, member=True).signed == pytest.approx([gone], abs=1e-9)
        mixed = records(plan, np.vstack([X[:2], extra[:1]]), np.append(y[:2], labels[0]), groups=["a"] * 3)
        other = log_law(theta, noisy, np.vstack([X[2:], extra[:1]]), np.append(y[2:], labels[0]), plan)
        change = ex_post_terms(private, mixed, LOSS, member=np.array([True, True, False]))
        assert change.signed == pytest.approx([here - other], abs=1e-9)


def test_the_histograms_term_alone():
    plan = planned()
    X, y = table(4)
    release, private = fitted(plan, X, y)
    terms = ex_post_terms(private, records(plan, X, y), LOSS, member=True)
    cells = by_hand(X, y, release.coefficients, 2.5)
    counts = np.bincount(cells, minlength=32)
    law = stats.norm(scale=2.5)
    drawn = release.recalibration - counts
    expected = (law.logpdf(drawn) - law.logpdf(drawn + 1.0))[cells]
    assert terms.recalibration == pytest.approx(expected, abs=1e-12)
    assert terms.signed == pytest.approx(
        terms.determinant + terms.quadratic + terms.inner_product + terms.recalibration, abs=1e-15
    )
    assert "recalibration" in terms.to_frame().columns
    assert repr(private.totals) == "Totals(withheld)"


def test_counts_are_exact_and_on_their_grid():
    plan = planned()
    X, y = table(5, 400)
    release, _ = fitted(plan, X, y, noise=ExactNoise())
    grid = statistic_grid(2.5)
    assert np.all(release.recalibration / grid == np.rint(release.recalibration / grid))
    counts = np.bincount(by_hand(X, y, release.coefficients, 2.5), minlength=32)
    assert np.array_equal(Totals.of(plan, records(plan, X, y), release.coefficients).steps, counts)
    # The noise of 32 cells: chi-square, with a false-alarm rate of 1e-9 at either end.
    square = float(np.sum((release.recalibration - counts) ** 2)) / 2.5**2
    assert stats.chi2.ppf(1e-9, 32) < square < stats.chi2.isf(1e-9, 32)
    assert not release.insecure


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 31, 200])
def test_a_cell_depends_on_its_row_alone(columns):
    """Whatever the rows around it and wherever it lies in memory, to the last bit of the score."""
    rng = np.random.default_rng(columns)
    rows, theta = rng.normal(size=(257, columns)), rng.normal(size=columns)
    scores = np.add.reduce(rows * theta, axis=1)
    for start in (1, 2, 3, 5, 64, 255):
        some = np.add.reduce(rows[start : start + 9] * theta, axis=1)
        assert np.array_equal(some, scores[start : start + 9])
        alone = np.add.reduce(rows[start : start + 1] * theta, axis=1)
        assert alone[0] == scores[start]
    added = Contributions(theta, planned()).of(rows, np.zeros(len(rows)))
    assert np.array_equal(added.places[:, 0], np.searchsorted(cell_ends(2.5), scores, side="right"))
    assert np.all(added.steps == 1)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("columns", [3, 120])
def test_a_row_is_scaled_alike_wherever_it_lies_and_whatever_is_beside_it(space, columns):
    """Torch measures a long row that lies by columns in another order where it is alone."""
    rng = np.random.default_rng(columns)
    rows, design = rng.normal(size=(64, columns)), Design(columns, 1.0, intercept=True)
    here = design.alone(rows)
    [dense] = design.dense(iter([Block(rows, np.empty(0), None)]))
    assert np.allclose(here, dense.X, rtol=1e-13, atol=0.0)
    kinds = (np.asfortranarray, space, lambda some: space(np.asfortranarray(some)), csr_array)
    for kind in kinds:
        for some in (slice(None), slice(5, 6), slice(7, 40)):
            assert np.array_equal(design.alone(kind(rows[some])), here[some])
    far = np.array([[1e200, *np.zeros(columns - 1)], [1e-200, *np.zeros(columns - 1)]])
    assert np.allclose(design.alone(far)[:, 0], [1.0, 1e-200], rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("space", SPACES)
def test_a_table_on_a_device_has_the_same_cells(space):
    plan = planned()
    X, y = table(5, 90)
    theta = np.array([3.0, -2.0, 1.0, 0.3])
    expected = Totals.of(plan, records(plan, 3.0 * X, y), theta).steps
    assert Totals.of(plan, records(plan, space(3.0 * X), space(y)), theta).steps == expected
    assert sum(expected) == 90


def test_the_private_part_is_recovered_from_the_table():
    plan = planned()
    X, y = table(6)
    release, private = fitted(plan, X, y)
    again = recover(release, records(plan, X, y))
    assert again.totals.steps == private.totals.steps
    here, there = (ex_post_terms(one, records(plan, X, y), LOSS, member=True) for one in (private, again))
    assert there.signed == pytest.approx(here.signed, abs=1e-9)


def test_a_row_counts_once_whatever_it_weighs():
    X, y = table(7, 300)
    model = expost.LogisticRegression(
        norm=1.0,
        classes=[0, 1],
        recalibrate=True,
        max_weight=3.0,
        random_state=0,
        class_weight={0: 0.5, 1: 1.0},
    )
    model.fit(X, y, sample_weight=np.linspace(0.0, 3.0, 300))
    assert sum(model._private.totals.steps) == 300


def test_a_model_that_is_not_recalibrated_has_none_of_it():
    X, y = table(8, 200)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, y)
    assert model.calibration_curve_ is None
    assert model.publication_.calibration_curve is None
    assert "recalibration" not in model.publication_.to_json()
    assert model.ex_post_losses(X, y, return_terms=True).recalibration is None


def test_summaries_say_why_there_are_no_error_bars():
    X, y = table(8, 200)
    model = expost.LogisticRegression(
        norm=1.0, classes=[0, 1], recalibrate=True, report="leverage", random_state=0
    ).fit(X, y)
    assert "signs and ratios" in model.publication_.summary().notes[-1]
    assert np.all(np.isnan(model.publication_.summary().standard_errors))
    with pytest.raises(PublicationError, match="signs and ratios"):
        model.predict_proba(X, interval=0.95)
    assert math.isfinite(model.ex_post_error_)
