"""The published file has exactly its fields, keeps every bit, and states only what is true."""

import copy
import dataclasses
import io
import json
import math
import os
import pickle
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from own_losses import LogCosh
from problems import design_of
from publications import KINDS, X, Y, document, fit, forged, published, signed, squared
from rich.console import Console

import expost
from expost import LogisticLoss, Publication, calibrate
from expost.data.texts import FieldTexts, PublicationTexts
from expost.exceptions import DomainError, ExpostError, ParameterError, PublicationError
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.release import Release, pack, unpack
from expost.fitting.statistics import printed
from expost.privacy.precision import REAL
from expost.privacy.shapes import capped_logistic
from expost.publication.checks import check_guarantee
from expost.publication.schema import (
    PublishedCorners,
    PublishedPlan,
    PublishedPrecision,
    PublishedWeights,
    Statistics,
)
from expost.publication.trial import _empty

PLAN = {
    "epsilon", "delta", "sigma", "l2", "sigma_gradient", "sigma_hessian", "sigma_eigenvalue", "report",
    "calibration",
}  # fmt: skip
FIELDS = {
    "format", "software", "loss", "regularizer", "norm", "fit_intercept", "classes", "feature_names",
    "coefficients", "domain", "plan", "precision", "statistics", "insecure", "sha256",
}  # fmt: skip
DECLARED = expost.Domain(
    features=(
        expost.Number(name="age", low=0.0, high=100.0),
        expost.Number(name="height", low=0.0, high=200.0),
        expost.YesNo(name="smoker"),
    ),
    label=expost.ClassLabel(name="ill", classes=("no", "yes")),
)
RELEASED = {
    "independent": set(),
    "leverage": {"hessian"},
    "dependent": {"gradient", "hessian"},
    "adaptive": {"gradient", "hessian", "eigenvalue"},
}


def test_older_files_that_left_the_domains_norm_out_read_the_same():
    """They mean the longest row that the features allow, and nothing else; new files say the norm."""
    longest = DECLARED.model_copy(update={"norm": DECLARED.longest_row})
    table = {"age": [20.0, 90.0] * 20, "height": [200.0, 0.0] * 20, "smoker": ["yes", "no"] * 20}
    y = ["no", "yes"] * 20
    today = expost.LogisticRegression(domain=longest, random_state=5).fit(table, y).publication_
    fields = json.loads(today.to_json())
    assert fields["norm"] == fields["domain"]["norm"] == math.sqrt(3.0)
    fields["domain"]["norm"] = None
    older = Publication.from_json(signed(fields))
    assert json.loads(older.to_json()) | {"sha256": ""} == fields | {"sha256": ""}
    np.testing.assert_array_equal(older.decision_function(table), today.decision_function(table))
    np.testing.assert_array_equal(older.bounds(table, y).total, today.bounds(table, y).total)
    fields["norm"] = DECLARED.row_norm
    with pytest.raises(PublicationError, match="`norm` must be what `domain` declares"):
        Publication.from_json(signed(fields))


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_file_has_exactly_these_fields(kind, tmp_path):
    published(kind).save(tmp_path / "publication.json")
    text = (tmp_path / "publication.json").read_text(encoding="utf-8")
    fields = json.loads(text)
    assert set(fields) == FIELDS
    assert set(fields["plan"]) == PLAN
    assert set(fields["loss"]) == {"name", "soft", "cap", "corner", "gradient_cap"}
    assert set(fields["statistics"]) == {"gradient", "hessian", "eigenvalue"}
    assert {name for name, value in fields["statistics"].items() if value is not None} == RELEASED[kind]
    assert len(fields["coefficients"]) == 3
    assert set(fields["precision"]) == set(PublishedPrecision.model_fields) - {"recalibration_grid"}
    assert text.startswith('{\n  "format": "expost-publication/2",\n')
    assert text.endswith('"\n}\n')
    assert Publication.load(tmp_path / "publication.json") == published(kind)


def test_the_document_lists_every_field_and_no_other():
    text = (Path(__file__).parents[2] / "docs" / "publication.md").read_text(encoding="utf-8")
    names = [*Publication.model_fields]
    names += [f"plan.{name}" for name in PublishedPlan.model_fields]
    names += [f"precision.{name}" for name in PublishedPrecision.model_fields]
    names += [f"weights.{name}" for name in PublishedWeights.model_fields]
    names += [f"corners.{name}" for name in PublishedCorners.model_fields]
    names += [f"statistics.{name}" for name in Statistics.model_fields]
    assert re.findall(r"^\| `([\w.]+)` \|", text, flags=re.MULTILINE) == names
    texts = [*FieldTexts.text_names, *PublicationTexts.model_fields]
    listed = re.findall(r"^\| (?:[^|]+ )?\| `([a-z_]+)` \|", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_two_tables_differ_only_in_what_carries_noise(kind):
    """Same seed, other rows and another number of them."""
    one, other = (
        json.loads(published(kind).to_json()),
        json.loads(fit(kind, X[:33] / 2, Y[:33]).publication_.to_json()),
    )
    assert one.pop("sha256") != other.pop("sha256")
    assert one.pop("coefficients") != other.pop("coefficients")
    # The gradient at the exact minimiser is minus the objective's noise: with one seed it is the same.
    for name in RELEASED[kind] - {"gradient"}:
        assert one["statistics"].pop(name) != other["statistics"].pop(name)
    assert one == other


def test_the_cap_is_stated_where_there_is_one():
    """A plain logistic model has the fields that it always had, so that older readers read it."""
    capped = published().loss
    assert document()["loss"] == {
        "name": "logistic",
        "soft": False,
        "cap": capped.cap,
        "corner": capped.corner,
        "gradient_cap": capped.gradient_cap,
    }
    assert capped == capped_logistic(1.0, 1e-6, radius=math.sqrt(2.0))
    slopes = json.loads(fit(cap=0.6).publication_.to_json())["loss"]
    assert slopes == {"name": "logistic", "soft": False, "cap": 0.6, "corner": slopes["corner"]}
    plain = fit(cap=1.0).publication_
    assert json.loads(plain.to_json())["loss"] == {"name": "logistic", "soft": False}
    assert Publication.from_json(plain.to_json()).loss == expost.LogisticLoss()


def bits(array):
    return None if array is None else np.asarray(array, dtype=np.float64).tobytes()


def assert_same_release(one, other):
    assert one.plan == other.plan
    assert one.insecure == other.insecure
    for name in ("coefficients", "gradient", "hessian", "eigenvalue"):
        assert bits(getattr(one, name)) == bits(getattr(other, name)), name


@cache
def real_plan(kind):
    """In real arithmetic any double is printed; otherwise, whole multiples of the grids."""
    return calibrate(loss=LogCosh(), report=kind)


FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [-0.0, 5e-324, -2.2e-308, 1.7e308]
)
MODEST = st.floats(-30.0, 30.0) | st.sampled_from([-0.0, 5e-324])


@pytest.mark.long
@given(
    st.sampled_from(KINDS),
    st.lists(FINITE, min_size=3, max_size=3),
    st.lists(FINITE, min_size=3, max_size=3),
    st.lists(MODEST, min_size=6, max_size=6),
    MODEST,
)
def test_every_number_survives_bit_for_bit(kind, coefficients, gradient, hessian, eigenvalue):
    has = RELEASED[kind]
    release = Release(
        plan=real_plan(kind),
        coefficients=np.array(coefficients),
        gradient=np.array(gradient) if "gradient" in has else None,
        hessian=unpack(hessian) if "hessian" in has else None,
        eigenvalue=eigenvalue if "eigenvalue" in has else None,
    )
    publication = Publication.from_release(release)
    again = Publication.from_json(publication.to_json(), losses=[LogCosh])
    assert again == publication
    assert again.to_json() == publication.to_json()
    assert_same_release(again.release, release)


@pytest.mark.long
@given(st.lists(st.integers(-(2**70), 2**70), min_size=3, max_size=3), st.integers(-(2**40), 2**40))
def test_multiples_of_the_grid_survive_bit_for_bit_and_others_are_refused(steps, other):
    plan = calibrate()
    coefficients = printed(steps, [0] * len(steps), plan.grid)
    release = Release(plan=plan, coefficients=coefficients)
    publication = Publication.from_release(release)
    assert publication.format == "expost-publication/2"
    assert_same_release(Publication.from_json(publication.to_json()).release, release)
    off = np.append(coefficients[:2], (other + 0.5) * plan.grid)
    with pytest.raises(PublicationError, match="must be whole multiples of"):
        Publication.from_release(Release(plan=plan, coefficients=off))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_says_where_its_promise_is_for_people(kind):
    """And a file whose noise is for rows is refused where it says so."""
    plan = calibrate(loss=capped_logistic(1.0, 1e-6), report=kind, unit="person")
    publication = Publication.from_release(_empty(plan, 3, None))
    fields = json.loads(publication.to_json())
    assert fields["plan"]["unit"] == "person"
    again = Publication.from_json(publication.to_json())
    assert again == publication
    assert again.release.plan == plan
    assert again.release.plan.epsilon_for(2) == plan.epsilon_for(2)
    assert "for each person with all of her rows" in repr(again) + str(again._repr_html_())
    with pytest.raises(ParameterError, match="`unit` must be 'row' where rows are given without the people"):
        again.bounds(np.zeros((1, 3)), [1])
    assert "unit" not in document(kind)["plan"]
    with pytest.raises(PublicationError, match="which its noise scales do not certify"):
        Publication.from_json(forged(kind, plan__unit="person"))
    for wrong in ("row", "household", 1):
        with pytest.raises(PublicationError, match=r"`plan\.unit` must be 'person' but is"):
            Publication.from_json(forged(kind, plan__unit=wrong))
    # Noise for people is enough for rows.
    rows = {key: value for key, value in fields["plan"].items() if key != "unit"}
    assert Publication.from_json(signed(fields | {"plan": rows})).release.plan.unit == "row"


@pytest.mark.parametrize(
    "model",
    [
        expost.LogisticRegression(norm=1.0, classes=["no", "yes"]),
        expost.LogisticRegression(
            classes=[False, True],
            plan=expost.calibrate(
                calibration="kifer2012", report="leverage", split=[0.6, 0.4], fit_intercept=True
            ),
        ),
        expost.LogisticRegression(classes=[0, 1], plan=expost.calibrate(sigma=3, l2=2, fit_intercept=True)),
        expost.LogisticRegression(
            classes=[0, 1], plan=expost.calibrate(sigma=1e4, l2=2, delta=0.5, fit_intercept=True)
        ),
        expost.SmoothedHingeClassifier(
            classes=[0.5, 1.5],
            plan=expost.calibrate(
                loss=expost.SmoothedHinge(0.25), report="adaptive", split=0.5, fit_intercept=True
            ),
        ),
        expost.LogisticRegression(norm=1.0, classes=[0, 1], cap=1.0),
        expost.LinearRegression(threshold=2, norm=3, outcome=(-9, 9)),
        expost.LinearRegression(norm=1.0, outcome=(-1, 1), report="dependent", epsilon=2, delta=1e-9),
        expost.LinearRegression(
            outcome=(-1, 1), plan=expost.calibrate(loss="squared", sigma=1.0, l2=1.0, fit_intercept=True)
        ),
    ],
)
def test_every_estimator_publishes_what_it_fitted(model):
    labels = Y if model.get_params().get("classes") is None else np.array(model.classes)[Y]
    names = ["größe", "b\n[red]"]
    model.fit(pd.DataFrame(X, columns=names), labels)
    publication = Publication.from_json(model.publication_.to_json().encode())
    assert publication == model.publication_
    assert publication.release.plan == model.plan_
    assert publication.feature_names == tuple(names)
    assert publication.insecure is None
    records = pd.DataFrame(5 * X, columns=names)
    np.testing.assert_array_equal(publication.predict(records), model.predict(records))
    matrix, frame = publication.predict(5 * X), model.predict(records)
    numbers = frame.dtype.kind == "f"  # equal up to rounding: columns are added up in another order
    assert np.all(np.isclose(matrix, frame, rtol=1e-13) if numbers else matrix == frame)
    if isinstance(model, expost.LogisticRegression):
        np.testing.assert_array_equal(publication.predict_proba(records), model.predict_proba(records))
        np.testing.assert_array_equal(
            publication.decision_function(records), model.decision_function(records)
        )
    else:
        with pytest.raises(PublicationError, match="needs the logistic loss"):
            publication.predict_proba(records)
    with pytest.raises(DomainError, match="2 features"):
        publication.predict(X[:, :1])
    with pytest.raises(DomainError, match="in that order"):
        publication.predict(records[names[::-1]])


def test_soft_labels_are_predicted_as_probabilities():
    release = Release(plan=calibrate(loss=LogisticLoss(soft=True)), coefficients=np.array([0.0, 0.0]))
    publication = Publication.from_json(Publication.from_release(release).to_json())
    assert publication.classes is None
    np.testing.assert_array_equal(publication.predict(X), np.full(60, 0.5))


def test_a_publication_cannot_be_changed():
    publication = Publication.from_json(published("adaptive").to_json())
    with pytest.raises(ValueError, match="frozen"):
        publication.norm = 2.0
    with pytest.raises(ValueError, match="frozen"):
        publication.plan.epsilon = 0.1
    for array in (
        publication.release.coefficients,
        publication.release.gradient,
        publication.release.hessian,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_the_constructor_verifies_like_the_reader():
    assert Publication(**document()) == published()
    with pytest.raises(ValueError, match="which its noise scales do not certify"):
        Publication(**json.loads(forged(plan__epsilon=0.5)))


def test_a_finer_certificate_decides_where_the_usual_one_is_too_coarse():
    """Another machine's last digits, or an older calibration, may tip a bracket that was left narrow."""
    loss = LogisticLoss(soft=True)
    plan = calibrate(loss=loss, report="leverage", epsilon=3.0, delta=1e-3)
    profile = dataclasses.replace(plan.profile, rounding=REAL)
    usual, finer = profile.delta(3.0), profile.delta(3.0, rtol=1e-5)
    assert usual.lower <= finer.upper < usual.upper
    written = {name: getattr(plan, name) for name in PLAN}

    def check(delta):
        assert not profile.certifies(3.0, delta)
        stated = {"loss": loss, "norm": 1.0, "fit_intercept": False, "precision": None}
        check_guarantee(
            Publication.model_construct(plan=PublishedPlan(**written | {"delta": delta}), **stated)
        )

    check(0.5 * (finer.upper + usual.upper))
    with pytest.raises(PublicationError, match="which its noise scales do not certify"):
        check(0.999 * finer.lower)


def test_equality_is_by_content():
    again = Publication.from_json(published().to_json())
    assert again == published()
    assert hash(again) == hash(published())
    assert again != published("leverage")
    assert again != "expost-publication/1"
    for twin in (copy.copy(again), copy.deepcopy(again), pickle.loads(pickle.dumps(again))):
        assert twin == again


def test_it_shows_public_values_and_warnings():
    insecure, secure = published(), fit(random_state=None).publication_
    assert repr(secure) == "Publication(logistic, 2 features, epsilon=1, delta=1e-06, report='independent')"
    assert "INSECURE" in repr(insecure)
    assert "no worst case" in repr(squared())
    for publication in (insecure, secure, squared()):
        console = Console(width=100, record=True, file=io.StringIO())
        console.print(publication)
        text = console.export_text()
        assert ("INSECURE" in text) == (publication.insecure is not None)
        assert len(text.splitlines()) < 15


def test_squared_loss_has_null_for_a_guarantee():
    assert squared().plan.epsilon is None
    assert squared().release.plan.epsilon == math.inf


class MyLoss(LogisticLoss):
    pass


def test_unknown_losses_are_not_published_but_the_model_is_kept():
    model = fit(plan=calibrate(loss=MyLoss(), fit_intercept=True))
    assert model.predict(X).shape == (60,)
    for _ in range(2):
        with pytest.raises(PublicationError, match="a MyLoss cannot be published: a loss of one's own must"):
            model.publication_  # noqa: B018
        model = pickle.loads(pickle.dumps(model))
    release = dataclasses.replace(published().release, plan=calibrate(loss=MyLoss()))
    with pytest.raises(PublicationError, match="a MyLoss cannot be published"):
        Publication.from_release(release)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": [1, "a"]}, "labels of one kind"),
        ({"classes": [np.datetime64("2020"), np.datetime64("2021")]}, "texts, finite numbers"),
        ({"classes": [0, np.nan]}, "texts, finite numbers"),
        ({"classes": ["\ud800", "b"]}, "surrogate"),
        ({"feature_names": ["a", "a"]}, "different from each other; declare it otherwise before fitting"),
        ({"feature_names": ["a"]}, "must have 2 entries"),
    ],
)
def test_values_that_cannot_be_read_back_are_not_published(changes, words):
    with pytest.raises(PublicationError, match=words) as caught:
        Publication.from_release(published().release, **changes)
    assert "cannot use" not in str(caught.value)


def test_a_release_that_promises_too_much_is_not_published():
    release = published().release
    bold = dataclasses.replace(release, plan=dataclasses.replace(release.plan, epsilon=0.99))
    with pytest.raises(PublicationError, match=r"cannot publish this release: `plan` promises epsilon=0.99"):
        Publication.from_release(bold)


def test_saving_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "publication.json"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        published().save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["publication.json"]
    assert path.read_text() == "old"


def test_packing_is_the_upper_triangle():
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert pack(matrix) == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(unpack(pack(matrix)), matrix)


def test_the_error_is_one_of_ours():
    for base in (ExpostError, ValueError):
        with pytest.raises(base, match="`format` must be"):
            Publication.from_json("{}")


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_statistics_that_a_fit_can_release_are_never_refused(scale):
    """With almost no noise the smallest eigenvalue is l2 up to rounding; with much noise, far below."""
    scales = dict.fromkeys(("sigma_gradient", "sigma_hessian", "sigma_eigenvalue"), scale)
    plan = calibrate(loss="squared", report="adaptive", norm=1e3, sigma=1.0, l2=1e-3, **scales)
    design = design_of(np.repeat(1e3 * X[:, :1], 30, axis=1), norm=1e3)
    for seed in range(20):
        release, _ = perturb(plan, design.labelled(X[:, 0]), noise=SeededNoise(seed))
        assert_same_release(Publication.from_release(release).release, release)


def test_a_domain_file_in_the_place_of_a_publication_is_recognised(tmp_path):
    (tmp_path / "domain.toml").write_text("[label]\n")
    with pytest.raises(
        PublicationError, match="its name is that of a domain file; give the file that a fit wrote"
    ):
        Publication.load(tmp_path / "domain.toml")
