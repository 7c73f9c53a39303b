"""Fits with an account: counted before noise is drawn, refused before, never refunded after."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import expost
from expost.estimators import planned
from expost.exceptions import (
    BudgetError,
    DomainError,
    LedgerError,
    LedgerWarning,
    ParameterError,
    UncountedWarning,
)
from expost.fitting import noise
from expost.ledger import storage

X = np.array([[0.1, 0.9], [0.8, -0.2]] * 40)
Y = np.array([1, 0] * 40)
SMALL = {"epsilon": 0.5, "delta": 1e-7}
MODELS = {
    "logistic": (expost.LogisticRegression(norm=1.0, classes=[0, 1], **SMALL), X, Y),
    "softmax": (expost.LogisticRegression(norm=1.0, classes=[0, 1, 2], **SMALL), X, np.resize([0, 1, 2], 80)),
    "hinge": (expost.SmoothedHingeClassifier(norm=1.0, classes=[0, 1], **SMALL), X, Y),
    "linear": (expost.LinearRegression(norm=1.0, outcome=(-1, 1), **SMALL), X, X[:, 0]),
    "any loss": (expost.GeneralizedLinearModel(loss=expost.PseudoHuber(1.0), norm=1.0, **SMALL), X, X[:, 0]),
    "convex": (expost.ConvexModel(loss=expost.SmoothedNorm(1), **SMALL), X[:, :1], None),
}
# The certificate of a softmax model takes a second, and it is fitted as the logistic one.
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name == "softmax" else name for name in MODELS]


@pytest.fixture
def account(tmp_path):
    return expost.Ledger(tmp_path / "ledger.db").account("patients", epsilon=3.0, delta=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_enters_its_plan_and_finishes(name, account):
    model, table, y = MODELS[name]
    model = clone(model).fit(table, y, account=account)
    (entry,) = account.entries
    assert entry.state == "finished"
    assert entry.note == type(model).__name__
    assert not entry.insecure
    assert account.spent == expost.compose([model.plan_])
    has_publication = hasattr(model, "publication_")
    assert entry.sha256 == (model.publication_.sha256 if has_publication else None)


class Drawn(BaseException):
    """Noise was asked for."""


@pytest.fixture
def watched(monkeypatch, remembered):
    """What was entered at the moment when noise is first drawn, which ends the fit."""
    seen = []

    def watch(account):
        def tilt(*arguments, **options):
            seen.append([entry.state for entry in account.entries])
            raise Drawn

        monkeypatch.setattr(noise.ExactNoise, "tilt", tilt)
        return seen

    return watch


@pytest.mark.parametrize("name", NAMES)
def test_the_entry_is_there_when_noise_is_drawn_and_stays(name, account, watched):
    model, table, y = MODELS[name]
    seen = watched(account)
    with pytest.raises(Drawn):
        clone(model).fit(table, y, account=account)
    assert seen == [["unfinished"]]
    assert [entry.state for entry in account.entries] == ["unfinished"]
    assert account.spent.epsilon_at(1e-7) > 0.49  # spent all the same


@pytest.mark.parametrize("name", NAMES)
def test_what_would_overdraw_is_refused_before_noise(name, tmp_path, watched):
    account = expost.Ledger(tmp_path / "small.db").account("patients", epsilon=0.4, delta=1e-6)
    model, table, y = MODELS[name]
    seen = watched(account)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.4 left of 0\.4"):
        clone(model).fit(table, y, account=account)
    assert seen == []
    assert account.entries == ()


def test_a_refused_table_is_not_entered(account):
    model, *_ = MODELS["logistic"]
    with pytest.raises(DomainError):
        clone(model).fit(np.full((4, 2), np.nan), [0, 1, 0, 1], account=account)
    assert account.entries == ()


@pytest.mark.parametrize("name", ["logistic", "convex"])
def test_a_full_disk_refuses_before_noise(name, account, watched, monkeypatch):
    model, table, y = MODELS[name]
    seen = watched(account)

    def full(*_):
        raise storage.sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(storage.Transaction, "append", full)
    with pytest.raises(LedgerError, match=r"database or disk is full\. Nothing was entered"):
        clone(model).fit(table, y, account=account)
    monkeypatch.undo()
    assert seen == []
    assert account.entries == ()


def test_a_disk_that_fills_up_later_loses_neither_model_nor_entry(account, monkeypatch):
    append = storage.Transaction.append

    def full_at_the_end(self, body):
        if body["kind"] == "finished":
            raise storage.sqlite3.OperationalError("database or disk is full")
        return append(self, body)

    monkeypatch.setattr(storage.Transaction, "append", full_at_the_end)
    with pytest.warns(LedgerWarning, match="the fit is counted, but its entry stays unfinished"):
        model = clone(MODELS["logistic"][0]).fit(X, Y, account=account)
    assert model.publication_.sha256
    assert [entry.state for entry in account.entries] == ["unfinished"]


def test_a_seeded_fit_is_counted_and_marked(account):
    clone(MODELS["logistic"][0]).set_params(random_state=1).fit(X, Y, account=account)
    assert account.entries[0].insecure


def test_an_account_must_be_one():
    with pytest.raises(ParameterError, match="`account` must be an account"):
        clone(MODELS["logistic"][0]).fit(X, Y, account="patients")


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_grid_search_is_counted_fit_by_fit(jobs, account):
    model = clone(MODELS["logistic"][0]).set_params(epsilon=0.2)
    search = GridSearchCV(model, {"l2": [5.0, 10.0][:jobs]}, cv=2, n_jobs=jobs)
    search.fit(X, Y, account=account)
    assert len(account.entries) == 2 * jobs + 1  # every candidate in two folds, and the best once more
    assert {entry.state for entry in account.entries} == {"finished"}


def test_a_grid_search_cannot_overdraw(tmp_path):
    account = expost.Ledger(tmp_path / "ledger.db").account("patients", epsilon=0.6, delta=1e-6)
    search = GridSearchCV(clone(MODELS["logistic"][0]), {"l2": [5.0, 10.0]}, cv=2, error_score="raise")
    with pytest.raises(BudgetError):
        search.fit(X, Y, account=account)
    assert 1 <= len(account.entries) < 5
    assert account.spent.delta_at(0.6) <= 1e-6


def test_a_pipeline_passes_the_account_on(account):
    pipeline = make_pipeline(FunctionTransformer(), clone(MODELS["logistic"][0]))
    pipeline.fit(X, Y, logisticregression__account=account)
    assert len(account.entries) == 1


@pytest.fixture
def fresh(monkeypatch):
    """A process that has fitted nothing yet."""
    monkeypatch.setattr(planned, "_UNCOUNTED", set())
    monkeypatch.setattr(planned, "_WARNED", {})


@pytest.mark.parametrize("name", ["logistic", "convex"])
def test_the_second_fit_that_nobody_counts_is_warned_of_once(name, fresh, account, remembered):
    model, table, y = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(table, y)
        for _ in range(2):  # counted
            clone(model).fit(table, y, account=account)
    with pytest.warns(UncountedWarning, match=f"fits {type(model).__name__} once more") as caught:
        clone(model).fit(table, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(table, y)


def test_fits_of_different_kinds_are_not_warned_of(fresh):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("logistic", "hinge", "linear"):
            model, table, y = MODELS[name]
            clone(model).fit(table, y)
