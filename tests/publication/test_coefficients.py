"""The table of coefficients of a publication: what it shows, and what it refuses."""

import dataclasses
import io
import sys

import numpy as np
import pandas as pd
import pytest
from problems import rows_in_ball
from publications import X as SMALL, Y as SMALL_Y, fit, published, squared
from scipy import sparse, stats
from scipy.special import expit

import expost
from expost.exceptions import ParameterError, PublicationError
from expost.privacy.shapes import capped_logistic

BUDGET = {"epsilon": 8.0, "report": "leverage", "split": 0.98, "fit_intercept": True}
ENOUGH = expost.calibrate(**BUDGET)
rng = np.random.default_rng(3)
X = rows_in_ball(rng, 4000, 3)
Y = (rng.uniform(size=4000) < expit(X @ [1.0, -2.0, 0.0] + 0.5)).astype(int)


def reduced():
    return expost.calibrate(loss=expost.SoftmaxLoss(3), report="leverage", reduced=True, fit_intercept=True)


@pytest.fixture(scope="module")
def publication():
    return fit("leverage", X, Y, plan=ENOUGH).publication_


@pytest.fixture(scope="module")
def several():
    labels = np.array(["b", "c", "a"])[np.random.default_rng(4).integers(0, 3, 4000)]
    plan = expost.calibrate(loss=expost.SoftmaxLoss(3), **BUDGET)
    return fit("leverage", X, labels, classes=["a", "b", "c"], plan=plan)


def test_the_figures_belong_together(publication):
    found = publication.summary(confidence=0.9)
    assert found.terms == ("x0", "x1", "x2", "intercept")
    np.testing.assert_allclose(found.z, found.coefficients / found.standard_errors)
    np.testing.assert_allclose(found.p_values, 2 * stats.norm.sf(np.abs(found.z)))
    half = stats.norm.ppf(0.95) * found.standard_errors
    np.testing.assert_allclose(found.upper, found.coefficients + half)
    np.testing.assert_allclose(found.lower, found.coefficients - half)
    # The penalty pulled towards zero: what it took is given back.
    assert np.linalg.norm(found.coefficients) > np.linalg.norm(publication.coefficients)
    # Eight standard errors are a false alarm of 1e-15.
    assert np.all(np.abs(found.coefficients - [1.0, -2.0, 0.0, 0.5]) < 8.0 * found.standard_errors)


@pytest.mark.parametrize("report", ["independent", "leverage"])
@pytest.mark.parametrize(("norm", "said"), [(None, True), (2.0, False)])
def test_it_says_where_rows_were_scaled_down(report, norm, said):
    """With two categories of four features the default scales every row down, error bars or not."""
    numbers = [expost.Number(name=name, low=-1.0, high=1.0) for name in "ab"]
    kinds = [expost.Category(name=name, categories=("x", "y")) for name in "cd"]
    domain = expost.Domain(
        features=(*numbers, *kinds), label=expost.ClassLabel(name="ill", classes=(0, 1)), norm=norm
    )
    draw = np.random.default_rng(8)
    table = pd.DataFrame(draw.uniform(-1.0, 1.0, (4000, 2)), columns=["a", "b"])
    table[["c", "d"]] = draw.choice(["x", "y"], (4000, 2))
    plan = expost.calibrate(**BUDGET | {"report": report, "split": None}, norm=domain.row_norm)
    model = expost.LogisticRegression(domain=domain, plan=plan, random_state=3)
    notes = " ".join(model.fit(table, draw.integers(0, 2, 4000)).publication_.summary().notes)
    assert ("longer ones were scaled down to 1.414" in notes) is said
    assert ("With `norm = 2` none would have been" in notes) is said


def test_noise_makes_intervals_wider(publication):
    """Against the information that the same table has without noise."""
    found = publication.summary()
    rows = np.column_stack([X, np.ones(len(X))])
    p = expit(rows @ found.coefficients)
    plain = np.sqrt(np.diag(np.linalg.inv((rows * (p * (1 - p))[:, None]).T @ rows)))
    assert np.all(found.standard_errors > 0.98 * plain)
    assert np.all(found.standard_errors < 1.5 * plain)


def test_it_is_read_from_the_file(publication):
    again = expost.Publication.from_json(publication.to_json())
    pd.testing.assert_frame_equal(again.summary().to_frame(), publication.summary().to_frame())


@pytest.mark.long
def test_frames_have_one_row_per_coefficient(publication, several):
    frame = publication.summary().to_frame()
    figures = ["coefficient", "standard_error", "lower", "upper", "z", "p_value"]
    assert list(frame.columns) == ["term", *figures]
    assert list(frame["term"]) == ["x0", "x1", "x2", "intercept"]
    assert publication.summary().to_frame("polars").shape == (4, 7)
    of_classes = several.publication_.summary()
    assert of_classes.coefficients.shape == (3, 4)
    np.testing.assert_allclose(of_classes.coefficients.sum(axis=0), 0.0, atol=1e-12)
    frame = of_classes.to_frame()
    assert list(frame["class"]) == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    np.testing.assert_allclose(frame["coefficient"], of_classes.coefficients.ravel())


def test_tables_are_shown_in_terminals_and_notebooks(publication, several):
    from rich.console import Console

    for found in (publication.summary(), several.publication_.summary()):
        console = Console(width=200, record=True)
        console.print(found)
        for text in (console.export_text(), found._repr_html_()):
            assert "INSECURE" in text
            assert "std. err." in text
            decimals = 1 - int(np.floor(np.log10(found.standard_errors.ravel()[1])))
            assert f"{found.coefficients.ravel()[1]:.{decimals}f}" in text
        assert repr(found).startswith("CoefficientTable(")
        assert all(text in str(found) for text in (*found.terms, "INSECURE", "std. err."))
    for line in ('<th scope="row">b</th>', '<th scope="row">  x1</th>'):
        assert line in several.publication_.summary()._repr_html_()
    plan = expost.calibrate(loss=capped_logistic(8.0, 1e-6), **BUDGET)
    capped = fit("leverage", X, Y, plan=plan).publication_.summary()
    assert "not log-odds" in capped._repr_html_()


def test_a_table_without_intervals_says_so_and_is_printed():
    found = fit("independent", X, Y).publication_.summary()
    assert repr(found) == f"CoefficientTable({len(found)} coefficients, no intervals)"
    assert "Coefficients as published" in str(found)
    assert f"{found.coefficients[0]:.3f}"[:5] in str(found)


def test_what_is_not_determined_is_said():
    table = np.column_stack([X[:, :2], np.zeros(len(X))])
    found = fit("leverage", table, Y, plan=ENOUGH).publication_.summary()
    assert np.isnan(found.z).tolist() == [False, False, True, False]
    assert '<td class="figure">—</td>' in found._repr_html_()
    assert any("1 cannot be told from the noise" in note for note in found.notes)
    figure = found.plot()
    assert "x2" not in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "1 coefficient is not determined and not shown" in figure.get_supxlabel()
    assert "INSECURE" in figure.get_suptitle()


def test_a_domain_gives_units_and_names():
    rng = np.random.default_rng(5)
    age, ward = rng.uniform(20.0, 80.0, 20_000), rng.choice(["north", "south"], 20_000)
    ill = rng.uniform(size=20_000) < expit(0.05 * (age - 50.0) - 0.8 * (ward == "south"))
    features = (
        expost.Number(name="age", low=20.0, high=80.0),
        expost.Category(name="ward", categories=("north", "south")),
    )
    label = expost.ClassLabel(name="ill", classes=("no", "yes"))
    frame, labels = pd.DataFrame({"age": age, "ward": ward}), np.where(ill, "yes", "no")
    domain = expost.Domain(features=features, label=label, norm=2.0**0.5)
    plan = expost.calibrate(norm=domain.row_norm, **BUDGET)
    model = expost.LogisticRegression(domain=domain, plan=plan, random_state=0)
    found = model.fit(frame, labels).publication_.summary()
    assert found.terms == ("age", "ward=south", "intercept")
    # Seven standard errors: a false alarm of 1e-11.
    assert np.all(np.abs(found.coefficients - [0.05, -0.8, -2.5]) < 7.0 * found.standard_errors)
    assert found.standard_errors[0] < 0.002
    assert "Compared with ward=north." in found.notes
    assert not any("scaled" in note for note in found.notes)
    drawn = found.plot().axes[0]
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["age", "ward=south"]
    assert found.spans.tolist() == [60.0, 1.0, 1.0]


def test_probabilities_have_intervals(publication, several):
    found = publication.predict_proba(X[:50], interval=0.95)
    assert np.all((found.lower < found.estimate) & (found.estimate < found.upper))
    np.testing.assert_allclose(found.estimate.sum(axis=1), 1.0)
    rows = np.column_stack([X[:50], np.ones(50)])
    np.testing.assert_allclose(found.estimate[:, 1], expit(rows @ publication.summary().coefficients))
    wider = publication.predict_proba(X[:50], interval=0.99)
    assert np.all(wider.lower < found.lower)
    assert publication.predict_proba(X[:2]).shape == (2, 2)
    for one, other in zip(
        publication.predict_proba(sparse.csr_array(X[:50]), interval=0.95), found, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    classes = several.publication_.predict_proba(X[:5], interval=0.9)
    assert classes.estimate.shape == (5, 3)
    assert np.all((classes.lower < classes.estimate) & (classes.estimate < classes.upper))


@pytest.mark.slow
def test_an_estimator_has_them_in_its_own_order():
    label = expost.ClassLabel(name="y", classes=("c", "a", "b"))
    domain = expost.Domain(features=(expost.Number(name="x", low=-1.0, high=1.0),), label=label)
    rng = np.random.default_rng(8)
    frame, labels = pd.DataFrame({"x": rng.uniform(-1, 1, 4000)}), rng.choice(["a", "a", "b", "c"], 4000)
    plan = expost.calibrate(loss=expost.SoftmaxLoss(3), norm=domain.row_norm, **BUDGET)
    model = expost.LogisticRegression(domain=domain, plan=plan, random_state=1)
    model.fit(frame, labels)
    mine, theirs = (one.predict_proba(frame[:3], interval=0.9) for one in (model, model.publication_))
    assert model.classes_.tolist() == ["a", "b", "c"]
    for own, published_ones in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(own, published_ones[:, [1, 2, 0]])
    np.testing.assert_allclose(mine.estimate, model.predict_proba(frame[:3]), atol=0.1)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: published("independent"), "needs a Hessian"),
        (lambda: published("leverage"), "too much noise for this table"),
        (squared, "this publication has squared"),
        (lambda: fit("leverage", SMALL, SMALL_Y, class_weight={0: 1.0, 1: 0.5}).publication_, "has weights"),
        pytest.param(
            lambda: fit("leverage", SMALL, SMALL_Y % 2, classes=[0, 1, 2], plan=reduced()).publication_,
            "has the reduced one",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_supports_no_inference_has_estimates_alone(made, words):
    publication = made()
    summary = publication.summary()
    assert words in summary.notes[-1]
    assert np.all(np.isnan(summary.lower))
    rows = np.column_stack([np.eye(3), np.ones(3)])[:, : len(summary.terms)]
    shown = rows @ np.atleast_2d(summary.coefficients).T
    scores = rows @ publication.loss.by_predictor(publication.release.coefficients).T
    np.testing.assert_allclose(shown.squeeze(), scores.squeeze(), rtol=1e-12, atol=1e-12)
    for refused in (summary.plot, lambda: publication.predict_proba(SMALL, interval=0.95)):
        with pytest.raises(PublicationError, match=words):
            refused()


def test_pseudo_huber_has_no_intervals():
    model = expost.LinearRegression(norm=1.0, outcome=(-1, 1), report="leverage", epsilon=8.0, random_state=0)
    summary = model.fit(X, X[:, 0]).publication_.summary()
    assert "this publication has pseudo_huber" in summary.notes[-1]
    np.testing.assert_array_equal(summary.coefficients[:-1], model.coef_.ravel())


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, "high", float("nan")])
def test_a_confidence_is_between_zero_and_one(publication, confidence):
    with pytest.raises(ParameterError, match="`confidence` must be a number with 0 < confidence < 1"):
        publication.summary(confidence)
    with pytest.raises(ParameterError, match="`interval` must be"):
        publication.predict_proba(X[:1], interval=confidence)


def test_without_matplotlib_a_plot_names_the_extra(publication, monkeypatch):
    monkeypatch.delitem(sys.modules, "expost.inference.picture", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(expost.exceptions.MissingExtraError, match="expost\\[figures\\]"):
        publication.summary().plot()


def test_hostile_names_are_escaped(publication):
    found = dataclasses.replace(publication.summary(), terms=("<b>$x$", "x\x1b[2J", "y", "intercept"))
    html = found._repr_html_()
    assert "<b>$" not in html
    assert "\x1b" not in html
    found.plot().savefig(io.BytesIO(), format="png")
