"""The page's numbers are the library's: its own modules, run by node, against Python."""

import json
import subprocess

import numpy as np
import pages
import pytest
from hypothesis import given, settings, strategies as st

from expost import Category, Number, YesNo
from expost.exceptions import DomainError
from expost.page.numbers import payload

pytestmark = pytest.mark.skipif(
    pages.NODE is None, reason="NODE IS MISSING: the page's scripts are NOT tested on this machine"
)
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


@pytest.mark.parametrize("kind", pages.KINDS)
@pytest.mark.parametrize("loss", pages.LOSSES)
def test_every_loss_and_report_kind(loss, kind):
    assert compared([pages.published(loss, kind)], RECORDS) < TOLERANCE


@pytest.mark.parametrize("kind", pages.KINDS)
def test_a_public_regularizer_and_no_intercept(kind):
    plain = pages.published("logistic", kind, regularized=True)
    assert compared([plain], 500) < TOLERANCE
    without = pages.published("huber", kind, fit_intercept=False)
    assert compared([without], 500) < TOLERANCE


@pytest.mark.parametrize("kind", ["leverage", "adaptive"])
def test_a_hessian_that_is_mostly_noise(kind):
    assert compared([pages.published("logistic", kind, rows=2)], 500) < TOLERANCE


def test_several_publications_share_the_confidence():
    several = [pages.published("logistic", "independent"), pages.published("hinge", "adaptive", seed=4)]
    assert compared(several, 500) < TOLERANCE


TEXTS = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-200, 200).map(str),
    st.sampled_from(
        ["", "yes", "no", "TRUE", "f", "1.0", "north", "south, old", "1e3", ".5", "5.", "x", "0x10"]
    ),
)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(range(len(pages.FEATURES))), TEXTS), min_size=1, max_size=200))
def test_encodings_and_refusals_agree(cells):
    fields = [feature.model_dump(mode="json") for feature in pages.FEATURES]
    answer = subprocess.run(
        [pages.NODE, str(pages.HERE / "js" / "encode.mjs")],
        input=json.dumps({"fields": fields, "cells": cells}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for (place, text), ours in zip(cells, json.loads(answer.stdout), strict=True):
        feature: Number | Category | YesNo = pages.FEATURES[place]
        row = np.empty((1, feature.columns))
        try:
            feature.encode(np.array([text], dtype=object), row)
        except DomainError:
            assert ours is None, (feature.name, text)
        else:
            assert ours == row[0].tolist(), (feature.name, text)


def test_the_scripts_own_tests():
    outcome = subprocess.run(
        [pages.NODE, "--test", *map(str, sorted((pages.HERE / "js").glob("*.test.mjs")))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
