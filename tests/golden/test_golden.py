"""The library agrees with the golden vectors; ``golden.test.mjs`` asks the same of the page's scripts."""

import json

import make
import numpy as np
import pages
import pytest
import softmax_terms
from problems import REGISTRY

from expost import Publication, SoftmaxLoss
from expost.data.domain import Domain
from expost.data.weights import Declared
from expost.exceptions import DomainError
from expost.page.numbers import CONFIDENCES

LOSSES = make.read("losses")
SOFTMAX = make.read("softmax")
ENCODINGS = make.read("encodings")
BOUNDS = make.read("bounds")
PUBLICATIONS = {
    name: Publication.from_json(json.dumps(content)) for name, content in make.read("publications").items()
}
# Below the smallest double that has all its digits, numbers are this far apart.
GRAIN = 5e-324
# The squares of numbers below this are lost.
UNDERFLOW = 1e-150


def instance(description):
    parameters = {key: value for key, value in description.items() if key != "name"}
    return REGISTRY[description["name"]](**parameters)


def test_every_loss_of_the_registry_has_golden_numbers():
    assert {case["loss"]["name"] for case in LOSSES} == set(REGISTRY)
    assert {publication.loss.name for publication in PUBLICATIONS.values()} == set(REGISTRY)
    assert set(BOUNDS) == set(ENCODINGS) == set(PUBLICATIONS)


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: "-".join(map(str, case["loss"].values())))
def test_slope_and_curvature(case):
    eta, y, slope, curvature = np.array(case["points"]).T
    assert np.max(np.abs(eta)) == 1e308
    ours = instance(case["loss"]).derivatives(eta, y)
    np.testing.assert_allclose(ours[0], slope, rtol=1e-12, atol=GRAIN)
    np.testing.assert_allclose(ours[1], curvature, rtol=1e-12, atol=GRAIN)


@pytest.mark.parametrize("case", SOFTMAX, ids=lambda case: "-".join(map(str, case["loss"].values())))
def test_terms_of_several_classes(case):
    loss = SoftmaxLoss(**{key: value for key, value in case["loss"].items() if key != "name"})
    eta, y, wanted = (np.array(part, dtype=float) for part in zip(*case["points"], strict=True))
    ours = [
        loss.slope(eta, y),
        np.linalg.norm(loss.derivatives(eta, y)[0], axis=1),
        loss.curvature_norm(eta, y),
        *(loss.log_determinant(eta, y, np.full(len(y), scale)) for scale in case["scales"]),
    ]
    # Scores of 1e4 are rounded, and an exponential turns that into a relative error.
    within = 1e-12 * (1.0 + np.max(np.abs(eta), axis=1))
    assert np.all(np.abs(np.column_stack(ours) - wanted) <= within[:, None] * np.abs(wanted) + UNDERFLOW)


@pytest.mark.long
def test_the_vectors_of_several_classes_are_what_their_script_makes():
    assert json.loads(make.lines(softmax_terms.softmax(), 1)) == SOFTMAX


def encoded_feature(feature, text):
    try:
        codes = feature.coded(np.array([text], dtype=object))
    except DomainError:
        return None
    return [float(column[0]) for column in feature.expanded(codes)]


def test_features_are_encoded_and_refused_to_the_bit():
    checked = 0
    for name, publication in PUBLICATIONS.items():
        for feature in publication.domain.features if publication.domain else ():
            cells = ENCODINGS[name]["features"][feature.name]
            wrong = [cell for cell in cells if encoded_feature(feature, cell[0]) != cell[1]]
            assert wrong == [], feature.name
            checked += len(cells)
    assert checked > 400


def encoded_outcome(publication, text):
    try:
        declared = Declared.of(
            publication.release.plan,
            classes=publication.classes,
            domain=publication.domain,
            outcome=publication.outcome,
        )
        labels = declared.labels(np.array([text], dtype=object), 1)
    except DomainError:
        return None
    return float(labels[0])


@pytest.mark.parametrize("name", PUBLICATIONS)
def test_outcomes_are_encoded_and_refused_to_the_bit(name):
    cells = ENCODINGS[name]["outcome"]
    assert any(expected is None for _, expected in cells)
    wrong = [cell for cell in cells if encoded_outcome(PUBLICATIONS[name], cell[0]) != cell[1]]
    assert wrong == []


@pytest.mark.parametrize("name", PUBLICATIONS)
def test_bounds(name):
    publication = PUBLICATIONS[name]
    for case in BOUNDS[name]:
        classified = publication.classes is not None
        X, y = pages.as_table([case["answers"]], publication.domain, classified=classified)
        options = case["options"]
        bounds = publication.bounds(
            X,
            y,
            confidence=CONFIDENCES[options["confidence"]],
            member=options["member"],
            simultaneous="all" if options["every"] else None,
        )
        ours = [bounds.lower[0], bounds.upper[0], bounds.report_cost[0], bounds.total[0]]
        # The lower end is a difference of terms which may cancel, so it is measured against the upper end.
        reach = case["figures"][1] if np.isfinite(case["figures"][1]) else 0.0
        assert ours[0] == pytest.approx(case["figures"][0], rel=0.0, abs=1e-9 * reach + UNDERFLOW), case
        assert ours[1:] == pytest.approx(case["figures"][1:], rel=1e-9, abs=UNDERFLOW), case


@pytest.mark.slow
def test_the_vectors_are_what_their_script_makes():
    """All but the publications, whose guarantee is the library's own and may move in its last digits."""
    publications = make.read("publications")
    assert json.loads(make.lines(make.losses(), 1)) == LOSSES
    assert json.loads(make.lines(make.encodings(publications), 1)) == ENCODINGS
    for name, cases in make.bounds(publications).items():
        assert json.loads(make.lines(cases, 1)) == BOUNDS[name]


@pytest.mark.long
def test_the_publications_are_what_their_script_makes():
    made = make.publications()
    assert list(made) == list(PUBLICATIONS)
    for name, content in made.items():
        stored = make.read("publications")[name]
        promised = stored["plan"].pop("epsilon")
        found = content["plan"].pop("epsilon")
        if promised is None:
            assert found is None
        else:  # what given scales promise may become less, where a certificate has become sharper
            assert 0.99 * promised <= found <= promised * (1.0 + 1e-6)
        for one in (content, stored):
            del one["sha256"], one["software"]
        assert content == stored


def test_a_domain_is_read_back_as_it_was_declared():
    wide = make.read("publications")["wide"]["domain"]
    assert Domain.model_validate(wide) == PUBLICATIONS["wide"].domain
