"""Models of quantiles, of counts and of positive amounts, against peers without privacy."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, mean_pinball_loss, r2_score

import expost
from expost.exceptions import DomainError, ParameterError
from expost.fitting.prediction import explained

ROWS = 400
MODELS = {
    "quantile": (expost.QuantileRegression, (0.0, 60.0), expost.NumberLabel),
    "count": (expost.PoissonRegression, (0.0, 40.0), expost.CountLabel),
    "amount": (expost.GammaRegression, (0.1, 90.0), expost.AmountLabel),
}


def table(name, seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2)) / np.sqrt(2.0)
    mean = np.exp(1.5 + X @ np.array([1.0, -0.6]))
    drawn = {
        "quantile": lambda: 20.0 + 6.0 * X[:, 0] + rng.normal(0.0, 4.0, rows),
        "count": lambda: rng.poisson(mean).astype(float),
        "amount": lambda: mean * rng.gamma(5.0, 0.2, rows),
    }
    return X, drawn[name]()


def nearly_free(loss, **others):
    """A plan with next to no noise and next to no penalty; it promises nothing."""
    return expost.calibrate(loss=loss, norm=1.0, fit_intercept=True, sigma=1e-9, l2=1e-7, **others)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "amount"])
def test_without_noise_the_coefficients_are_statsmodels(name):
    """With a threshold that no residual comes near the losses are the likelihoods."""
    models = pytest.importorskip("statsmodels.api")
    make, outcome, label = MODELS[name]
    X, y = table(name)
    family = (
        models.families.Poisson() if name == "count" else models.families.Gamma(models.families.links.Log())
    )
    theirs = models.GLM(y, models.add_constant(X), family=family).fit(tol=1e-14).params
    loss = expost.BoundedPoisson(8.0, 5e4) if name == "count" else expost.BoundedGamma(5e4)
    model = make(plan=nearly_free(loss), outcome=outcome, random_state=0).fit(X, y)
    typical = label(name="y", low=outcome[0], high=outcome[1]).typical
    np.testing.assert_allclose(model.coef_, theirs[1:], atol=1e-6)
    assert model.intercept_ + np.log(typical) == pytest.approx(theirs[0], abs=1e-6)
    np.testing.assert_allclose(model.predict(X), np.exp(models.add_constant(X) @ theirs), rtol=1e-5)


def quantile_fit(level, width):
    """Features and outcomes of numbers in the units of the fit, and its coefficients without noise."""
    X, y = table("quantile")
    plan = nearly_free(expost.SmoothedPinball(level, width))
    model = expost.QuantileRegression(plan=plan, level=level, outcome=(0.0, 60.0), random_state=0).fit(X, y)
    return np.column_stack([X, np.ones(ROWS)]), y / 30.0 - 1.0, np.append(model.coef_, model.intercept_)


def unsmoothed(level, rows, scaled):
    """The coefficients of scikit-learn's linear programme, and how a corner's width moves them.

    The programme's solution goes through as many outcomes as there are coefficients. With a width h, small
    enough that every other outcome is many widths away, these others pull with 1 - t or -t as without a
    corner, which fixes the shares p_i of the few: the sum of (p_i - t) x_i is minus the others' pull. A share
    is 1/(1 + exp(-r_i/h)), so that the residuals of the few are h log(p_i/(1 - p_i)), and the coefficients
    are off by h times a fixed vector. The error is of first order in h: to be within 1e-6 of the programme, h
    would have to be below 1e-6, and the curvature that privacy has to hide is up to 1/(4h).
    """
    fit = QuantileRegressor(quantile=level, alpha=0.0, solver="highs").fit(rows[:, :-1], scaled)
    exact = np.append(fit.coef_, fit.intercept_)
    residuals = rows @ exact - scaled
    few, others = np.split(np.argsort(np.abs(residuals)), [len(exact)])
    pulls = (residuals[others] > 0.0) - level
    shares = level - np.linalg.solve(rows[few].T, rows[others].T @ pulls)
    return np.linalg.solve(rows[few], scaled[few]), np.linalg.solve(rows[few], logit(shares))


@pytest.mark.parametrize("level", [pytest.param(0.5, marks=pytest.mark.slow), 0.9])
def test_without_noise_quantiles_come_to_scikit_learns_in_proportion_to_the_corner(level):
    """With a small corner the coefficients are scikit-learn's and the shift that theory gives, to 1e-8."""
    for width in (4e-5, 2e-5):
        rows, scaled, found = quantile_fit(level, width)
        exact, shift = unsmoothed(level, rows, scaled)
        np.testing.assert_allclose(found, exact + width * shift, atol=1e-8)
        assert 1.0 < np.max(np.abs(found - exact)) / width < 5.0


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("width", [0.04, 0.01, 0.0025])
def test_without_noise_a_quantile_loses_no_more_than_its_corner(level, width):
    """The rounded loss is above the other by h log 2 at most, so its minimum costs no more than that."""
    rows, scaled, found = quantile_fit(level, width)
    exact, _ = unsmoothed(level, rows, scaled)
    ours, theirs = (mean_pinball_loss(scaled, rows @ one, alpha=level) for one in (found, exact))
    assert 0.0 < ours - theirs < width * np.log(2.0)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_without_noise_the_quantile_is_that_of_a_second_solver(level):
    rows, scaled, found = quantile_fit(level, 0.01)

    def objective(theta):
        residual = rows @ theta - scaled
        value = 0.01 * np.logaddexp(0.0, residual / 0.01) - level * residual
        return np.sum(value), rows.T @ (expit(residual / 0.01) - level)

    best = minimize(objective, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(found, best, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_scikit_learns_and_predictions_are_in_units(name):
    make, outcome, _ = MODELS[name]
    X, y = table(name, rows=3000)
    model = make(norm=1.0, outcome=outcome, epsilon=8.0, random_state=0).fit(X, y)
    predicted, clipped = model.predict(X), np.clip(y, *outcome)
    theirs = {
        "quantile": lambda: d2_pinball_score(clipped, predicted, alpha=0.5),
        "count": lambda: d2_tweedie_score(clipped, predicted, power=1),
        "amount": lambda: d2_tweedie_score(clipped, predicted, power=2),
    }
    assert model.score(X, y) == pytest.approx(theirs[name](), abs=1e-9)
    assert model.score(X, y) > 0.1
    assert np.all((predicted >= outcome[0]) & (predicted <= outcome[1]))
    assert abs(np.median(predicted) - np.median(y)) < 2.0


@pytest.mark.parametrize("name", MODELS)
def test_a_score_of_equal_outcomes_is_scikit_learns_for_a_mean(name):
    """Nothing is left to explain: 1 for predictions that are exactly right, and 0 for any others."""
    make, outcome, _ = MODELS[name]
    X, y = table(name)
    model = make(norm=1.0, outcome=outcome, random_state=0).fit(X, y)
    equal = np.full(len(X), 5.0)
    assert model.score(X, equal) == r2_score(equal, model.predict(X)) == 0.0
    assert model.score(X, np.zeros(len(X))) == 0.0
    few = np.where(np.arange(len(X)) < 9, 5.0, y)
    assert model.score(X, few, sample_weight=(np.arange(len(X)) < 9).astype(float)) == 0.0
    loss, zeros = model.plan_.loss, np.zeros(7)
    assert explained(zeros, np.exp(zeros) if loss.log_link else zeros, loss) == 1.0


@pytest.mark.parametrize("loss", [expost.BoundedPoisson(1.0), expost.BoundedGamma(1.0)])
def test_outcomes_that_differ_in_their_last_digit_alone_count_as_equal(loss):
    """Their deviance from the mean is below what doubles resolve, so that there is no share of it."""
    near = np.tile([0.3, np.nextafter(0.3, 1.0)], 50)
    assert explained(np.zeros(100), near, loss) == 0.0


@pytest.mark.parametrize("name", MODELS)
def test_a_missing_outcome_is_refused_without_the_scale_of_the_fit(name):
    make, outcome, _ = MODELS[name]
    X, y = table(name)
    y[3] = np.nan
    with pytest.raises(DomainError, match="`y` must be a finite number in every record; it is missing"):
        make(norm=1.0, outcome=outcome).fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_a_publication_is_verified_when_read_and_says_the_same(name, tmp_path):
    make, outcome, label = MODELS[name]
    X, y = table(name)
    features = tuple(expost.Number(name=one, low=-1.0, high=1.0) for one in "ab")
    domain = expost.Domain(features=features, label=label(name="y", low=outcome[0], high=outcome[1]))
    records = {"a": X[:, 0], "b": X[:, 1]}
    model = make(domain=domain, report="leverage", random_state=1).fit(records, y)
    path = tmp_path / "publication.json"
    model.publication_.save(path)
    read = expost.Publication.load(path)
    np.testing.assert_array_equal(read.predict(records), model.predict(records))
    bounds = read.bounds(records, y, confidence=0.999999, member=True)
    exact = np.abs(model.ex_post_losses(records, y))
    assert np.all((bounds.lower <= exact) & (exact <= bounds.upper))
    changed = json.loads(path.read_text())
    changed["domain"]["label"] = {"name": "y", "kind": "number", "low": -3.0, "high": 3.0}
    changed["loss"] = {"name": "bounded_gamma", "threshold": 0.5}
    path.write_text(json.dumps(changed))
    with pytest.raises(expost.exceptions.PublicationError):
        expost.Publication.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_undeclared_outcomes_of_one_kind_are_not_taken_for_another(name):
    make, outcome, label = MODELS[name]
    X, y = table(name)
    other = expost.ClassLabel(name="y", classes=("a", "b"))
    domain = expost.Domain(features=(expost.Number(name="a", low=0.0, high=1.0),), label=other)
    with pytest.raises(ParameterError, match="`domain` must be one whose label has kind="):
        make(domain=domain).fit({"a": X[:, 0]}, y)
    with pytest.raises(ParameterError, match="`outcome` must be two finite numbers"):
        make(norm=1.0, outcome=(5.0, 1.0)).fit(X, y)
    if name != "quantile":
        with pytest.raises(ParameterError, match="`outcome` must be declared"):
            make(norm=1.0).fit(X, y)
        with pytest.raises(ParameterError, match="`outcome` must be two finite numbers"):
            make(norm=1.0, outcome=(-1.0, 9.0)).fit(X, y)
        with pytest.raises(ValueError, match="must have low >"):
            label(name="y", low=-1.0, high=outcome[1])


@pytest.mark.parametrize("name", MODELS)
def test_a_person_with_several_rows_and_equal_rows_costs_what_one_row_does(name):
    make, outcome, _ = MODELS[name]
    X, y = table(name, rows=60)
    model = make(norm=1.0, outcome=outcome, unit="person", random_state=2)
    ids = np.repeat(np.arange(60), 2)
    model.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2), groups=ids)
    losses = model.ex_post_losses(np.repeat(X, 2, axis=0), np.repeat(y, 2), groups=ids)
    assert losses.shape == (60,)
    single = model.ex_post_losses(X, y, groups=np.arange(60))
    np.testing.assert_allclose(losses, single, rtol=1e-9)


@pytest.mark.parametrize("domain", ["domain.toml", Path("domain.toml"), {"features": []}], ids=repr)
def test_what_is_no_domain_is_refused_with_the_way_to_read_one(domain):
    with pytest.raises(ParameterError, match=r"`domain` must be an expost\.Domain; .*expost\.Domain\.load"):
        expost.PoissonRegression(domain=domain).fit(np.zeros((4, 1)), [0, 1, 0, 1])
