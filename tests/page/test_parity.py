"""The page's numbers are the library's: its own modules, run by node, against Python."""

import json
import os
import re
import subprocess
import sys

import make
import node
import numpy as np
import pages
import pytest
from hypothesis import given, settings, strategies as st
from problems import REGISTRY

from expost import Category, Number, Publication, YesNo, wallet
from expost.data.weights import Weighting
from expost.exceptions import DomainError
from expost.fitting.contributions import Contributions
from expost.losses.registry import PUBLISHED
from expost.page import render
from expost.page.introduction import LANGUAGES, Language
from expost.page.numbers import CONFIDENCES, CONSTANTS, payload
from expost.privacy.scales import REPORT_KINDS
from expost.publication.readings import encoded_records

pytestmark = pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
TOLERANCE = 1e-9
RECORDS = 2000


def compared(publications, count, *, seed=0):
    """The largest discrepancy over ``count`` random people for each publication."""
    rng = np.random.default_rng(seed)
    numbers = json.loads(json.dumps(payload(publications)))
    worst = 0.0
    for place, publication in enumerate(publications):
        answers = pages.people(rng, count, publication.domain, publication.loss)
        asked = pages.questions(rng, count)
        ours = pages.by_node(numbers, [[place, *pair] for pair in zip(answers, asked, strict=True)])
        theirs = pages.by_python(publication, answers, asked, sharing=len(publications))
        assert np.all(np.isfinite(theirs))
        worst = max(worst, pages.discrepancy(ours, theirs))
    return worst


def test_node_is_found_without_a_path(monkeypatch, tmp_path):
    """Where Playwright is installed nothing else is needed, and nothing else is preferred."""
    pytest.importorskip("playwright", reason="PLAYWRIGHT IS MISSING: node is taken from the path")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node.find_node() == node.NODE


def test_node_is_taken_from_the_path_where_playwright_has_none(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "playwright._impl._driver", None)
    (tmp_path / "node").symlink_to(node.NODE)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node.find_node() == str(tmp_path / "node")
    monkeypatch.setenv("PATH", "")
    assert node.find_node() is None


def test_the_scripts_know_every_loss_and_every_report():
    known = node.answer("names.mjs", None)
    assert known == {
        "derivatives": sorted(REGISTRY),
        "titles": sorted(PUBLISHED),
        "reports": sorted(REPORT_KINDS),
    }


@pytest.mark.long
@pytest.mark.parametrize(("loss", "kind"), pages.SOME)
def test_every_loss_with_some_report_and_every_report_with_some_loss(loss, kind):
    # Python takes longest over several classes.
    count = RECORDS // (50 if loss.startswith("softmax") else 10)
    assert compared([pages.published(loss, kind)], count) < TOLERANCE


@pytest.mark.parametrize(
    "kind", ["independent", *(pytest.param(kind, marks=pytest.mark.docs) for kind in pages.KINDS[1:])]
)
def test_a_histogram_of_scores(kind):
    publication = pages.published("capped-gradients", kind, sigma_recalibration=12.0)
    assert compared([publication], RECORDS // 10) < TOLERANCE


@pytest.mark.parametrize(
    ("kind", "intercept"),
    [("independent", True), *(pytest.param(kind, False, marks=pytest.mark.docs) for kind in pages.KINDS[1:])],
)
def test_moments(kind, intercept):
    """With so little noise that the length of what a record adds decides the figures."""
    options = {"fit_intercept": intercept, "sigma_recalibration": 1.5}
    assert compared([pages.published("huber", kind, **options)], RECORDS // 10) < TOLERANCE


def test_her_cell_is_the_librarys():
    """The count that is shown to a person is that of the cell in which the library counted her."""
    publication = pages.published("capped", "independent", sigma_recalibration=12.0)
    numbers = json.loads(json.dumps(payload([publication])))
    answers = pages.people(np.random.default_rng(4), 200, publication.domain, publication.loss)
    ours = node.answer("cells.mjs", {"numbers": numbers, "asked": answers})
    records = encoded_records(publication, *pages.as_table(answers, publication.domain))
    release = publication.release
    contributions = Contributions(release.coefficients, release.plan)
    ((block,),) = contributions.sweep(records, lambda _, added: added)
    cells = block.places[:, 0]
    assert ours == release.recalibration[cells].tolist()
    assert len(set(cells.tolist())) > 4


@pytest.mark.docs
@pytest.mark.parametrize("kind", pages.KINDS)
@pytest.mark.parametrize("loss", pages.LOSSES)
def test_every_loss_and_report_kind(loss, kind):
    count = RECORDS // 4 if loss.startswith("softmax") else RECORDS
    assert compared([pages.published(loss, kind)], count) < TOLERANCE


@pytest.mark.docs
@pytest.mark.parametrize("kind", pages.KINDS[1:])
@pytest.mark.parametrize("loss", [pytest.param("softmax", marks=pytest.mark.slow), "softmax-capped"])
def test_a_reduced_hessian(loss, kind):
    assert compared([pages.published(loss, kind, reduced=True)], 500) < TOLERANCE


@pytest.mark.docs
@pytest.mark.parametrize("kind", pages.KINDS)
def test_no_intercept(kind):
    without = pages.published("huber", kind, fit_intercept=False)
    assert compared([without], 500) < TOLERANCE


@pytest.mark.long
@pytest.mark.parametrize(("loss", "kind"), [("capped", "leverage"), ("huber", "independent")])
def test_corners(loss, kind):
    publication = pages.published(loss, kind, cornered=True)
    assert np.any(publication.release.corners.active(publication.release.coefficients))
    assert compared([publication], RECORDS // 10) < TOLERANCE


@pytest.mark.docs
@pytest.mark.parametrize("kind", ["leverage", "adaptive"])
def test_a_hessian_that_is_mostly_noise(kind):
    assert compared([pages.published("logistic", kind, rows=2)], 500) < TOLERANCE


@pytest.mark.docs
def test_several_publications_share_the_confidence():
    several = [pages.published("logistic", "independent"), pages.published("hinge", "adaptive", seed=4)]
    assert compared(several, 500) < TOLERANCE


TOGETHER = {
    "every kind of report": [("hinge", "dependent", 4.0), *(("capped", kind, 4.0) for kind in pages.KINDS)],
    "several classes": [("softmax", "leverage", 4.0), ("softmax", "leverage", 5.0)],
    "corners": [
        ("capped", "independent", 4.0, True),
        ("capped", "leverage", 5.0, True),
        ("capped", "leverage", 4.0),
    ],
    "one that outweighs": [("logistic", "leverage", 0.2), ("logistic", "independent", 40.0)],
}


@pytest.mark.docs
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "several classes")) for name in TOGETHER]
)
def test_what_several_publications_cost_together(name):
    several = [
        pages.published(loss, kind, sigma=sigma, cornered=bool(cornered))
        for loss, kind, sigma, *cornered in TOGETHER[name]
    ]
    rng = np.random.default_rng(8)
    numbers = json.loads(json.dumps(payload(several)))
    answers = pages.people(rng, 60, several[0].domain, several[0].loss)
    asked = pages.questions(rng, 60)
    ours = pages.by_node(numbers, [[None, *pair] for pair in zip(answers, asked, strict=True)])[:, 0]
    np.testing.assert_allclose(ours, pages.totals_by_python(several, answers, asked), rtol=TOLERANCE)
    # Where one outweighs the others the totals are added up, as for every record at once.
    added = sum(pages.by_python(one, answers, asked, sharing=len(several))[:, 3] for one in several)
    chosen = [not one["every"] and numbers["together"][one["confidence"]][0] is not None for one in asked]
    np.testing.assert_allclose(ours[np.invert(chosen)], added[np.invert(chosen)], rtol=TOLERANCE)
    if name == "one that outweighs":
        assert not any(chosen)
    else:
        assert np.median(ours[chosen] / added[chosen]) < 1.0


WALLETS = {
    "every kind of report": TOGETHER["every kind of report"],
    "several classes": TOGETHER["several classes"],
    "small scales": [("huber", "independent", sigma) for sigma in (0.3, 0.5, 3.0, 40.0)],
}


@pytest.mark.docs
@pytest.mark.parametrize("name", WALLETS)
def test_a_wallet(name):
    """The one that came first decides the scale: the given order, as these have no days."""
    several = [pages.published(loss, kind, sigma=sigma) for loss, kind, sigma in WALLETS[name]]
    rng = np.random.default_rng(9)
    answers = pages.people(rng, 40, several[0].domain, several[0].loss)
    asked = [one | {"every": place % 8 == 0} for place, one in enumerate(pages.questions(rng, 40))]
    for files in (several, several[::-1]):
        numbers = json.loads(json.dumps(payload(files)))
        ours = pages.by_node(numbers, [[None, *pair] for pair in zip(answers, asked, strict=True)])[:, 1]
        for place, one in enumerate(asked):
            if one["every"] or one["member"] is False:
                assert ours[place] == -1.0
                continue
            X, y = pages.as_table([answers[place]], several[0].domain)
            level = list(CONFIDENCES.values())[one["confidence"]]
            assert ours[place] == pytest.approx(wallet(files, X, y, confidence=level)[0], rel=TOLERANCE)


@pytest.mark.docs
@pytest.mark.parametrize("kind", [pytest.param("independent", marks=pytest.mark.slow), "adaptive"])
@pytest.mark.parametrize(
    ("loss", "weighting"),
    [
        ("capped", Weighting(4.0, (0.3, 2.5))),
        ("hinge", Weighting(class_weight=(0.0, 1.0))),
        ("huber", Weighting(1.0)),
        ("softmax-capped", Weighting(3.0, (0.5, 1.0, 2.0))),
    ],
    ids=["both", "classes", "records", "several"],
)
def test_weights(loss, weighting, kind):
    """A sample weight is one more field before the outcome, or unknown; class weights are not asked."""
    rng = np.random.default_rng(6)
    publication = pages.published(loss, kind, weighting=weighting)
    numbers = json.loads(json.dumps(payload([publication])))
    answers, asked = pages.people(rng, 500, publication.domain, publication.loss), pages.questions(rng, 500)
    weights, filled = None, answers
    if weighting.max_weight is not None:
        weights = rng.uniform(0.0, weighting.max_weight, 500)
        texts = [repr(weight) for weight in weights.tolist()]
        filled = [[*row[:-1], text, row[-1]] for row, text in zip(answers, texts, strict=True)]
    assert "both times your weight" in render([publication])
    assert "both times your weight" not in render([pages.published(loss, kind)])
    asks = [field["role"] for field in numbers["fields"]]
    assert asks.count("weight") == (weighting.max_weight is not None)
    ours = pages.by_node(numbers, [[0, *pair] for pair in zip(filled, asked, strict=True)])
    theirs = pages.by_python(publication, answers, asked, weights=weights)
    assert pages.discrepancy(ours, theirs) < TOLERANCE
    plain = pages.by_python(pages.published(loss, kind), answers, asked)
    assert not np.allclose(theirs, plain)
    if weighting.max_weight is not None:
        open_ones = [[*row[:-1], None, row[-1]] for row in answers]
        ours = pages.by_node(numbers, [[0, *pair] for pair in zip(open_ones, asked, strict=True)])
        theirs = pages.by_python(publication, answers, asked)
        assert pages.discrepancy(ours, theirs) < TOLERANCE
        assert np.all(ours[:, 0] == 0.0)


@pytest.mark.long
def test_an_unknown_weight_in_several_publications():
    """One publication has weights and the other has none: the sum is the library's."""
    several = [
        pages.published("capped", "leverage", weighting=Weighting(4.0, (0.3, 2.5)), sigma=16.0),
        pages.published("capped", "independent"),
    ]
    rng = np.random.default_rng(13)
    numbers = json.loads(json.dumps(payload(several)))
    answers, asked = pages.people(rng, 60, several[0].domain, several[0].loss), pages.questions(rng, 60)
    open_ones = [[*row[:-1], None, row[-1]] for row in answers]
    ours = pages.by_node(numbers, [[None, *pair] for pair in zip(open_ones, asked, strict=True)])[:, 0]
    np.testing.assert_allclose(ours, pages.totals_by_python(several, answers, asked), rtol=TOLERANCE)
    assert {one["every"] for one in asked} == {True, False}


TEXTS = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-200, 200).map(str),
    st.sampled_from(
        ["", "yes", "no", "TRUE", "f", "1.0", "north", "south, old", "1e3", ".5", "5.", "x", "0x10"]
    ),
)


@pytest.mark.long
@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(range(len(pages.FEATURES))), TEXTS), min_size=1, max_size=200))
def test_encodings_and_refusals_agree(cells):
    fields = [feature.model_dump(mode="json") for feature in pages.FEATURES]
    encoded = node.answer("encode.mjs", {"fields": fields, "cells": cells, "words": CONSTANTS["words"]})
    for (place, text), ours in zip(cells, encoded, strict=True):
        feature: Number | Category | YesNo = pages.FEATURES[place]
        try:
            codes = feature.coded(np.array([text], dtype=object))
        except DomainError:
            assert ours is None, (feature.name, text)
        else:
            row = [float(column[0]) for column in feature.expanded(codes)]
            assert ours == row, (feature.name, text)


@pytest.mark.long
def test_the_scripts_own_tests(tmp_path):
    """Among them the golden vectors, for which the page's numbers are made here."""
    stored = {name: json.dumps(content) for name, content in make.read("publications").items()}
    numbers = {name: payload([Publication.from_json(text)]) for name, text in stored.items()}
    given = tmp_path / "numbers.json"
    texts = {code: Language.of(code).of_scripts for code in LANGUAGES}
    given.write_text(
        json.dumps({"constants": CONSTANTS, "numbers": numbers, "texts": texts}), encoding="utf-8"
    )
    outcome = subprocess.run(
        [node.NODE, "--test", *map(str, sorted(node.JS.glob("*.test.mjs")))],
        env={**os.environ, "EXPOST_NUMBERS": str(given)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    passed = re.search(r"^\S* ?pass (\d+)$", outcome.stdout, re.MULTILINE)
    assert int(passed[1]) > len(stored)
