"""Models in which a record is several rows of one person, against brute force and peers without privacy."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import expost
from expost.exceptions import DomainError, ParameterError, PublicationError

CLASSES = ["none", "mild", "moderate", "severe"]
ROWS = 300


def table(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2)) / np.sqrt(2.0)
    drawn = X @ np.array([2.0, -1.2]) + rng.logistic(size=rows)
    return X, np.array(CLASSES)[np.digitize(drawn, [-1.0, 0.1, 1.2])]


def fitted(X, y, **others):
    norm = None if "plan" in others else 1.0
    return expost.OrdinalRegression(norm=norm, classes=CLASSES, **{"random_state": 0} | others).fit(X, y)


def spread(X, y, classes=CLASSES):
    """All rows of all records by hand: features and indicators, and labels, record by record."""
    codes, steps = np.array([classes.index(one) for one in y]), len(classes) - 1
    rows = np.column_stack([np.repeat(X, steps, axis=0), np.tile(np.eye(steps), (len(X), 1))])
    return rows, (codes[:, None] > np.arange(steps)).ravel().astype(float)


def log_density(theta, rows, labels, weights, plan):
    """That of coefficients, but for a constant; the loss is the logistic one without a cap."""
    scores = theta @ rows.T
    p = expit(scores)
    gradient = plan.l2 * theta + (weights * (p - labels)) @ rows
    hessian = np.einsum("...i,ij,ik->...jk", weights * p * (1.0 - p), rows, rows)
    hessian = hessian + plan.l2 * np.eye(theta.shape[-1])
    return -np.sum(gradient**2, axis=-1) / (2.0 * plan.sigma**2) + np.linalg.slogdet(hessian)[1]


def plain(**others):
    return expost.calibrate(loss=expost.LogisticLoss(), norm=1.0, fit_intercept=True, unit="person", **others)


PERIODS = 4


def lifetimes(seed=0, rows=ROWS):
    """Features, times and events, censored at random and beyond the last period for some."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2)) / np.sqrt(2.0)
    times, followed = rng.geometric(expit(X @ np.array([1.5, -1.0]) - 1.0)), rng.integers(0, 7, rows)
    return X, np.column_stack([np.minimum(times, followed), times <= followed])


def person_periods(X, y, periods=PERIODS):
    """The rows that count by hand: features and indicators, labels, and whose they are."""
    rows, labels, owners = [], [], []
    for place, (time, event) in enumerate(y):
        for period in range(1, min(int(time), periods) + 1):
            rows.append([*X[place], *np.eye(periods)[period - 1]])
            labels.append(float(event and period == time))
            owners.append(place)
    return np.array(rows).reshape(-1, X.shape[1] + periods), np.array(labels), np.array(owners, dtype=int)


def survived(X, y, **others):
    norm = None if "plan" in others else 1.0
    model = expost.SurvivalRegression(norm=norm, periods=PERIODS, **{"random_state": 0} | others)
    return model.fit(X, y)


# For each kind: records, a fit of them, and their rows and labels by hand.
KINDS = pytest.mark.parametrize(
    ("drawn", "fit", "by_hand"),
    [(table, fitted, spread), (lifetimes, survived, person_periods)],
    ids=["ordered", "times"],
)


@pytest.mark.long
@KINDS
def test_without_noise_the_coefficients_are_scikit_learns_on_the_rows(drawn, fit, by_hand):
    X, y = drawn()
    model = fit(X, y, plan=plain(sigma=1e-9, l2=1e-9))
    theirs = LogisticRegression(
        C=np.inf, fit_intercept=False, tol=1e-12, max_iter=500, solver="newton-cholesky"
    )
    theirs.fit(*by_hand(X, y)[:2])
    np.testing.assert_allclose([*model.coef_, *model.intercept_], theirs.coef_[0], atol=1e-6)


# Features that tell nothing: a table without any is refused.
CONSTANTS = [0.0, 0.5]


def kaplan_meier(times, events, length):
    """The product of one minus the events over those at risk, period by period, of times in days."""
    last = np.where(events, np.ceil(times / length), np.floor(times / length))
    survival = [1.0]
    for period in range(1, PERIODS + 1):
        at_risk = np.count_nonzero(last >= period)
        happened = np.count_nonzero(events & (last == period))
        survival.append(survival[-1] * (1.0 - happened / at_risk))
    return survival[1:]


@pytest.mark.parametrize("length", [1.0, 30.0])
def test_without_features_and_noise_survival_is_kaplan_meiers(length):
    """The hazards are shares, and the intercepts their log odds where the feature is 0."""
    _, y = lifetimes(rows=200)
    times = y[:, 0] * length
    if length > 1.0:  # followed for some days of another period, which is left out, or an event within one
        times += np.where(y[:, 1] > 0, -0.4 * length, 0.6 * length)
    expected = kaplan_meier(times, y[:, 1] > 0, length)
    for value in CONSTANTS:
        X = np.full((200, 1), value)
        model = survived(X, np.column_stack([times, y[:, 1]]), plan=plain(sigma=1e-9, l2=1e-9), length=length)
        np.testing.assert_allclose(model.predict_survival(X), [expected] * 200, atol=1e-6)
        hazards = 1.0 - np.array(expected) / np.append(1.0, expected[:-1])
        np.testing.assert_allclose(model.intercept_ + value * model.coef_, logit(hazards), atol=1e-6)


def test_without_features_and_noise_probabilities_of_classes_are_their_shares():
    """And the k-th intercept is the log odds to be above the k-th class."""
    _, y = table()
    shares = np.array([np.mean(y == one) for one in CLASSES])
    for value in CONSTANTS:
        X = np.full((ROWS, 1), value)
        model = fitted(X, y, plan=plain(sigma=1e-9, l2=1e-9))
        np.testing.assert_allclose(model.predict_proba(X), [shares] * ROWS, atol=1e-6)
        above = 1.0 - np.cumsum(shares)[:-1]
        np.testing.assert_allclose(model.intercept_ + value * model.coef_, logit(above), atol=1e-6)


@pytest.mark.long
def test_without_noise_survival_is_that_of_scikit_learns_hazards():
    """Its hazards are asked for by period and indicator, and its curve is their product."""
    X, y = lifetimes()
    model = survived(X, y, plan=plain(sigma=1e-9, l2=1e-9))
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    theirs.fit(*person_periods(X, y)[:2])
    asked, _, owners = person_periods(X, [(PERIODS, False)] * ROWS)
    stays = theirs.predict_proba(asked)[:, 0].reshape(ROWS, PERIODS)
    assert np.array_equal(owners.reshape(ROWS, PERIODS)[:, 0], np.arange(ROWS))
    np.testing.assert_allclose(model.predict_survival(X), np.cumprod(stays, axis=1), atol=1e-6)


@pytest.mark.parametrize("member", [True, False])
def test_exact_losses_are_log_ratios_of_densities(member):
    """A release's density is that of the noise which its table implies, times the Hessian's determinant."""
    X, y = table(rows=25)
    model = fitted(X, y, plan=plain(epsilon=2.0))
    theta = np.array(model.publication_.coefficients)
    others, answers = table(seed=1, rows=9)
    asked, labels = (X, y) if member else (others, answers)
    found = model.ex_post_losses(asked, labels, member=member, return_terms=True).signed
    rows, outcomes = spread(X, y)
    here = log_density(theta, rows, outcomes, np.full(len(rows), 1.0 / 3.0), model.plan_)
    for place, record in enumerate(zip(asked, labels, strict=True)):
        own, own_outcomes = spread(record[0][None, :], [record[1]])
        if member:
            kept = np.arange(len(rows)) // 3 != place
            changed = rows[kept], outcomes[kept]
        else:
            changed = np.vstack([rows, own]), np.append(outcomes, own_outcomes)
        there = log_density(theta, *changed, np.full(len(changed[0]), 1.0 / 3.0), model.plan_)
        assert found[place] == pytest.approx(here - there, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ordered", "times"])
def test_no_divergence_of_neighbouring_tables_is_above_the_certificate(kind):
    """Two rows a record and one feature make three coefficients: integrated over a grid, both directions."""
    plan, rng = plain(epsilon=1.0, delta=0.01), np.random.default_rng(2)
    ends = 7.5 * plan.sigma / plan.l2
    axis = (np.arange(60) + 0.5) / 60.0 * 2.0 * ends - ends
    theta = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    cell = (axis[1] - axis[0]) ** 3 / ((2.0 * np.pi) ** 1.5 * plan.sigma**3)
    outcomes = {"ordered": [0, 1, 2], "times": [(1, True), (2, False), (2, True)]}[kind]
    largest = 0.0
    for count in (0, 1, 3):
        for outcome in outcomes:
            X = rng.uniform(-1.0, 1.0, (count + 1, 1))
            y = [*(outcomes[code] for code in rng.integers(3, size=count)), outcome]
            X[-1] = rng.choice([-1.0, 1.0])
            rows, labels = spread(X, y, [0, 1, 2]) if kind == "ordered" else person_periods(X, y, 2)[:2]
            own = 2 if kind == "ordered" else outcome[0]
            weights = np.full(len(rows), 0.5)
            more = cell * np.exp(log_density(theta, rows, labels, weights, plan))
            less = cell * np.exp(log_density(theta, rows[:-own], labels[:-own], weights[:-own], plan))
            np.testing.assert_allclose([more.sum(), less.sum()], 1.0, atol=1e-5)
            for one, other in ((more, less), (less, more)):
                largest = max(largest, np.maximum(one - np.e * other, 0.0).sum())
    assert 0.1 * plan.delta < largest <= plan.delta_at(1.0) + 1e-6


@KINDS
def test_reports_cover_the_exact_losses_and_a_file_says_what_the_model_says(tmp_path, drawn, fit, by_hand):
    """At 1 - 1e-6 for each record fixed before the noise; the seeded noise breaks none of them."""
    X, y = drawn()
    model = fit(X, y, report="leverage", epsilon=3.0)
    model.publication_.save(tmp_path / "model.json")
    read = expost.Publication.load(tmp_path / "model.json")
    assert read == model.publication_
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    for member in (True, None):
        bounds = read.bounds(X, y, confidence=1.0 - 1e-6, member=member)
        exact = model.ex_post_losses(X, y)
        assert bounds.people is None
        assert np.all((bounds.lower <= exact) & (exact <= bounds.upper) & (exact <= bounds.total))
    if drawn is table:
        np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
        np.testing.assert_allclose(read.predict_proba(X).sum(axis=1), 1.0)
        places = ["above none", "above mild", "above moderate"]
    else:
        np.testing.assert_array_equal(read.predict_survival(X), model.predict_survival(X))
        places = ["period 1", "period 2", "period 3", "period 4"]
    assert list(read.summary().terms) == ["x0", "x1", *places]


def test_predictions_reach_the_median_class_and_probabilities_never_rise():
    X, y = table(rows=2000)
    model = fitted(X, y, epsilon=8.0)
    scores = model.decision_function(X)
    assert np.all(np.diff(scores, axis=1) <= 0.0)
    chances = model.predict_proba(X)
    assert np.all(chances >= 0.0)
    above = 1.0 - np.cumsum(chances, axis=1)[:, :-1]
    np.testing.assert_allclose(above, expit(scores), atol=1e-12)
    reached = np.array(CLASSES)[np.count_nonzero(above > 0.5, axis=1)]
    np.testing.assert_array_equal(model.predict(X), reached)
    assert model.score(X, y) == np.mean(reached == y) > 0.35


def test_published_intercepts_that_are_out_of_order_are_sorted_for_predictions():
    X, y = table(rows=4)
    for seed in range(20):
        model = fitted(X, y, epsilon=0.5, random_state=seed)
        published = np.array(model.publication_.coefficients[2:])
        if np.any(np.diff(published) > 0.0):
            break
    else:
        pytest.fail("no seed had intercepts out of order")
    np.testing.assert_array_equal(model.intercept_, np.sort(published)[::-1])
    np.testing.assert_array_equal(model.publication_.predict_proba(X), model.predict_proba(X))


def test_weights_and_the_l1_penalty_leave_intercepts_free_and_losses_exact():
    X, y = table(rows=40)
    weights = np.linspace(0.0, 2.0, 40)
    model = fitted(X, y, max_weight=2.0, l1=50.0)
    model.fit(X, y, sample_weight=weights)
    assert np.all(model.coef_ == 0.0)
    assert np.all(model.intercept_ != 0.0)
    losses = model.ex_post_losses(X, y, sample_weight=weights)
    assert losses[0] == 0.0
    told = model.publication_.bounds(X, y, confidence=1.0 - 1e-6)
    assert np.all(losses <= told.upper)


def test_what_a_publication_costs_together_with_another_is_at_most_the_sum():
    X, y = table(rows=30)
    ordered = [fitted(X, y, random_state=seed).publication_ for seed in (1, 2)]
    both = expost.total(ordered, X, y, member=True)
    alone = sum(one.bounds(X, y, confidence=0.975, member=True).total for one in ordered)
    assert np.all(both <= alone * (1.0 + 1e-9))
    two = expost.OrdinalRegression(norm=1.0, classes=CLASSES[::-1], random_state=3).fit(X, y)
    assert expost.total([ordered[0], two.publication_], X, y).shape == (30,)


def test_records_with_people_of_their_own_and_other_outcomes_are_refused():
    X, y = table(rows=12)
    with pytest.raises(DomainError, match="each record is a person of her own"):
        fitted(X, y).fit(X, y, groups=np.arange(12))
    with pytest.raises(ParameterError, match="`classes` must be declared: three or more"):
        expost.OrdinalRegression(norm=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="`classes` must be declared: three or more"):
        expost.OrdinalRegression(norm=1.0, classes=["a", "b"]).fit(X, y)
    with pytest.raises(ParameterError, match="`plan` must be made with unit='person'"):
        fitted(X, y, plan=expost.calibrate(norm=1.0, fit_intercept=True))
    with pytest.raises(ParameterError, match="`fit_intercept` must be True"):
        fitted(X, y, fit_intercept=False)
    with pytest.raises(DomainError, match="outside the declared classes"):
        fitted(X, ["unknown"] * 12)
    features = (expost.Number(name="a", low=0.0, high=1.0),)
    label = expost.OrderedLabel(name="y", classes=("a", "b", "c"))
    with pytest.raises(ValueError, match="each record is a person of her own"):
        expost.Domain(features=features, label=label, person="id")
    other = expost.Domain(features=features, label=expost.ClassLabel(name="y", classes=("a", "b")))
    with pytest.raises(ParameterError, match="got a label of kind='classes': take LogisticRegression"):
        expost.OrdinalRegression(domain=other).fit({"a": X[:, 0]}, y)
    with pytest.raises(ParameterError, match="has classes; got a label of kind='ordered': take OrdinalRegr"):
        expost.LogisticRegression(domain=expost.Domain(features=features, label=label)).fit({"a": X[:, 0]}, y)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"fit_intercept": False}, "fit_intercept"),
        ({"classes": ["none", "mild", "severe"]}, "classes"),
        ({"outcome": None}, "classes"),
        ({"loss": {"name": "smoothed_hinge", "scale": 0.5}}, "must not declare kind 'ordered'"),
        ({"coefficients": [0.0, 0.0, 0.0]}, "no feature"),
    ],
)
def test_a_file_that_does_not_hang_together_is_refused(change, refusal):
    from expost._common.strict_json import digest

    X, y = table(rows=12)
    content = json.loads(fitted(X, y).publication_.to_json()) | change
    content = {name: value for name, value in content.items() if value is not None or name != "outcome"}
    del content["sha256"]
    with pytest.raises(PublicationError, match=refusal):
        expost.Publication.from_json(json.dumps(content | {"sha256": digest(content)}))


def test_files_and_lists_of_columns_give_the_same_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = table(rows=60)
    features = tuple(expost.Number(name=one, low=-1.0, high=1.0) for one in "ab")
    domain = expost.Domain(features=features, label=expost.OrderedLabel(name="y", classes=tuple(CLASSES)))
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame.to_csv(tmp_path / "table.csv", index=False)
    models = [
        expost.OrdinalRegression(domain=domain, random_state=5).fit(one)
        for one in (frame, str(tmp_path / "table.csv"))
    ]
    assert models[0].publication_ == models[1].publication_
    losses = [one.ex_post_losses(frame) for one in models]
    np.testing.assert_array_equal(*losses)
    np.testing.assert_allclose(models[1].ex_post_losses(str(tmp_path / "table.csv")), losses[0], rtol=1e-12)


def test_exact_losses_of_times_are_log_ratios_of_densities():
    X, y = lifetimes(rows=30)
    model = survived(X, y, plan=plain(epsilon=2.0))
    theta = np.array(model.publication_.coefficients)
    found = model.ex_post_losses(X, y, return_terms=True).signed
    rows, labels, owners = person_periods(X, y)
    weights = np.full(len(rows), 1.0 / PERIODS)
    here = log_density(theta, rows, labels, weights, model.plan_)
    for place in range(30):
        kept = owners != place
        there = log_density(theta, rows[kept], labels[kept], weights[kept], model.plan_)
        assert found[place] == pytest.approx(here - there, abs=1e-9)
    assert np.all(found[y[:, 0] == 0] == 0.0)


def test_a_file_says_what_it_has_probabilities_of():
    read = survived(*lifetimes(rows=12)).publication_
    with pytest.raises(PublicationError, match="use `predict_survival`"):
        read.predict_proba(np.zeros((1, 2)))
    with pytest.raises(PublicationError, match="an outcome that is a time"):
        fitted(*table(rows=12)).publication_.predict_survival(np.zeros((1, 2)))


def test_survival_falls_and_the_mean_time_and_the_concordance_are_theirs():
    X, y = lifetimes(rows=600)
    model = survived(X, y, epsilon=8.0)
    curve = model.predict_survival(X)
    hazards = expit(X @ model.coef_[:, None] + model.intercept_)
    np.testing.assert_allclose(curve, np.cumprod(1.0 - hazards, axis=1), rtol=1e-12)
    ends = np.column_stack([np.ones(600), curve])
    np.testing.assert_allclose(model.predict(X), np.trapezoid(ends, axis=1), rtol=1e-12)
    said, right, pairs = model.predict(X), 0.0, 0
    times = np.minimum(y[:, 0], PERIODS)
    events = (y[:, 1] > 0) & (y[:, 0] <= PERIODS)
    for one in np.flatnonzero(events):
        for other in range(600):
            if times[other] > times[one] or (times[other] == times[one] and not events[other]):
                pairs += 1
                right += (said[other] > said[one]) + 0.5 * (said[other] == said[one])
    assert model.score(X, y) == pytest.approx(right / pairs)
    twice = np.concatenate([np.full(300, 2.0), np.ones(300)])
    again = np.concatenate([np.arange(300), np.arange(600)])
    assert model.score(X, y, sample_weight=twice) == pytest.approx(model.score(X[again], y[again]))
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(("periods", "length"), [(12, 30.0), (4, 90.0)])
def test_the_mean_time_is_that_of_the_true_law_however_long_the_periods_are(periods, length):
    r"""Exponential times with a mean m, of which no more than T counts: :math:`m(1 - e^{-T/m})`.

    The straight line is above the curve by m/12 times the square of length/m. The error of the mean of 20,000
    drawn times is below 1 day; 5 of them fail less than once in a million.
    """
    mean, end, rows = 150.0, periods * length, 20_000
    rng = np.random.default_rng(6)
    drawn, followed = rng.exponential(mean, rows), rng.uniform(0.5 * end, 2.0 * end, rows)
    y = np.column_stack([np.minimum(drawn, followed), drawn <= followed])
    X = rng.uniform(-0.5, 0.5, (rows, 1))
    plan = plain(sigma=1e-3, l2=1e-2)
    model = expost.SurvivalRegression(periods=periods, length=length, plan=plan, random_state=0).fit(X, y)
    found = float(np.mean(model.predict(X)))
    true = mean * (1.0 - np.exp(-end / mean))
    above = (length / mean) ** 2 / 12.0 * true
    assert found == pytest.approx(true + above, abs=5.0)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.5, 0.15])
def test_the_rule_for_the_number_of_periods_is_what_invented_tables_say(share):
    """docs/domain.md: 100 rows times the square of the periods, at ε = 1; the noise is seeded.

    Half, or 15%, of the people have the event in 360 days, and some are followed for less time.
    """
    features = tuple(expost.Number(name=one, low=-1.0, high=1.0) for one in "abc")

    def off_by(periods, rows):
        rng, length = np.random.default_rng(0), 360.0 / periods
        X = {one: rng.uniform(-1.0, 1.0, rows) for one in "abc"}
        rate = -np.log(1.0 - share) / 360.0 * np.exp(0.8 * X["a"] - 0.5 * X["b"])
        drawn, followed = rng.exponential(1.0 / rate), rng.uniform(60.0, 720.0, rows)
        y = np.column_stack([np.minimum(drawn, followed), drawn <= followed])
        label = expost.TimeLabel(name="days", event="ill", periods=periods, length=length)
        domain = expost.Domain(features=features, label=label)
        model = expost.SurvivalRegression(domain=domain, random_state=0).fit(X, y)
        true = np.exp(-np.outer(rate, label.ends))
        return np.max(np.abs(np.mean(model.predict_survival(X) - true, axis=0)))

    assert max(off_by(periods, 100 * periods**2) for periods in (3, 6, 12)) < 0.15
    assert off_by(12, 1000) > 0.25


def test_times_are_read_in_declared_periods():
    label = expost.TimeLabel(name="days", event="died", periods=3, length=30.0)
    times = [0.0, 0.0, 29.0, 30.0, 30.0, 31.0, 90.0, 91.0, 91.0, 1e9]
    events = ["yes", "no", "no", "no", "yes", "yes", "yes", "yes", "no", "no"]
    codes = label.coded(np.array(times), np.array(events))
    assert codes.tolist() == [3, 0, 0, 2, 3, 5, 7, 6, 6, 6]
    assert np.all(label.codes.contains(codes))
    answers, counted = label.answers(codes)
    np.testing.assert_array_equal(counted.sum(axis=1), codes // 2)
    np.testing.assert_array_equal(answers.sum(axis=1), codes % 2)
    assert np.all(answers <= counted)
    assert expost.TimeLabel(name="t", event="e", periods=9, length=0.1).coded(
        np.array([0.3, 0.7]), np.array([False, True])
    ).tolist() == [6, 15]


@pytest.mark.filterwarnings("error")
def test_the_longest_times_are_read_without_a_warning():
    """A warning would say that such a time is in the table."""
    label = expost.TimeLabel(name="days", event="died", periods=3, length=0.01)
    assert label.coded(np.array([1e308, 1e308, 0.03]), np.array(["yes", "no", "yes"])).tolist() == [6, 6, 7]
    long = expost.TimeLabel(name="days", event="died", periods=60, length=1e306)
    assert long.coded(np.array([1.7e308, 6e307]), np.array(["yes", "yes"])).tolist() == [120, 121]


def test_a_record_that_was_never_at_risk_is_told_zero():
    """None of its rows counts; a zero below zero would be printed as -0.0000."""
    X, y = lifetimes(rows=40)
    bounds = survived(X, y).publication_.bounds(X[:1], np.zeros((1, 2)), member=True)
    for figure in bounds.figures:
        assert figure[0] == 0.0
        assert not np.signbit(figure[0])


def test_times_in_arrays_frames_files_and_as_scikit_survival_has_them(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = lifetimes(rows=60)
    model = survived(X, y)
    structured = np.array([(bool(e), t) for t, e in y], dtype=[("event", bool), ("time", float)])
    losses = model.ex_post_losses(X, y)
    for other in (structured, (y[:, 0], y[:, 1] > 0), pandas.DataFrame(y)):
        np.testing.assert_array_equal(model.ex_post_losses(X, other), losses)
    features = tuple(expost.Number(name=one, low=-1.0, high=1.0) for one in "ab")
    label = expost.TimeLabel(name="months", event="died", periods=PERIODS)
    domain = expost.Domain(features=features, label=label)
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "months": y[:, 0], "died": y[:, 1] > 0})
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(ParameterError, match="label has classes; got a label of kind='time': take SurvivalR"):
        expost.LogisticRegression(domain=domain).fit(frame)
    models = [
        expost.SurvivalRegression(domain=domain, random_state=5).fit(one)
        for one in (frame, str(tmp_path / "table.csv"))
    ]
    assert models[0].publication_ == models[1].publication_
    assert "died" in domain.check({**frame, "died": ["maybe"] * 60})["column"].tolist()


def test_times_that_are_none_and_undeclared_periods_are_refused(tmp_path):
    X, y = lifetimes(rows=12)
    with pytest.raises(ParameterError, match="`periods` must be declared"):
        expost.SurvivalRegression(norm=1.0).fit(X, y)
    with pytest.raises(DomainError, match="must be a time of 0 or more"):
        survived(X, y - np.array([1.0, 0.0]))
    for column, name in enumerate(("outcome", "event")):
        empty = y.astype(float)
        empty[3, column] = np.nan
        with pytest.raises(DomainError, match=f"`{name}` is empty in a record: the time, or whether"):
            survived(X, empty)
    with pytest.raises(DomainError, match="must be yes or no"):
        survived(X, y + np.array([0.0, 2.0]))
    with pytest.raises(DomainError, match="`y` must have two columns"):
        survived(X, y[:, 0])
    (tmp_path / "table.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(ParameterError, match="`domain` must be given for files"):
        survived(str(tmp_path / "table.csv"), None)


def test_a_set_of_classes_has_no_order_and_is_refused():
    X, y = table(rows=30)
    with pytest.raises(ParameterError, match="A set has no order: give a list, the lowest first"):
        expost.OrdinalRegression(norm=1.0, classes=set(CLASSES)).fit(X, y)
