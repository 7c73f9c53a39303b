"""The estimator of any convex loss: what it gives, keeps and refuses."""

import copy
import io
import pickle

import numpy as np
import pandas as pd
import pytest
from convex_losses import CONVEX, draw_records
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import expost
from expost.exceptions import DomainError, LossError, ParameterError, PrivateStateError

SECRET = 0.7365421
# Explicit scales take no search.
CHEAP = expost.calibrate_convex(expost.SmoothedNorm(2), sigma=6.0, l2=40.0)


def table(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal([0.2, -0.1], 0.3, size=(n, 2))
    X[0] = SECRET
    return X


def fitted(**parameters):
    return expost.ConvexModel(plan=CHEAP, **parameters).fit(table())


# The plans of the others take a second each.
@pytest.mark.parametrize(
    "loss",
    [CONVEX[0], *(pytest.param(loss, marks=pytest.mark.slow) for loss in CONVEX[1:3]), *CONVEX[3:]],
    ids=str,
)
def test_every_loss_fits_and_accounts(loss):
    X, y = draw_records(loss, np.random.default_rng(1), 500)
    model = expost.ConvexModel(loss=loss, epsilon=2.0, random_state=0).fit(X, y)
    assert model.coef_.shape == (loss.n_parameters,)
    assert model.plan_.delta_at(2.0) <= 1e-6
    exact = model.ex_post_losses(X, y)
    # For all records at once: a false alarm has probability 1e-6.
    bounds = model.bounds(X, y, member=True, confidence=1 - 1e-6, simultaneous=len(X))
    assert np.all((bounds.lower <= exact) & (exact <= bounds.upper))
    terms = model.ex_post_losses(X, y, member=False, return_terms=True)
    assert np.all(terms.determinant <= 0)
    assert np.all(np.isfinite(terms.signed))


def test_releases_are_exact_unless_seeded():
    assert not fitted().insecure_
    assert np.any(fitted().coef_ != fitted().coef_)
    seeded = fitted(random_state=3)
    assert seeded.insecure_
    np.testing.assert_array_equal(seeded.coef_, fitted(random_state=3).coef_)


def test_explicit_scales_state_what_they_guarantee():
    model = fitted()
    assert (model.plan_.sigma, model.plan_.l2) == (6.0, 40.0)
    assert 0.5 < model.plan_.epsilon < 1.5


def test_the_private_part_does_not_travel():
    model = fitted()
    for travelled in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        with pytest.raises(PrivateStateError):
            travelled.ex_post_losses(table())
        # Bounds are made of public values, so they do.
        np.testing.assert_array_equal(travelled.bounds(table()).upper, model.bounds(table()).upper)
    assert not hasattr(clone(model), "coef_")
    assert clone(model).plan == model.plan == CHEAP


def test_nothing_of_the_table_is_kept_or_shown():
    model = fitted()
    assert str(SECRET) not in repr(model) + repr(vars(model)) + model.plan_._repr_html_()
    assert not any(np.size(value) >= 400 for value in vars(model).values())


def test_an_unfitted_model_says_so():
    model = expost.ConvexModel(loss=expost.SmoothedNorm(2))
    for call in (model.ex_post_losses, model.bounds):
        with pytest.raises(NotFittedError):
            call(table())


def test_a_refused_fit_leaves_the_model_that_was_there():
    model = fitted()
    before, plan = model.coef_, model.plan_
    model.set_params(plan=expost.calibrate_convex(expost.SmoothedNorm(3), sigma=7.0, l2=40.0))
    with pytest.raises(DomainError, match="3 columns"):
        model.fit(table())
    assert model.coef_ is before
    assert model.plan_ is plan
    assert model.ex_post_losses(table()).shape == (400,)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"epsilon": -1.0}, ParameterError),
        ({"delta": 2.0}, ParameterError),
        ({"l2": 0.0}, ParameterError),
        ({"loss": "smoothed_norm"}, ParameterError),
        ({"loss": expost.PseudoHuber()}, ParameterError),
        ({"random_state": "seed"}, ParameterError),
        ({"loss": None}, ParameterError),
        ({"plan": expost.calibrate(sigma=1.0, l2=1.0)}, ParameterError),
        ({"plan": CHEAP, "loss": expost.SmoothedNorm(3)}, ParameterError),
        ({"plan": CHEAP, "l2": 1.0}, ParameterError),
        ({"l2": 1e-3}, expost.exceptions.CalibrationError),
    ],
)
def test_wrong_parameters_are_refused(parameters, error):
    with pytest.raises(error):
        expost.ConvexModel(**{"loss": expost.SmoothedNorm(2), **parameters}).fit(table())


def test_a_loss_that_declares_too_little_is_refused():
    class Broken(expost.SmoothedNorm):
        max_gradient = 0.5

    with pytest.raises(LossError, match=r"max_gradient=0\.5"):
        expost.ConvexModel(loss=Broken(2)).fit(table())


def test_frames_are_told_apart_and_answered_in_kind():
    frame = pd.DataFrame(table(), columns=["a", "b"], index=np.arange(400) + 7)
    model = expost.ConvexModel(plan=CHEAP).fit(frame)
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["a", "b"]
    told = model.bounds(frame.iloc[:3]).to_frame()
    assert list(told.index) == [7, 8, 9]
    with pytest.raises(ValueError, match="feature names"):
        model.bounds(frame[["b", "a"]])


def test_the_steps_are_shown(capsys):
    fitted(verbose=True)
    shown = capsys.readouterr().err
    assert "Planning" in shown
    assert "Drawing the noise" in shown
    fitted()
    assert capsys.readouterr().err == ""


def test_a_plan_and_bounds_show_themselves():
    from rich.console import Console

    model = fitted()
    console = Console(file=io.StringIO(), width=120)
    console.print(model.plan_)
    assert "real arithmetic" in console.file.getvalue()
    assert "model, at most" in model.bounds(table()[:2])._repr_html_()


def test_a_large_table_is_estimated_well():
    """The default plan at ε = 1 on 20,000 records: within 0.02 of the geometric median of its law."""
    rng = np.random.default_rng(5)
    X = rng.normal([0.3, -0.2], 0.2, size=(20_000, 2))
    model = expost.ConvexModel(loss=expost.SmoothedNorm(2), random_state=1).fit(X)
    assert np.linalg.norm(model.coef_ - [0.3, -0.2]) < 0.02
    assert model.ex_post_losses(X).max() < 1.0
