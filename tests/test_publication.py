"""The published file: exactly its fields, bit for bit, and nothing that is not true."""

import copy
import dataclasses
import io
import json
import math
import os
import pickle
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from publications import KINDS, X, Y, document, fit, forged, published, signed, squared
from rich.console import Console

import expost
from expost import LogisticLoss, Publication, SmoothedL1, calibrate
from expost.design import Design
from expost.documents import PublishedPlan, Statistics
from expost.exceptions import DomainError, ExpostError, PublicationError
from expost.mechanism import perturb
from expost.noise import SeededNoise
from expost.release import Release, pack, unpack
from expost.tables import open_table

PLAN = {
    "epsilon", "delta", "sigma", "l2", "sigma_gradient", "sigma_hessian", "sigma_eigenvalue", "report",
    "calibration",
}  # fmt: skip
FIELDS = {
    "format", "software", "loss", "regularizer", "norm", "fit_intercept", "classes", "feature_names",
    "coefficients", "domain", "plan", "statistics", "insecure", "sha256",
}  # fmt: skip
RELEASED = {
    "independent": set(),
    "leverage": {"hessian"},
    "dependent": {"gradient", "hessian"},
    "adaptive": {"gradient", "hessian", "eigenvalue"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_file_has_exactly_these_fields(kind, tmp_path):
    published(kind).save(tmp_path / "publication.json")
    text = (tmp_path / "publication.json").read_text(encoding="utf-8")
    fields = json.loads(text)
    assert set(fields) == FIELDS
    assert set(fields["plan"]) == PLAN
    assert set(fields["loss"]) == {"name", "soft"}
    assert set(fields["statistics"]) == {"gradient", "hessian", "eigenvalue"}
    assert {name for name, value in fields["statistics"].items() if value is not None} == RELEASED[kind]
    assert len(fields["coefficients"]) == 3
    assert text.startswith('{\n  "format": "expost-publication/1",\n')
    assert text.endswith('"\n}\n')
    assert Publication.load(tmp_path / "publication.json") == published(kind)


def test_the_document_lists_every_field_and_no_other():
    text = (Path(__file__).parent.parent / "docs" / "publication.md").read_text(encoding="utf-8")
    names = [*Publication.model_fields]
    names += [f"plan.{name}" for name in PublishedPlan.model_fields]
    names += [f"statistics.{name}" for name in Statistics.model_fields]
    assert re.findall(r"^\| `([\w.]+)` \|", text, flags=re.MULTILINE) == names


@pytest.mark.parametrize("kind", KINDS)
def test_two_tables_differ_only_in_what_carries_noise(kind):
    """Same seed, other rows and another number of them."""
    one, other = (
        json.loads(published(kind).to_json()),
        json.loads(fit(kind, X[:33] / 2, Y[:33]).publication_.to_json()),
    )
    assert one.pop("sha256") != other.pop("sha256")
    assert one.pop("coefficients") != other.pop("coefficients")
    for name in RELEASED[kind]:
        assert one["statistics"].pop(name) != other["statistics"].pop(name)
    assert one == other


def bits(array):
    return None if array is None else np.asarray(array, dtype=np.float64).tobytes()


def assert_same_release(one, other):
    assert one.plan == other.plan
    assert one.regularizer == other.regularizer
    assert one.insecure == other.insecure
    for name in ("coefficients", "gradient", "hessian", "eigenvalue"):
        assert bits(getattr(one, name)) == bits(getattr(other, name)), name


PLANS = {kind: calibrate(report=kind) for kind in KINDS}
FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [-0.0, 5e-324, -2.2e-308, 1.7e308]
)
MODEST = st.floats(-30.0, 30.0) | st.sampled_from([-0.0, 5e-324])


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
        plan=PLANS[kind],
        coefficients=np.array(coefficients),
        gradient=np.array(gradient) if "gradient" in has else None,
        hessian=unpack(hessian, 3) if "hessian" in has else None,
        eigenvalue=eigenvalue if "eigenvalue" in has else None,
    )
    publication = Publication.from_release(release)
    again = Publication.from_json(publication.to_json())
    assert again == publication
    assert again.to_json() == publication.to_json()
    assert_same_release(again.release, release)


@pytest.mark.parametrize(
    "model",
    [
        expost.LogisticRegression(classes=["no", "yes"], regularizer=SmoothedL1(2, 0.3)),
        expost.LogisticRegression(
            classes=[False, True], calibration="kifer2012", report="leverage", split=[0.6, 0.4]
        ),
        expost.LogisticRegression(classes=[0, 1], sigma=3, l2=2, fit_intercept=False),
        expost.LogisticRegression(classes=[0, 1], sigma=1e4, l2=2, delta=0.5),
        expost.SmoothedHingeClassifier(classes=[0.5, 1.5], scale=0.25, report="adaptive", split=0.5),
        expost.LinearRegression(threshold=2, norm=3),
        expost.LinearRegression(report="dependent", epsilon=2, delta=1e-9),
        expost.LinearRegression(loss="squared", sigma=1.0, l2=1.0),
    ],
)
def test_every_estimator_publishes_what_it_fitted(model):
    labels = Y if model.get_params().get("classes") is None else np.array(model.classes)[Y]
    names = ["größe", "b\n[red]"]
    model.fit(pd.DataFrame(X, columns=names), labels)
    publication = Publication.from_json(model.publication_.to_json().encode())
    assert publication == model.publication_
    assert publication.release.plan == model.plan_
    assert publication.release.regularizer == model.regularizer
    assert publication.feature_names == tuple(names)
    assert publication.insecure is None
    records = pd.DataFrame(5 * X, columns=names)
    np.testing.assert_array_equal(publication.predict(records), model.predict(records))
    np.testing.assert_array_equal(publication.predict(5 * X), model.predict(records))
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


def test_what_was_read_cannot_be_changed():
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


def test_equality_is_by_content():
    again = Publication.from_json(published().to_json())
    assert again == published()
    assert hash(again) == hash(published())
    assert again != published("leverage")
    assert again != "expost-publication/1"
    for twin in (copy.copy(again), copy.deepcopy(again), pickle.loads(pickle.dumps(again))):
        assert twin == again


def test_it_shows_public_values_and_shouts():
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


class MyRegularizer(SmoothedL1):
    pass


class MyLoss(LogisticLoss):
    pass


def test_what_a_reader_would_not_know_is_not_published_but_the_model_stays():
    model = fit(regularizer=MyRegularizer(1.0))
    assert model.predict(X).shape == (60,)
    for _ in range(2):
        with pytest.raises(
            PublicationError, match=r"a MyRegularizer cannot be published because .* use one of"
        ):
            model.publication_  # noqa: B018
        model = pickle.loads(pickle.dumps(model))
    release = dataclasses.replace(published().release, plan=calibrate(loss=MyLoss()))
    with pytest.raises(PublicationError, match="a MyLoss cannot be published"):
        Publication.from_release(release)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": [1, "a"]}, "two labels of one kind"),
        ({"classes": [np.datetime64("2020"), np.datetime64("2021")]}, "two texts, finite numbers"),
        ({"classes": [0, np.nan]}, "two texts, finite numbers"),
        ({"classes": ["\ud800", "b"]}, "surrogate"),
        ({"feature_names": ["a", "a"]}, "different from each other; declare it otherwise before fitting"),
        ({"feature_names": ["a"]}, "must have 2 entries"),
    ],
)
def test_what_could_not_be_read_is_not_published(changes, words):
    with pytest.raises(PublicationError, match=words) as caught:
        Publication.from_release(published().release, **changes)
    assert "cannot use" not in str(caught.value)


def test_a_release_that_promises_too_much_is_not_published():
    release = published().release
    bold = dataclasses.replace(release, plan=dataclasses.replace(release.plan, epsilon=0.99))
    with pytest.raises(PublicationError, match=r"cannot publish this release: `plan` promises epsilon=0.99"):
        Publication.from_release(bold)


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_saving_is_atomic(broken, tmp_path, monkeypatch):
    path = tmp_path / "publication.json"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="disk full"):
        published().save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["publication.json"]
    assert path.read_text() == "old"


GOOD = published().to_json()
D = document()
LONG = "9" * 5000
REFUSED = {
    "newer": (
        forged(format="expost-publication/2"),
        "expost-publication/2 needs a newer expost: upgrade with pip",
    ),
    "older": (forged(format="expost-publication/0"), "`format` must be 'expost-publication/1' but is"),
    "foreign": (forged(format={"a": 1}), "`format` must be 'expost-publication/1' but is an object"),
    "no format": ("{}", "`format` must be"),
    "duplicate key": (GOOD.replace('"norm"', '"norm": 1.0, "norm"'), "the key 'norm' stands twice"),
    "duplicate inside": (GOOD.replace('"soft"', '"soft": true, "soft"'), "the key 'soft' stands twice"),
    "NaN": (GOOD.replace('"norm": 1.0', '"norm": NaN'), "must be finite but one is NaN"),
    "Infinity": (GOOD.replace('"norm": 1.0', '"norm": Infinity'), "but one is Infinity"),
    "-Infinity": (GOOD.replace('"norm": 1.0', '"norm": -Infinity'), "but one is -Infinity"),
    "overflow": (GOOD.replace('"norm": 1.0', '"norm": 1e999'), "'1e999' is beyond double precision"),
    "digits": (GOOD.replace('"norm": 1.0', f'"norm": 1.{LONG}'), "has 5002 characters, more than 40"),
    "integer digits": (GOOD.replace('"norm": 1.0', f'"norm": {LONG}'), "has 5000 characters, more than 40"),
    "bool for number": (forged(norm=True), "`norm` must be a valid number but is true"),
    "text for number": (forged(norm="1.0"), "`norm` must be a valid number but is '1.0'"),
    "bool in list": (forged(coefficients=[True, 0.0, 0.0]), "`coefficients[0]` must be a number but is true"),
    "text in list": (forged(coefficients=[0.0, "x", 0.0]), "`coefficients[1]` must be a number but is 'x'"),
    "list in list": (
        forged(coefficients=[0.0, [], 0.0]),
        "`coefficients[1]` must be a number but is a list of 0",
    ),
    "not a list": (forged(coefficients=1.0), "`coefficients` must be a list of numbers but is 1.0"),
    "null coefficients": (forged(coefficients=None), "`coefficients` must be"),
    "number for bool": (forged(fit_intercept=1), "`fit_intercept` must be a valid boolean but is 1"),
    "plan a list": (forged(plan=[]), "`plan` must be an object but is a list of 0"),
    "software": (forged(software="<script>"), "`software` must match"),
    "missing": (signed({k: v for k, v in D.items() if k != "norm"}), "the field `norm` is missing"),
    "extra": (signed(D | {"n_rows": 60}), "`n_rows` is no field of this format"),
    "extra, odd": (signed(D | {"a\nb" * 99: 1}), "…'` is no field of this format"),
    "extra in plan": (
        signed(D | {"plan": D["plan"] | {"rows": 1}}),
        "`plan.rows` is no field of this format",
    ),
    "no coefficients": (forged(coefficients=[]), "has no feature"),
    "intercept only": (forged(coefficients=[1.0]), "has no feature"),
    "gradient shape": (
        forged("dependent", statistics__gradient=[1.0]),
        "`statistics.gradient` must have 3 entries",
    ),
    "hessian shape": (
        forged("leverage", statistics__hessian=[1.0] * 9),
        "`statistics.hessian` must have 6 entries",
    ),
    "names shape": (
        forged(feature_names=["a"]),
        "`feature_names` must have 2 entries with 3 coefficients but has 1",
    ),
    "names twice": (forged(feature_names=["a", "a"]), "`feature_names` must be different"),
    "names not text": (forged(feature_names=["a", 1]), "`feature_names` must be null or a list of texts"),
    "huge entry": (forged("leverage", statistics__hessian=[1e301] * 6), "entries beyond 1e+300"),
    "far below l2": (
        forged("leverage", statistics__hessian=[1.0, 1e9, 0.0, 1.0, 0.0, 1.0]),
        "further below `plan.l2` than",
    ),
    "negative diagonal": (
        forged("leverage", statistics__hessian=[-1e4, 0.0, 0.0, 1.0, 0.0, 1.0]),
        "further below `plan.l2`",
    ),
    "eigenvalue": (forged("adaptive", statistics__eigenvalue=-1e4), "`statistics.eigenvalue` is -10000.0"),
    "huge eigenvalue": (
        forged("adaptive", statistics__eigenvalue=1e301),
        "`statistics.eigenvalue` is 1e+301",
    ),
    "sigma zero": (forged(plan__sigma=0.0), "`plan.sigma` must be greater than 0 but is 0.0"),
    "sigma negative": (forged(plan__sigma=-1.0), "`plan.sigma` must be greater than 0 but is -1.0"),
    "statistic's scale zero": (
        forged("leverage", plan__sigma_hessian=0.0),
        "`plan.sigma_hessian` must be greater",
    ),
    "norm zero": (forged(norm=0), "`norm` must be greater than 0 but is 0"),
    "l2 zero": (forged(plan__l2=0.0), "`plan.l2` must be greater than 0"),
    "epsilon negative": (forged(plan__epsilon=-1.0), "`plan.epsilon` must be greater than or equal to 0"),
    "delta zero": (forged(plan__delta=0.0), "`plan.delta` must be greater than 0"),
    "delta one": (forged(plan__delta=1.0), "`plan.delta` must be less than 1"),
    "scale, no statistic": (
        forged("leverage", statistics__hessian=None),
        "`statistics.hessian` must be given",
    ),
    "statistic, no scale": (
        forged("leverage", plan__sigma_hessian=None),
        "`plan.sigma_hessian` must be given",
    ),
    "more than the report": (
        forged("leverage", plan__report="independent"),
        "must be null with report 'independent'",
    ),
    "less than the report": (
        forged("leverage", plan__report="dependent"),
        "must be given with report 'dependent'",
    ),
    "report": (forged(plan__report="all"), "`plan.report` must be one of independent, leverage"),
    "calibration": (forged(plan__calibration="loose"), "`plan.calibration` must be one of tight, kifer2012"),
    "wrong hash": (GOOD.replace('"norm": 1.0', '"norm": 2.0'), "`sha256` must be that of the other fields"),
    "hash of another kind": (json.dumps(D | {"sha256": "00"}), "`sha256` must match"),
    "not UTF-8": (GOOD.encode("utf-16"), "not UTF-8"),
    "latin": (GOOD.encode().replace(b"logistic", b"l\xf6gistic"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD.encode(), "byte order mark"),
    "empty": (b"", "it is empty"),
    "blank": (" \n", "it is empty"),
    "no object": ("[1, 2]", "must be one JSON object but is a list of 2"),
    "a number": ("1", "must be one JSON object but is 1"),
    "truncated": (GOOD[:300], "not valid JSON at line"),
    "trailing garbage": (GOOD + "x", "not valid JSON at line"),
    "two documents": (GOOD + GOOD, "not valid JSON at line"),
    "deep lists": (GOOD.replace("null", "[" * 100_000, 1), "nested deeper than 32 levels"),
    "deep objects": ('{"a":' * 33 + "1" + "}" * 33, "nested deeper than 32 levels"),
    "many lists": ("[" + "[]," * 20_000 + "[]]", "or 10000 lists and objects"),
    "many values": ("[" + "0," * 4_000_001 + "0]", "more than 4000000 values"),
    "many keys": (signed(D | {f"k{i}": i for i in range(50_000)}), "more than 4000000 values, 50000 keys or"),
    "raw surrogate": (forged(classes=["\ud800", "b"]), "holds half of a surrogate pair"),
    "surrogate in a str": (GOOD.replace("[0, 1]", '["\ud800", "b"]'), "holds half of a surrogate pair"),
    "surrogate in a name": (
        forged(feature_names=["\udfff", "b"]),
        "`feature_names` must be text but '\\udfff'",
    ),
    "long name": (forged(feature_names=["a" * 10_001, "b"]), "texts of at most 10000 bytes"),
    "no classes": (forged(classes=None), "`classes` must be two labels for the loss logistic but is null"),
    "one class": (forged(classes=[1]), "`classes` must be null or two labels but is a list of 1"),
    "equal classes": (forged(classes=[1, 1.0]), "`classes` must be two different labels"),
    "mixed classes": (forged(classes=[1, "1"]), "`classes` must be two labels of one kind"),
    "bool and number": (forged(classes=[True, 0]), "`classes` must be two labels of one kind"),
    "class a list": (forged(classes=[[], 1]), "`classes` must be two labels of one kind"),
    "inexact class": (forged(classes=[0, 2**53 + 1]), "`classes` must be exact, finite numbers"),
    "classes a text": (forged(classes="ab"), "`classes` must be null or two labels"),
    "unknown loss": (forged(loss={"name": "poisson"}), "`loss` must name one of logistic, smoothed_hinge"),
    "loss a text": (forged(loss="logistic"), "`loss` must name one of"),
    "loss null": (forged(loss=None), "`loss` must name one of"),
    "loss without parameter": (forged(loss={"name": "logistic"}), "must have exactly soft"),
    "loss with another": (forged(loss={"name": "logistic", "soft": False, "x": 1}), "must have exactly soft"),
    "loss parameter": (
        forged(loss={"name": "logistic", "soft": 0}),
        "`loss.soft` must be true or false but is 0",
    ),
    "hinge scale": (
        forged(loss={"name": "smoothed_hinge", "scale": 0}),
        "`loss.scale` must be a finite number above",
    ),
    "hinge bool": (
        forged(loss={"name": "smoothed_hinge", "scale": True}),
        "`loss.scale` must be a finite number",
    ),
    "regularizer": (
        forged(regularizer={"name": "l0"}),
        "`regularizer` must name one of smoothed_l1 but is 'l0'",
    ),
    "regularizer weight": (
        forged(regularizer={"name": "smoothed_l1", "weight": -1.0, "scale": 0.1}),
        "`regularizer.weight` must be a finite number above 0 but is -1.0",
    ),
    "insecure": (forged(insecure="maybe"), "`insecure` must be one of INSECURE"),
    "insecure a bool": (forged(insecure=False), "`insecure` must be"),
    "no guarantee claimed": (
        forged(plan__epsilon=None),
        "`plan.epsilon` must be a number for the loss logistic",
    ),
    "smaller epsilon": (
        forged(plan__epsilon=0.999),
        "promises epsilon=0.999 at delta=1e-06, which its noise scales",
    ),
    "smaller delta": (forged(plan__delta=0.99e-6), "which its noise scales do not certify"),
    "epsilon zero": (forged(plan__epsilon=0.0), "which its noise scales do not certify"),
    "epsilon tiny": (forged(plan__epsilon=5e-324), "which its noise scales do not certify"),
    "less noise": (forged(plan__sigma=5.97), "which its noise scales do not certify"),
    "smaller epsilon, leverage": (
        forged("leverage", plan__epsilon=0.999),
        "which its noise scales do not certify",
    ),
    "smaller epsilon, adaptive": (
        forged("adaptive", plan__epsilon=0.999),
        "which its noise scales do not certify",
    ),
    "longer rows": (forged(norm=1.01), "which its noise scales do not certify"),
    "sharper loss": (forged(loss={"name": "logistic", "soft": True}, classes=None), "do not certify"),
    "beyond arithmetic": (forged(norm=1e-320), "`norm` is 1e-320, where no guarantee can be certified"),
    "epsilon beyond": (forged(plan__epsilon=1e301), "which its noise scales do not certify"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_bad_file_is_refused_in_one_sentence(kind, tmp_path):
    text, words = REFUSED[kind]
    with pytest.raises(PublicationError) as caught:
        Publication.from_json(text)
    message = str(caught.value)
    assert words in message
    assert message.startswith("cannot use this publication: ")
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 400
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    if isinstance(text, bytes):
        (tmp_path / "file.json").write_bytes(text)
        with pytest.raises(PublicationError, match=re.escape(words)):
            Publication.load(tmp_path / "file.json")


def test_a_guarantee_for_squared_loss_is_refused():
    fields = json.loads(squared().to_json())
    fields["plan"]["epsilon"] = 1.0
    with pytest.raises(
        PublicationError, match=r"must be null, because this loss has no worst case, for the loss"
    ):
        Publication.from_json(signed(fields))


def test_weaker_promises_are_true_and_accepted():
    for changes in ({"plan__epsilon": 1.5}, {"plan__delta": 1e-5}, {"plan__sigma": 7.0}, {"plan__l2": 50.0}):
        assert Publication.from_json(forged(**changes)) != published()


def test_spelling_does_not_matter_to_the_hash():
    fields = document("adaptive")
    assert Publication.from_json(json.dumps(dict(reversed(fields.items())), indent=7)) == published(
        "adaptive"
    )
    assert Publication.from_json(json.dumps(fields | {"norm": 1})) == published("adaptive")


def test_a_file_too_long_is_not_even_read(tmp_path, monkeypatch):
    path = tmp_path / "publication.json"
    with open(path, "wb") as file:
        file.truncate(64 * 2**20 + 1)
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(PublicationError, match="longer than 64 MiB"):
        Publication.load(path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(PublicationError, match="regular file"):
        Publication.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PublicationError, match="regular file"):
        Publication.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        Publication.load(tmp_path / "absent")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"' + '\\"' * 8_000_000, id="open string"),
        pytest.param('"' + "\\n" * 8_000_000 + '"', id="long string"),
        pytest.param("[" * 16_000_000, id="brackets"),
        pytest.param("[" + "{}," * 5_000_000, id="objects"),
        pytest.param("9" * 16_000_000, id="digits"),
    ],
)
def test_sixteen_hostile_megabytes_cost_no_more_than_a_few_copies(text):
    tracemalloc.start()
    with pytest.raises(PublicationError):
        Publication.from_json(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_packing_is_the_upper_triangle():
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert pack(matrix) == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(unpack(pack(matrix), 3), matrix)


def test_the_error_is_one_of_ours():
    assert issubclass(PublicationError, ExpostError)
    assert issubclass(PublicationError, ValueError)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_statistics_that_a_fit_can_release_are_never_refused(scale):
    """With next to no noise the smallest eigenvalue is l2 to rounding; with a lot of it, far below."""
    scales = dict.fromkeys(("sigma_gradient", "sigma_hessian", "sigma_eigenvalue"), scale)
    plan = calibrate(loss="squared", report="adaptive", norm=1e3, sigma=1.0, l2=1e-3, **scales)
    design = Design(open_table(np.repeat(1e3 * X[:, :1], 30, axis=1)), norm=1e3, fit_intercept=False)
    for seed in range(20):
        release, _ = perturb(plan, design, X[:, 0], noise=SeededNoise(seed))
        assert_same_release(Publication.from_release(release).release, release)
