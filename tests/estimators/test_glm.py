"""A loss of one's own, all the way: fitted, published, read by whoever has it."""

import json
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from own_losses import Direction, LogCosh
from publications import signed
from scipy.optimize import minimize

import expost
from expost.exceptions import DomainError, LossError, ParameterError, PublicationError
from expost.page import render

rng = np.random.default_rng(2)
X = rng.normal(size=(400, 3))
X /= 1.001 * np.linalg.norm(X, axis=1).max()
ANGLE = np.clip(2.0 * X[:, 0] + 0.1 * rng.normal(size=400), -3.0, 3.0)
OUTCOME = X @ [0.5, -0.2, 0.1] + 0.05 * rng.normal(size=400)
LABELS = {LogCosh: OUTCOME, Direction: ANGLE}


def model_of(loss, **changes):
    parameters = {"norm": 1.0, "random_state": 3} | changes
    return expost.GeneralizedLinearModel(loss=loss, **parameters)


@pytest.mark.parametrize("loss", [LogCosh(0.4), Direction()])
def test_without_noise_it_is_the_minimiser(loss):
    y = LABELS[type(loss)]
    model = model_of(loss, plan=expost.calibrate(loss=loss, sigma=1e-9, l2=0.3), fit_intercept=False).fit(
        X, y
    )
    predictors = getattr(loss, "outputs", 1)

    def objective(theta):
        eta = X @ theta.reshape(predictors, 3).T
        fit = loss.value(eta if predictors > 1 else eta[:, 0], y)
        return fit.sum() + 0.15 * theta @ theta

    best = minimize(objective, np.zeros(3 * predictors), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(np.ravel(model.coef_), best, atol=1e-5)
    assert np.shape(model.coef_) == ((2, 3) if predictors > 1 else (3,))
    np.testing.assert_allclose(model.predict(X), X @ np.transpose(model.coef_), atol=1e-12)


@pytest.mark.parametrize("loss", [LogCosh(0.4), Direction()])
def test_its_publication_is_read_by_whoever_has_the_loss(loss, tmp_path):
    y = LABELS[type(loss)]
    model = model_of(loss).fit(X, y)
    model.publication_.save(tmp_path / "own.json")
    read = expost.Publication.load(tmp_path / "own.json", losses=[type(loss), LogCosh])
    assert read == model.publication_
    assert read.loss == loss
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    # At 1e-9 for each of 50 records, a false alarm has probability 5e-8.
    bounds = read.bounds(X[:50], y[:50], member=True, confidence=1 - 1e-9)
    exact = model.ex_post_losses(X[:50], y[:50])
    assert np.all((bounds.lower <= exact) & (exact <= bounds.upper))
    assert np.all(bounds.upper <= bounds.total)
    again = pickle.loads(pickle.dumps(read))
    assert again == read
    with pytest.raises(PublicationError, match="there is no page"):
        render([read])


def test_who_does_not_have_it_is_told_what_is_missing(tmp_path):
    model_of(LogCosh(0.4)).fit(X, OUTCOME).publication_.save(tmp_path / "own.json")
    with pytest.raises(PublicationError, match="but is 'log_cosh'; give its class with `losses`"):
        expost.Publication.load(tmp_path / "own.json")
    with pytest.raises(ParameterError, match="`losses` must be classes of losses"):
        expost.Publication.load(tmp_path / "own.json", losses=[LogCosh(0.4)])

    @dataclass(frozen=True)
    class Impostor(LogCosh):
        name: ClassVar[str] = "logistic"

    with pytest.raises(ParameterError, match="names differ"):
        expost.Publication.load(tmp_path / "own.json", losses=[Impostor])


def test_a_reader_whose_loss_is_wrong_is_refused(tmp_path):
    """The certificate is recomputed from the reader's own curve, which is checked first."""
    model_of(LogCosh(0.4)).fit(X, OUTCOME).publication_.save(tmp_path / "own.json")

    @dataclass(frozen=True)
    class Steeper(LogCosh):
        def derivatives(self, eta, y):
            slope, curvature = super().derivatives(eta, y)
            return 2.0 * slope, curvature

    with pytest.raises(PublicationError, match="finite differences"):
        expost.Publication.load(tmp_path / "own.json", losses=[Steeper])

    @dataclass(frozen=True)
    class Wider(LogCosh):
        def __post_init__(self):
            object.__setattr__(self, "width", 3.0 * self.width if self.width < 1.0 else self.width)

    with pytest.raises(PublicationError, match="changes its parameters"):
        expost.Publication.load(tmp_path / "own.json", losses=[Wider])

    @dataclass(frozen=True)
    class Doubled(LogCosh):
        """Another loss of the same name, valid and steeper: the noise does not certify the promise."""

        def value(self, eta, y):
            return 2.0 * super().value(eta, y)

        def derivatives(self, eta, y):
            slope, curvature = super().derivatives(eta, y)
            return 2.0 * slope, 2.0 * curvature

        @property
        def curve(self):
            return super().curve.scaled(2.0)

    with pytest.raises(PublicationError, match="which its noise scales do not certify"):
        expost.Publication.load(tmp_path / "own.json", losses=[Doubled])


def test_what_cannot_be_named_is_fitted_and_not_published():
    @dataclass(frozen=True)
    class Shaped(LogCosh):
        shape: tuple = (1, 2)
        name: ClassVar[str] = "shaped"

    model = model_of(Shaped()).fit(X, OUTCOME)
    assert model.plan_.epsilon == 1.0
    with pytest.raises(PublicationError, match="must be a dataclass with a `name`"):
        _ = model.publication_


def test_a_wrong_loss_is_refused_before_the_budget_is_spent():
    with pytest.raises(LossError, match="longer than the declared max_slope"):
        model_of(Direction(longest=0.9)).fit(X, ANGLE)
    with pytest.raises(ParameterError, match="`loss` must be a Loss"):
        model_of(3.0).fit(X, ANGLE)
    with pytest.raises(DomainError, match=r"labels outside \[-3, 3\]"):
        model_of(Direction()).fit(X, 10.0 * np.ones(400))


def test_the_librarys_losses_are_those_of_the_other_estimators():
    y = np.where(OUTCOME > 0, "yes", "no")
    plan = expost.calibrate(l2=2.0, sigma=4.0, fit_intercept=True)
    ours = model_of("logistic", plan=plan).fit(X, (y == "yes").astype(float))
    peer = expost.LogisticRegression(random_state=3, plan=plan, classes=["no", "yes"]).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, peer.coef_[0])
    assert ours.plan_ == peer.plan_ == plan
    np.testing.assert_array_equal(ours.predict(X) == 1.0, peer.predict(X) == "yes")


@pytest.mark.long
def test_a_domain_names_the_classes_and_scales_the_outcome():
    features = tuple(expost.Number(name=name, low=-1.0, high=1.0) for name in "abc")
    table = {name: X[:, place] for place, name in enumerate("abc")}
    import pandas as pd

    frame = pd.DataFrame(table)
    number = expost.Domain(features=features, label=expost.NumberLabel(name="y", low=-10.0, high=10.0))
    model = expost.GeneralizedLinearModel(loss=LogCosh(0.2), domain=number, random_state=1)
    model.fit(frame, 10.0 * OUTCOME)
    scaled = model.decision_function(frame)
    np.testing.assert_allclose(model.predict(frame), 10.0 * scaled, atol=1e-12)
    classes = expost.Domain(features=features, label=expost.ClassLabel(name="y", classes=("a", "b", "c")))
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, 400)]
    several = expost.GeneralizedLinearModel(loss=expost.SoftmaxLoss(3), domain=classes, random_state=1)
    assert set(several.fit(frame, labels).predict(frame)) <= {"a", "b", "c"}
    assert several.coef_.shape == (3, 3)
    with pytest.raises(ParameterError, match="`domain` must be one whose label is a number"):
        expost.GeneralizedLinearModel(loss=LogCosh(), domain=classes).fit(frame, labels)


def test_what_a_readers_own_class_raises_is_told_in_one_sentence(tmp_path):
    model_of(LogCosh(0.4)).fit(X, OUTCOME).publication_.save(tmp_path / "own.json")

    @dataclass(frozen=True)
    class Angry(LogCosh):
        def __post_init__(self):
            raise ValueError("width")

    with pytest.raises(PublicationError, match="the class of `loss` raises ValueError"):
        expost.Publication.load(tmp_path / "own.json", losses=[Angry])
    with pytest.raises(ParameterError, match="`losses` must be a list"):
        expost.Publication.load(tmp_path / "own.json", losses=LogCosh)
    document = json.loads((tmp_path / "own.json").read_text())
    document["loss"]["width"] = 1e300
    with pytest.raises(PublicationError):
        expost.Publication.from_json(signed(document), losses=[LogCosh])


def test_a_loss_that_cannot_change_is_checked_once(monkeypatch):
    seen = []
    monkeypatch.setattr("expost.losses.registry.check_loss", seen.append)
    loss = LogCosh(0.4321)
    model_of(loss).fit(X, OUTCOME)
    assert seen == [loss]
