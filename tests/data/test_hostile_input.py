"""Hostile or careless input raises our own errors, whose messages quote nothing from the table."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from own_losses import LogCosh
from problems import all_rows, design_of, encoded_table, rows_in_ball

import expost
from expost.data.blocks import Table
from expost.data.tables import open_table
from expost.data.values import as_numbers
from expost.data.weights import Weighting
from expost.exceptions import DomainError, ExpostError, LossError, ParameterError
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.losses import DerivativeCurve

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 2)) / 4, rng.integers(0, 2, 60)


def chain(error):
    """All messages of an error and of the errors that caused it."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


LABELS = {
    "None among them": [None, *Y[1:]],
    "a dict": [{"name": "SECRET"}, *Y[1:]],
    "text among numbers": ["SECRET", *Y[1:]],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_never_quoted_when_classes_are_learnt(kind):
    with pytest.raises(DomainError) as caught:
        expost.LogisticRegression(norm=1.0).fit(X, np.array(LABELS[kind], dtype=object))
    assert all("SECRET" not in text and "array(" not in text for text in chain(caught.value))


TABLES = {
    "text": [["SECRET", 1.0]] * 3,
    "one dimension": np.array([3.14159, 2.71828]),
    "huge": np.array([[10**400, 1]], dtype=object),
    "masked": np.ma.masked_array(X, mask=X > 0),
    "decimals": pl.DataFrame({"a": [Decimal("1.5")] * 3, "b": [1.0] * 3}),
    "pandas' NA": pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean")}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_are_not_numbers_are_refused_without_quoting_them(kind):
    table = TABLES[kind]
    try:
        model = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(table, np.zeros(len(table)))
    except ExpostError as error:
        for text in chain(error):
            assert "SECRET" not in text
            assert "3.14159" not in text
    else:  # decimals are numbers if the frame has a type for them
        assert kind == "decimals"
        assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("labels", [["SSN-123"] * 60, [10**400] * 60, Y + 1j, Y.astype("datetime64[s]")])
def test_outcomes_that_are_not_numbers_are_refused(labels):
    with pytest.raises(DomainError, match="must be a number") as caught:
        expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(X, np.array(labels))
    assert all("SSN" not in text for text in chain(caught.value))


def test_the_mechanism_refuses_a_design_that_the_plan_was_not_made_for():
    plan = expost.calibrate(loss="logistic", norm=1.0)
    y = Y.astype(float)
    for design in (
        design_of(X, norm=100.0),
        design_of(X, fit_intercept=True),
    ):
        with pytest.raises(ParameterError, match="`plan` must be made for the norm and the intercept"):
            perturb(plan, design.labelled(y), noise=SeededNoise(0))


class Steep(expost.LogisticLoss):
    """A loss that is steeper than it declares."""

    def derivatives(self, eta, y):
        slope, curvature = super().derivatives(eta, y)
        return 100.0 * slope, 100.0 * curvature


def test_no_plan_is_made_for_a_loss_that_is_not_what_it_declares():
    with pytest.raises(LossError, match="exceeds the declared max_slope"):
        expost.calibrate(loss=Steep())


class Growing(Table):
    """A table whose owner changes it while it is read."""

    def __init__(self):
        self.n_rows, self.n_features, self.reads = 50, 3, 0
        self._rows = rows_in_ball(np.random.default_rng(1), 50, 3)

    def rows(self, start, stop):
        self.reads += 1
        return self._rows[start:stop] * 10.0**self.reads


def test_rows_that_change_between_passes_stay_inside_the_ball():
    records = encoded_table(Growing()).checked_for(expost.LogisticLoss(), 1.0)
    for _ in range(3):
        assert np.all(np.linalg.norm(all_rows(records), axis=1) <= 1.0)


@pytest.mark.parametrize("epsilon", [710.0, 1e5])
def test_an_extreme_budget_is_accepted(epsilon):
    plan = expost.calibrate(loss="logistic", epsilon=epsilon, l2=1.0)
    assert plan.delta_at(epsilon) <= plan.delta


@pytest.mark.parametrize("bad", [{"norm": 1e200}, {"norm": 1e-160}, {"epsilon": 10**400}, {"l2": 10**400}])
def test_numbers_beyond_double_precision_are_refused(bad):
    with pytest.raises(ParameterError, match="must be"):
        expost.calibrate(**{"loss": "logistic", **bad})


def test_membership_is_true_or_false():
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, Y)
    with pytest.raises(ParameterError, match="`member` must be a truth value, or one for each row"):
        model.ex_post_losses(X, Y, member="no")
    with pytest.raises(ParameterError, match="`simultaneous` must be at most"):
        model.publication_.bounds(X, Y, simultaneous=10**400)


def test_a_feature_named_like_anothers_category_is_refused_before_any_fit():
    text = """
    [label]
    name = "y"
    kind = "classes"
    classes = ["a", "b"]
    [[features]]
    name = "c"
    kind = "category"
    categories = ["u", "v"]
    [[features]]
    name = "c=u"
    kind = "number"
    low = 0.0
    high = 1.0
    """
    with pytest.raises(DomainError, match="named like a category"):
        expost.Domain.from_toml(text)
    with pytest.raises(DomainError, match="nested too deeply"):
        expost.Domain.from_toml("a = " + "[" * 30_000)


def test_columns_of_lists_and_unknowns_raise_our_error():
    domain = expost.Domain.model_validate(
        {
            "features": [{"name": "c", "kind": "category", "categories": ["u", "v"]}],
            "label": {"name": "y", "kind": "classes", "classes": ["a", "b"]},
        }
    )
    lists = np.empty(2, dtype=object)
    lists[:] = [np.array(["SECRET", "u"]), np.array(["u"])]
    for column in (lists, np.array([pd.NA, "u"], dtype=object), np.array([["u", "v"]] * 2)):
        with pytest.raises(DomainError) as caught:
            expost.LogisticRegression(domain=domain).fit({"c": column}, ["a", "b"])
        assert all("SECRET" not in text for text in chain(caught.value))


def test_an_outcome_beyond_double_precision_has_the_limiting_slope():
    with np.errstate(all="raise"):
        slope, curvature = expost.PseudoHuber(0.1).derivatives(np.zeros(2), np.array([1e308, -1e308]))
    np.testing.assert_allclose(slope, [-0.1, 0.1])
    assert not np.any(curvature)


def test_a_loss_whose_curvature_rises_faster_than_its_slope_takes_no_weights():
    """Its certificate does not cover weights below one."""

    class Rising(LogCosh):
        @property
        def curve(self):
            return DerivativeCurve(1.0, lambda m: np.minimum(m**1.5, 0.3), peak=1.0, sign_fixed=False)

    weighting = Weighting.declared(2.0, None, of_records=True)
    weights = np.array([0.5, 2.0])
    np.testing.assert_array_equal(weighting.of(weights, np.zeros(2), LogCosh()), weights)
    assert weighting.of(None, np.zeros(2), Rising()) is None
    with pytest.raises(DomainError, match=r"Rising does not take weights: its curvature\(m\)/m rises"):
        weighting.of(weights, np.zeros(2), Rising())


def test_bytes_are_read_as_the_numbers_they_spell():
    np.testing.assert_array_equal(
        as_numbers(np.array([b"1.5", "2", 3], dtype=object), "age"), [1.5, 2.0, 3.0]
    )
    with pytest.raises(DomainError, match="`age`"):
        as_numbers(np.array([b"\xff"], dtype=object), "age")


def test_memory_that_runs_out_is_no_bad_table(monkeypatch):
    def runs_out(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("sklearn.utils.check_array", runs_out)
    with pytest.raises(MemoryError):
        open_table([[1.0]])


class Unreadable:
    """A column that no library can read."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("the cells: 17")


def test_columns_that_cannot_be_read_are_refused_without_quoting_them():
    domain = expost.Domain(
        features=(expost.Number(name="age", low=0.0, high=120.0),),
        label=expost.NumberLabel(name="cost", low=0.0, high=1.0),
    )
    with pytest.raises(DomainError, match="`age` must be one column with one value per record") as refusal:
        open_table({"age": Unreadable()}, domain)
    assert not any("17" in message for message in chain(refusal.value))
