"""A published file that is damaged, ambiguous, hostile or untrue is refused in one sentence."""

import json
import os
import re
import tracemalloc

import numpy as np
import pytest
from own_losses import LogCosh
from problems import hides_its_cause
from publications import document, forged, published, signed, squared

from expost import Domain, LogisticLoss, Number, NumberLabel, PseudoHuber, Publication
from expost.exceptions import PublicationError
from expost.losses import DerivativeCurve
from expost.publication.checks import check_outcome, check_weights
from expost.publication.schema import PublishedWeights

GOOD = published().to_json()
D = document()
LONG = "9" * 5000
LOGISTIC = {"name": "logistic", "soft": False}
REFUSED = {
    "newer": (
        forged(format="expost-publication/3"),
        "expost-publication/3 needs a newer expost: upgrade with pip",
    ),
    "older": (forged(format="expost-publication/0"), "`format` must be 'expost-publication/2' but is"),
    "foreign": (forged(format={"a": 1}), "`format` must be 'expost-publication/2' but is an object"),
    "no format": ("{}", "`format` must be"),
    "duplicate key": (GOOD.replace('"norm"', '"norm": 1.0, "norm"'), "the key 'norm' appears twice"),
    "duplicate inside": (GOOD.replace('"soft"', '"soft": true, "soft"'), "the key 'soft' appears twice"),
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
    "many lists": ("[" + "[]," * 60_000 + "[]]", "or 30000 lists and objects"),
    "many values": ("[" + "0," * 4_000_001 + "0]", "more than 4000000 values"),
    "many keys": (
        signed(D | {f"k{i}": i for i in range(200_000)}),
        "more than 4000000 values, 200000 keys or",
    ),
    "raw surrogate": (forged(classes=["\ud800", "b"]), "holds half of a surrogate pair"),
    "surrogate in a str": (GOOD.replace("[0, 1]", '["\ud800", "b"]'), "holds half of a surrogate pair"),
    "surrogate in a name": (
        forged(feature_names=["\udfff", "b"]),
        "`feature_names` must be text but '\\udfff'",
    ),
    "long name": (forged(feature_names=["a" * 10_001, "b"]), "texts of at most 10000 bytes"),
    "no classes": (forged(classes=None), "`classes` must be 2 labels for the loss logistic but is null"),
    "one class": (forged(classes=[1]), "`classes` must be null or 2 to 1000 labels but is a list of 1"),
    "equal classes": (forged(classes=[1, 1.0]), "`classes` must be different labels but two are 1.0"),
    "mixed classes": (forged(classes=[1, "1"]), "`classes` must be labels of one kind"),
    "bool and number": (forged(classes=[True, 0]), "`classes` must be labels of one kind"),
    "class a list": (forged(classes=[[], 1]), "`classes` must be labels of one kind"),
    "inexact class": (forged(classes=[0, 2**53 + 1]), "`classes` must be exact, finite numbers"),
    "classes a text": (forged(classes="ab"), "`classes` must be null or 2 to 1000 labels"),
    "unknown loss": (forged(loss={"name": "poisson"}), "`loss` must name one of logistic, smoothed_hinge"),
    "loss a text": (forged(loss="logistic"), "`loss` must name one of"),
    "loss null": (forged(loss=None), "`loss` must name one of"),
    "loss without parameter": (forged(loss={"name": "logistic"}), "must have exactly soft"),
    "loss with another": (forged(loss={"name": "logistic", "soft": False, "x": 1}), "must have exactly soft"),
    "cap without corner": (forged(loss=LOGISTIC | {"cap": 0.6}), "must have exactly soft, cap, corner"),
    "corner without cap": (forged(loss=LOGISTIC | {"corner": 0.6}), "`corner` must be None with cap=1"),
    "cap of one": (forged(loss=LOGISTIC | {"cap": 1.0}), "must have exactly soft"),
    "cap above one": (forged(loss=LOGISTIC | {"cap": 2, "corner": 0.8}), "`loss` is refused: `cap` must be"),
    "cap as text": (
        forged(loss=LOGISTIC | {"cap": "1", "corner": 0.8}),
        "`loss.cap` must be a finite number",
    ),
    "sharp corner": (
        forged(loss=LOGISTIC | {"cap": 0.6, "corner": 1.0}),
        "`corner` must be a number between",
    ),
    "a gradient that is too long": (
        forged(loss=LOGISTIC | {"cap": 0.5, "corner": 0.8, "gradient_cap": 0.75}),
        "`loss.gradient_cap` must be at most the loss's largest slope times the length of the longest row",
    ),
    "short rows that bend": (
        forged(loss=LOGISTIC | {"cap": 0.9, "corner": 0.3, "gradient_cap": 0.75}),
        "`gradient_cap` must be None where shorter rows could bend more than the longest",
    ),
    "soft cap": (
        forged(loss=LOGISTIC | {"soft": True, "cap": 0.6, "corner": 0.8}),
        "`cap` must be 1 with soft=True",
    ),
    "a cap that was not there": (forged(loss=LOGISTIC), "which its noise scales do not certify"),
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
        forged(regularizer={"name": "smoothed_l1", "weight": 1.0, "scale": 0.1}),
        "`regularizer` must be null but is",
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
    "less noise": (forged(plan__sigma=0.999 * D["plan"]["sigma"]), "which its noise scales do not certify"),
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
    assert hides_its_cause(caught.value)
    if isinstance(text, bytes):
        (tmp_path / "file.json").write_bytes(text)
        with pytest.raises(PublicationError, match=re.escape(words)):
            Publication.load(tmp_path / "file.json")


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"low": "x"}, "`domain.features[0].low` must be a valid number but is 'x'"),
        ({"high": -5.0}, "`domain.features[0]` is refused: `age` must have low < high"),
        (
            {"kind": "height"},
            "`domain.features[0].kind` must be one of 'number', 'category', 'yes_no', 'date'",
        ),
        (
            {"kind": "category", "categories": []},
            "`domain.features[0].categories` must have 2 entries or more",
        ),
        (None, "`domain.features[0]` must be an object but is null"),
        ({}, "the field `domain.features[0].kind` is missing"),
    ],
)
def test_a_bad_domain_is_refused_by_the_path_of_its_fault(part, sentence):
    fields = json.loads(GOOD)
    age = {"kind": "number", "name": "age", "low": 0.0, "high": 120.0}
    label = {"kind": "classes", "name": "ill", "classes": ["no", "yes"]}
    fields["domain"] = {"features": [age | part if part else part], "label": label}
    with pytest.raises(PublicationError, match=re.escape(sentence)):
        Publication.from_json(signed(fields))


def test_a_guarantee_for_squared_loss_is_refused():
    fields = json.loads(squared().to_json())
    fields["plan"]["epsilon"] = 1.0
    with pytest.raises(
        PublicationError, match=r"must be null, because this loss has no worst case, for the loss"
    ):
        Publication.from_json(signed(fields))


def test_weaker_promises_are_true_and_accepted():
    more = 1.01 * D["plan"]["sigma"]  # and the output's noise is the same power of two
    for changes in ({"plan__epsilon": 1.5}, {"plan__delta": 1e-5}, {"plan__sigma": more}, {"plan__l2": 50.0}):
        assert Publication.from_json(forged(**changes)) != published()


def test_formatting_does_not_change_the_hash():
    fields = document("adaptive")
    assert Publication.from_json(json.dumps(dict(reversed(fields.items())), indent=7)) == published(
        "adaptive"
    )
    assert Publication.from_json(json.dumps(fields | {"norm": 1})) == published("adaptive")


def test_a_file_too_long_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "publication.json"
    with open(path, "wb") as file:
        file.truncate(128 * 2**20 + 1)
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(PublicationError, match="longer than 128 MiB"):
        Publication.load(path)


def test_only_regular_files_are_read(tmp_path):
    with pytest.raises(PublicationError, match="regular file"):
        Publication.load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(PublicationError, match="regular file"):
            Publication.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        Publication.load(tmp_path / "absent")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"' + '\\"' * 8_000_000, id="open string"),
        pytest.param('"' + "\\n" * 8_000_000 + '"', id="long string", marks=pytest.mark.long),
        pytest.param("[" * 16_000_000, id="brackets"),
        pytest.param("[" + "{}," * 5_000_000, id="objects"),
        pytest.param("9" * 16_000_000, id="digits"),
    ],
)
def test_sixteen_hostile_megabytes_need_little_memory(text):
    tracemalloc.start()
    with pytest.raises(PublicationError):
        Publication.from_json(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_a_file_of_a_coarse_solver_is_refused():
    """The radius that a guarantee relies on is a small part of the output's noise."""
    precision = D["precision"]
    coarse = precision | {"solver_radius": precision["output_noise"] * 2.0**-9}
    with pytest.raises(PublicationError, match="solver_radius` must be a small part of"):
        Publication.from_json(signed(D | {"precision": coarse}))


def test_a_numeric_outcome_belongs_to_a_loss_that_takes_numbers():
    domain = Domain(
        features=(Number(name="a", low=-1.0, high=1.0), Number(name="b", low=-1.0, high=1.0)),
        label=NumberLabel(name="cost", low=0.0, high=1.0),
    )
    with pytest.raises(PublicationError, match="must not declare a numeric outcome for the loss logistic"):
        check_outcome(Publication.model_construct(domain=domain, loss=LogisticLoss(soft=True)))
    check_outcome(Publication.model_construct(domain=domain, loss=PseudoHuber()))


def test_weights_belong_to_a_loss_whose_certificate_covers_them():
    class Rising(LogCosh):
        @property
        def curve(self):
            return DerivativeCurve(1.0, lambda m: np.minimum(m**1.5, 0.3), peak=1.0, sign_fixed=False)

    weights = PublishedWeights(max_weight=2.0, class_weight=None)
    check_weights(Publication.model_construct(weights=weights, loss=LogCosh()))
    with pytest.raises(PublicationError, match="`weights` must be absent for the loss log_cosh"):
        check_weights(Publication.model_construct(weights=weights, loss=Rising()))
