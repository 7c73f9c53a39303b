"""Models without a matrix of their coefficients: the same numbers as those with one."""

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse
from own_losses import LogCosh

import expost
from expost.exceptions import ResourceError
from expost.fitting import wide
from expost.fitting.certified import certify
from expost.fitting.noise import SeededNoise

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(40, 60)) * (RNG.random((40, 60)) < 0.3) / 6.0
LABELS = RNG.integers(0, 2, 40)
PEOPLE = RNG.integers(0, 12, 40)
TABLES = {"dense": ROWS, "sparse": scipy.sparse.csr_array(ROWS)}


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(wide, "_LARGEST_MATRIX", 50)


def fitted(table, **options):
    model = expost.LogisticRegression(classes=[0, 1], norm=1.0, epsilon=2.0, random_state=5, **options)
    return model.fit(table, LABELS, **({"groups": PEOPLE} if "unit" in options else {}))


@pytest.mark.parametrize("options", [{}, {"cap": 1.0, "fit_intercept": False}, {"unit": "person"}], ids=str)
@pytest.mark.parametrize("kind", TABLES)
def test_coefficients_are_within_the_certified_radius_and_losses_are_equal(
    kind, options, monkeypatch, remembered
):
    table, groups = TABLES[kind], {"groups": PEOPLE} if "unit" in options else {}
    with_matrix = fitted(table, **options)
    losses = {
        member: with_matrix.ex_post_losses(table, LABELS, member=member, **groups) for member in (True, False)
    }
    monkeypatch.setattr(wide, "_LARGEST_MATRIX", 50)
    without = fitted(table, **options)
    assert without._private.hessian is None
    # Each minimiser is within the radius of the exact one, and printed with the same noise.
    off = without._private.coefficients - with_matrix._private.coefficients
    assert np.linalg.norm(off) <= 2.0 * with_matrix.plan_.solver_radius
    for member, expected in losses.items():
        found = without.ex_post_losses(table, LABELS, member=member, **groups)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    assert without.ex_post_error_ == pytest.approx(with_matrix.ex_post_error_, rel=100.0)
    assert without.ex_post_error_ >= with_matrix.ex_post_error_ * (1.0 - 1e-12)


def test_the_factor_is_made_once(narrow, monkeypatch):
    model = fitted(ROWS)
    first = model.ex_post_losses(ROWS, LABELS)
    monkeypatch.setattr(wide.GramRoot, "of", lambda *_: pytest.fail("made again"))
    np.testing.assert_array_equal(model.ex_post_losses(ROWS, LABELS), first)


def test_a_loss_of_ones_own_is_fitted_without_a_matrix(narrow):
    model = expost.GeneralizedLinearModel(loss=LogCosh(), norm=1.0, random_state=1)
    labels = np.where(LABELS == 1, 0.5, -0.5)
    model.fit(ROWS, labels)
    assert model._private.hessian is None
    losses = model.ex_post_losses(ROWS, labels)
    assert np.all(np.isfinite(losses))


def test_too_many_rows_for_exact_losses_are_refused_with_a_number(narrow, monkeypatch):
    model = fitted(ROWS)
    monkeypatch.setattr("expost._common.machine.machine_memory", lambda: 10_000)
    with pytest.raises(ResourceError, match="the exact losses takes up to"):
        model.ex_post_losses(ROWS, LABELS)


def test_more_coefficients_than_matrices_fit_are_no_reason_to_refuse(monkeypatch):
    """A matrix of 20,001 coefficients has 3.2 GB; decided by public values before any noise."""
    monkeypatch.setattr("expost._common.machine.machine_memory", lambda: 2**30)
    random = np.random.default_rng(1)
    places = np.repeat(np.arange(30), 20), random.integers(0, 20_000, 600)
    table = scipy.sparse.csr_array((random.random(600), places), shape=(30, 20_000))
    model = expost.LogisticRegression(classes=[0, 1], norm=1.0, random_state=2).fit(table, LABELS[:30])
    assert len(model.ex_post_losses(table[:5], LABELS[:5])) == 5


@pytest.mark.parametrize("l2", [1.0, 1e-3, 1e-6, 1e-9])
def test_leverages_keep_their_digits_however_small_the_penalty_is(l2):
    """Rows of the table, nearly dependent ones among them, and others; the truth in fifty digits."""
    random = np.random.default_rng(8)
    rows = random.normal(size=(12, 20))
    rows[5] = rows[4] * (1.0 + 1e-7 * random.normal(size=20))
    gram = rows @ rows.T + l2 * np.eye(12)
    root = wide.GramRoot(rows, np.linalg.cholesky(gram), l2, 0.0)
    asked = np.vstack([rows, random.normal(size=(3, 20))])
    squares, forms = root.squares_under(asked), root.forms_under(asked[:, None, :])[:, 0, 0]
    with mp.workdps(50):
        W = mp.matrix(rows.tolist())
        H = W.T * W + mp.mpf(l2) * mp.eye(20)
        truth = []
        for one in asked:
            x = mp.matrix(one.tolist())
            truth.append(float((x.T * mp.lu_solve(H, x))[0]))
    # Where the Gram matrix itself has lost the penalty's last digits, the square of that counts.
    off = 1e-13 + (np.finfo(float).eps * np.linalg.norm(gram) / l2) ** 2
    np.testing.assert_allclose(squares, truth, rtol=off)
    np.testing.assert_allclose(forms, truth, rtol=off)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("l2", [1e-2, 1e-4, 1e-6])
def test_small_penalties_are_certified_without_a_matrix(kind, l2, narrow, monkeypatch):
    monkeypatch.setattr(certify, "_Search", lambda *_: pytest.fail("a matrix was made"))
    plan = expost.calibrate(loss=expost.LogisticLoss(), norm=1.0, sigma=1.0, l2=l2, fit_intercept=True)
    model = expost.LogisticRegression(classes=[0, 1], plan=plan, random_state=5).fit(TABLES[kind], LABELS)
    assert model._private.hessian is None


def test_tiny_penalties_of_wide_models_are_refused_with_a_number_before_noise(monkeypatch):
    """They may need matrices of the coefficients, 3.2 GB each."""
    monkeypatch.setattr("expost._common.machine.machine_memory", lambda: 2**32)
    monkeypatch.setattr(SeededNoise, "tilt", lambda *_, **__: pytest.fail("noise was drawn"))
    plan = expost.calibrate(loss=expost.LogisticLoss(), norm=1.0, sigma=1.0, l2=1e-8, fit_intercept=True)
    table = scipy.sparse.csr_array((30, 20_000))
    model = expost.LogisticRegression(classes=[0, 1], plan=plan, random_state=2)
    with pytest.raises(ResourceError, match=r"this fit takes up to .* GiB of memory"):
        model.fit(table, LABELS[:30])
