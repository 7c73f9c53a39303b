"""What an estimator makes public, and what it refuses."""

import json
import pickle
import sys

import joblib
import numpy as np
import pytest
from own_losses import LogCosh
from problems import hides_its_cause
from sklearn.exceptions import NotFittedError

import expost
from expost import exceptions
from expost._common.machine import check_memory
from expost.engines.cluster import DaskEngine
from expost.exceptions import (
    BudgetError,
    CalibrationError,
    DomainError,
    EngineError,
    ExpostError,
    FileError,
    LedgerError,
    LossError,
    MissingExtraError,
    ParameterError,
    PrivateStateError,
    PublicationError,
    ResourceError,
    SolverError,
)
from expost.fitting import mechanism

rng = np.random.default_rng(4)
X = rng.normal(size=(123, 3)) / 4
Y = rng.integers(0, 2, 123)


@pytest.fixture
def no_noise(monkeypatch):
    """Fail the test if the mechanism draws noise."""
    monkeypatch.setattr(mechanism, "minimize", lambda *_, **__: pytest.fail("noise was drawn"))


ALLOWED_STATE = {
    *expost.LogisticRegression(norm=1.0).get_params(),
    "coef_",
    "intercept_",
    "classes_",
    "_had_weights",
    "_labels",
    "_outcome",
    "n_features_in_",
    "plan_",
    "insecure_",
    "calibration_curve_",  # a function of the publication
    "_publication",
    "_weighting",  # what the parameters declare
    "_sklearn_version",
}


def fitted(**changes):
    return expost.LogisticRegression(**{"norm": 1.0, "classes": [0, 1], **changes}).fit(X, Y)


def travelled(model):
    return pickle.loads(pickle.dumps(model))


def test_a_pickle_holds_only_the_coefficients_from_the_table():
    """Every attribute of the loaded estimator is listed; two tables differ in the coefficients alone."""
    model = fitted(random_state=0)
    state = vars(travelled(model))
    assert set(state) <= ALLOWED_STATE
    other = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X[:50] / 2, Y[:50])
    for name, value in vars(travelled(other)).items():
        if name in ("coef_", "intercept_"):
            assert not np.array_equal(value, state[name])
        elif name == "_publication":
            changed = {"coefficients", "sha256"}
            assert value.model_dump(exclude=changed) == state[name].model_dump(exclude=changed)
        else:
            np.testing.assert_equal(value, state[name])
    assert repr(model) == repr(other) == repr(travelled(model))
    assert model.get_params() == other.get_params()


def test_the_pickled_bytes_do_not_contain_the_private_part():
    model = fitted()
    private = model._private
    data = pickle.dumps(model)
    for secret in (private.gradient, private.hessian[0], np.float64(private.gradient_norm), X[0], X[5]):
        assert secret.tobytes() not in data


def counts_rows(content):
    """Whether a number or text anywhere in a document is the number of rows."""
    if isinstance(content, dict):
        return any(counts_rows(value) for value in content.values())
    if isinstance(content, list):
        return any(counts_rows(value) for value in content)
    return content in (len(X), str(len(X)))


@pytest.mark.parametrize("report", ["independent", "leverage", "dependent", "adaptive"])
def test_the_publication_holds_nothing_private_and_its_pickle_is_its_text(report):
    """The file contains no exact statistics, noise or rows, neither as bytes nor as digits."""
    model = fitted(report=report)
    private, publication = model._private, model.publication_
    data, text = pickle.dumps(publication), publication.to_json()
    assert travelled(model).publication_ == publication == travelled(publication)
    assert text.encode() in data
    assert len(data) < len(text) + 200
    for secret in (
        *private.gradient,
        *private.hessian.ravel(),
        private.gradient_norm,
        private.floor,
        *X[0],
        *X[5],
    ):
        assert repr(float(secret)) not in text
        assert np.float64(secret).tobytes() not in data
        assert np.float64(secret).tobytes() not in pickle.dumps(model)
    # The table has 123 rows, and no field counts them.
    assert not counts_rows(json.loads(text))
    assert counts_rows(json.loads(text) | {"extra": {"rows": [len(X)]}})


def test_a_used_plan_can_be_pickled():
    model = fitted()
    model.plan_.delta_at(0.5)
    assert model.publication_.release.plan.delta_at(0.5) == travelled(model).plan_.delta_at(0.5)


def test_a_report_is_paid_for_from_the_one_budget():
    plain, full = fitted().plan_, fitted(report="adaptive").plan_
    assert full.epsilon == plain.epsilon
    assert full.sigma > plain.sigma
    plan = expost.calibrate(loss=full.loss, report="adaptive", split=0.3, fit_intercept=True)
    assert fitted(plan=plan).plan_.sigma == plan.sigma > full.sigma
    assert fitted(report="leverage").publication_.statistics.gradient is None


def test_the_publication_exists_only_after_a_fit():
    with pytest.raises(NotFittedError):
        expost.LogisticRegression(norm=1.0).publication_  # noqa: B018


def test_a_pickled_estimator_predicts_but_has_no_exact_losses(tmp_path):
    model = fitted()
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(PrivateStateError, match="dropped when an estimator is pickled"):
        loaded.ex_post_losses(X, Y)


def test_a_seed_marks_the_model_and_the_mark_survives_saving():
    assert travelled(fitted(random_state=1)).insecure_
    assert not travelled(fitted()).insecure_
    np.testing.assert_array_equal(fitted(random_state=1).coef_, fitted(random_state=1).coef_)


def test_without_a_seed_every_fit_differs_whatever_numpys_seed():
    coefs = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        coefs.append(fitted().coef_)
    assert not np.array_equal(*coefs)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            {"epsilon": 0.0},
            ParameterError,
            "`epsilon` must be a finite number with epsilon > 0; got epsilon=0.0",
        ),
        ({"epsilon": -1}, ParameterError, "got epsilon=-1"),
        ({"epsilon": np.nan}, ParameterError, "got epsilon=nan"),
        ({"epsilon": "1"}, ParameterError, "got epsilon='1'"),
        ({"epsilon": True}, ParameterError, "got epsilon=True"),
        ({"delta": 1.0}, ParameterError, "`delta` must be a number with 0 < delta < 1; got delta=1.0"),
        ({"delta": 0.0}, ParameterError, "got delta=0.0"),
        ({"l2": 0.0}, ParameterError, "`l2` must be a finite number with l2 > 0; got l2=0.0"),
        ({"l2": -1.0}, ParameterError, "got l2=-1.0"),
        ({"norm": 0.0}, ParameterError, "`norm` must"),
        ({"norm": np.inf}, ParameterError, "got norm=inf"),
        ({"report": "everything"}, ParameterError, "`report` must be one of 'independent'"),
        ({"calibration": "loose"}, ParameterError, "`calibration` must be one of"),
        ({"classes": [1]}, ParameterError, "`classes` must be two or more different labels"),
        ({"classes": [1, 1]}, ParameterError, "`classes` must be two or more different labels"),
        ({"random_state": "seed"}, ParameterError, "`random_state` must be"),
        ({"l2": 1e-9, "cap": 1.0, "calibration": "kifer2012"}, CalibrationError, "Raise `l2` to 1"),
        ({"l2": 0.1, "cap": 1.0}, CalibrationError, "its floor is l2 > 0.290988"),
        ({"l2": 0.05}, CalibrationError, "its floor is l2 > 0.0652"),
        ({"cap": 2.0}, ParameterError, "`cap` must be a number between"),
    ],
)
@pytest.mark.usefixtures("no_noise")
def test_a_bad_parameter_is_refused_in_one_sentence_before_anything_is_drawn(changes, error, words):
    with pytest.raises(error) as caught:
        fitted(**changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


SECRET = 0.123456789

BAD_DATA = {
    "empty table": (X[:0], Y[:0], "at least one row"),
    "no columns": (X[:, :0], Y, "0 feature"),
    "NaN in a row": (np.where(X[7, 1] == X, np.nan, X), Y, "NaN or infinity"),
    "infinity in a row": (np.where(X[7, 1] == X, np.inf, X), Y, "NaN or infinity"),
    "text": ([[SECRET, "secret"]] * 2, [0, 1], "matrix of numbers"),
    "one dimension": (X[:, 0], Y, "two-dimensional"),
    "labels outside": (X, Y + 5, r"outside the declared classes {0, 1}"),
    "labels of another type": (X, np.array(["secret"] * 123), "outside the declared classes"),
    "NaN labels": (X, np.where(Y == 0, np.nan, 1.0), "`y`: the outcome is missing in a record"),
    "no labels": (X, None, "target y is None"),
    "too few labels": (X, Y[:-1], "one label per row"),
    "a matrix of labels": (X, np.column_stack([Y, Y]), "1d array"),
    "ragged labels": (X, [[1], [1, 2]], "1d array"),
}


@pytest.mark.parametrize("kind", BAD_DATA)
@pytest.mark.usefixtures("no_noise")
def test_bad_data_is_refused_from_public_values_only(kind):
    """No row number, count, norm or value of the table may be in the message or in the chained error."""
    table, labels, words = BAD_DATA[kind]
    with pytest.raises(DomainError) as caught:
        expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(table, labels)
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert hides_its_cause(caught.value)
    for private in ("123", "122", "secret", str(SECRET), "(2,"):
        assert private not in message


def test_one_row_is_a_table():
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X[:1], Y[:1])
    assert np.all(np.isfinite(model.ex_post_losses(X[:1], Y[:1])))


def test_one_class_is_refused_only_where_classes_are_learnt():
    with pytest.raises(DomainError, match="only one class"):
        expost.LogisticRegression(norm=1.0).fit(X, np.zeros(123))


def test_text_labels_in_regression_are_not_quoted():
    with pytest.raises(DomainError, match="must be a number") as caught:
        expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(X, ["secret"] * 123)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_squared_loss_has_no_guarantee_and_says_so():
    way_out = r"SquaredLoss has no worst case.*plan=expost\.calibrate\(loss='squared', sigma=\.\.\., l2="
    with pytest.raises(CalibrationError, match=way_out):
        expost.LinearRegression(norm=1.0, outcome=(-1, 1), loss="squared").fit(X, X[:, 0])
    plan = expost.calibrate(loss="squared", sigma=1.0, l2=1.0, fit_intercept=True)
    model = expost.LinearRegression(outcome=(-1, 1), plan=plan).fit(X, X[:, 0])
    assert model.plan_.epsilon == np.inf


def test_whether_an_error_is_raised_does_not_depend_on_rows_inside_the_domain():
    """Long rows, duplicate rows, zero rows, one class: all of them are tables and none of them raises."""
    for table, labels in [
        (1e6 * X, Y),
        (np.repeat(X[:1], 50, axis=0), np.zeros(50)),
        (np.zeros_like(X), Y),
        (X, np.ones(123)),
        (np.full((3, 3), 1e300), np.array([0, 1, 0])),
    ]:
        model = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(table, labels)
        assert np.all(np.isfinite(model.coef_))


class Steep(expost.LogisticLoss):
    """A loss that is steeper than it declares."""

    def derivatives(self, eta, y):
        slope, curvature = super().derivatives(eta, y)
        return 9.0 * slope, 9.0 * curvature


def raised(call):
    """The error of a call that must be refused."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  the class is what is tested
        call()
    return type(caught.value)


class Lost:
    """A client whose cluster is gone."""

    def nthreads(self):
        return {}

    def compute(self, tasks):
        return tasks

    def gather(self, futures):
        raise OSError("timed out")

    def cancel(self, futures):
        pass


def without_dp_accounting(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "dp_accounting.pld", None)
        expost.Ledger("ledger.db")


@pytest.mark.long
def test_every_error_is_one_of_ours(monkeypatch, tmp_path):
    """Every declared class, and every error that these calls raise."""
    classes = [kind for kind in vars(exceptions).values() if isinstance(kind, type)]
    errors = [kind for kind in classes if issubclass(kind, Exception) and not issubclass(kind, Warning)]
    assert all(issubclass(error, ExpostError) for error in errors)
    table, labels, _ = BAD_DATA["NaN in a row"]
    ledger = expost.Ledger(tmp_path / "ledger.db")
    calls = {
        BudgetError: lambda: fitted().fit(X, Y, account=ledger.account("a", epsilon=0.1, delta=1e-6)),
        CalibrationError: lambda: fitted(l2=1e-3),
        DomainError: lambda: fitted().fit(table, labels),
        EngineError: lambda: DaskEngine(Lost()).map(sum, [None], 1).__next__(),
        FileError: lambda: expost.scan(__file__),  # no table
        LedgerError: lambda: ledger.account("nobody"),
        LossError: lambda: expost.check_loss(Steep()),
        MissingExtraError: lambda: without_dp_accounting(monkeypatch),
        ParameterError: lambda: fitted(epsilon=0.0),
        PrivateStateError: lambda: travelled(fitted()).ex_post_losses(X, Y),
        PublicationError: lambda: expost.Publication.from_json("{}"),
        ResourceError: lambda: check_memory(2**80, "this fit"),
    }
    assert {ExpostError, SolverError, *calls} == set(errors)
    assert {error: raised(call) for error, call in calls.items()} == {error: error for error in calls}
    # A loss without proved errors needs the solver's own precision.
    solve = mechanism.minimize
    monkeypatch.setattr(
        mechanism, "minimize", lambda objective, tolerance, **_: solve(objective, tolerance=1.0)
    )
    own = expost.GeneralizedLinearModel(loss=LogCosh(), norm=1.0)
    assert raised(lambda: own.fit(X, X[:, 0])) is SolverError


def test_a_refused_fit_leaves_the_model_that_was_there():
    rows, labels = np.array([[0.1, 0.9], [0.8, -0.2]] * 50), np.array(["a", "b"] * 50)
    model = expost.LogisticRegression(norm=1.0, classes=["a", "b"]).fit(rows, labels)
    before, told = model.predict(rows), model.publication_
    model.set_params(classes=["x", "y" * 10_001])
    with pytest.raises(expost.exceptions.PublicationError, match="at most 10000 bytes"):
        model.fit(rows, np.where(labels == "a", "x", "y" * 10_001))
    assert model.publication_ is told
    assert np.array_equal(model.predict(rows), before)
