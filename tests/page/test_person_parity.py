"""The page's numbers of people with several rows and of families are the library's, in node."""

import json

import node
import numpy as np
import pages
import pytest

from expost.data.weights import Weighting
from expost.page.numbers import payload

pytestmark = pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
TOLERANCE = 1e-9


def persons(rng, publication, count):
    """People of one row to twelve: different, alike, with the other label, and more than coefficients."""
    numbers = rng.choice([1, 2, 3, 12], count, p=[0.2, 0.3, 0.3, 0.2])
    most = len(publication.release.coefficients) + 2
    numbers[: count // 20] = min(most, 24 if publication.release.plan.unit == "person" else 6)
    if publication.release.plan.unit == "row":
        numbers = np.minimum(numbers, 6)
    found = []
    for number in numbers.tolist():
        rows = pages.people(rng, number, publication.domain, publication.loss)
        kind = rng.integers(4)
        if kind == 0:
            rows = [list(rows[0]) for _ in rows]
        elif kind == 1:
            # Rows that pull in opposite directions: the same values, another label.
            rows = [[*rows[0][:-1], row[-1]] for row in rows]
        found.append(rows)
    return found


def compared(publication, count, *, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    numbers = json.loads(json.dumps(payload([publication])))
    people, asked = persons(rng, publication, count), pages.questions(rng, count)
    forgotten = np.zeros(count, dtype=int)
    if publication.release.plan.unit == "person":
        forgotten = rng.choice([0, 0, 0, 1, 2, 5], count)
    weights, filled = None, people
    if weighted:
        most = publication.weighting.max_weight
        weights = [rng.uniform(0.0, most, len(rows)).tolist() for rows in people]
        filled = [
            [[*row[:-1], repr(weight), row[-1]] for row, weight in zip(rows, own, strict=True)]
            for rows, own in zip(people, weights, strict=True)
        ]
    ours = pages.by_node(
        numbers,
        [[0, rows, options, int(left)] for rows, options, left in zip(filled, asked, forgotten, strict=True)],
    )
    theirs = pages.persons_by_python(publication, people, asked, forgotten.tolist(), weights=weights)
    return ours, theirs


def worst(ours, theirs):
    # Where a loss has no largest slope a forgotten row has no limit, here as there.
    limited = np.isfinite(theirs[:, 3])
    assert np.array_equal(limited, np.array([value is not None for value in ours[:, 3]]))
    return pages.discrepancy(ours[limited].astype(float), theirs[limited])


@pytest.mark.long
@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize(("loss", "kind"), pages.SOME)
def test_every_loss_with_some_report(loss, kind, unit):
    # Python takes longest over several classes.
    count = 6 if loss.startswith("softmax") and unit == "person" else 40
    assert worst(*compared(pages.published(loss, kind, unit=unit), count)) < TOLERANCE


@pytest.mark.parametrize("cornered", [False, pytest.param(True, marks=pytest.mark.long)])
def test_families_in_a_histogram(cornered):
    publication = pages.published("capped", "leverage", cornered=cornered, sigma_recalibration=9.0)
    assert worst(*compared(publication, 20)) < TOLERANCE


def test_families_in_moments():
    publication = pages.published("huber", "independent", sigma_recalibration=1.5)
    assert worst(*compared(publication, 20)) < TOLERANCE


@pytest.mark.long
@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("kind", ["leverage", "independent"])
def test_corners(kind, unit):
    assert worst(*compared(pages.published("capped", kind, cornered=True, unit=unit), 60)) < TOLERANCE


@pytest.mark.long
@pytest.mark.parametrize("unit", ["person", "row"])
def test_what_several_publications_cost_a_person_together(unit):
    several = [pages.published("capped", kind, seed=seed, unit=unit) for seed, kind in enumerate(pages.KINDS)]
    rng = np.random.default_rng(9)
    people = [pages.people(rng, count, several[0].domain, several[0].loss) for count in (1, 2, 3, 6) * 6]
    asked = [one | {"every": False} for one in pages.questions(rng, len(people))]
    numbers = json.loads(json.dumps(payload(several)))
    ours = pages.by_node(numbers, [[None, *pair, 0] for pair in zip(people, asked, strict=True)])[:, 0]
    for place, (rows, own) in enumerate(zip(people, asked, strict=True)):
        theirs = pages.totals_by_python(several, rows, [own] * len(rows), groups=[1] * len(rows))[0]
        assert ours[place] == pytest.approx(theirs, rel=TOLERANCE)
    # Less than what is added up, as it is where she has forgotten a row.
    sharing = {"sharing": len(several)}
    none = [0] * len(people)
    added = sum(pages.persons_by_python(one, people, asked, none, **sharing)[:, 3] for one in several)
    assert np.all(ours <= added * (1.0 + TOLERANCE))
    assert np.median(ours / added) < 0.95
    if unit == "person":
        left = pages.by_node(numbers, [[None, *pair, 1] for pair in zip(people, asked, strict=True)])[:, 0]
        one = [1] * len(people)
        parts = [pages.persons_by_python(each, people, asked, one, **sharing)[:, 3] for each in several]
        np.testing.assert_allclose(left, sum(parts), rtol=TOLERANCE)


@pytest.mark.docs
@pytest.mark.parametrize("kind", pages.KINDS)
@pytest.mark.parametrize("loss", pages.LOSSES)
def test_every_loss_and_report(loss, kind):
    assert worst(*compared(pages.published(loss, kind, unit="person"), 120, seed=1)) < TOLERANCE


@pytest.mark.docs
@pytest.mark.parametrize("kind", pages.KINDS[1:])
def test_a_reduced_hessian(kind):
    publication = pages.published("softmax-capped", kind, reduced=True, unit="person")
    assert worst(*compared(publication, 80)) < TOLERANCE


@pytest.mark.docs
@pytest.mark.parametrize("kind", pages.KINDS)
def test_a_hessian_that_is_mostly_noise(kind):
    noisy = pages.published("logistic", kind, rows=6, unit="person")
    assert worst(*compared(noisy, 80)) < TOLERANCE


@pytest.mark.docs
@pytest.mark.parametrize(
    "weighting", [Weighting(rows_per_person=6), Weighting(4.0, (0.3, 2.5), rows_per_person=3)]
)
def test_weights_and_a_declared_number_of_rows(weighting):
    publication = pages.published("capped", "adaptive", weighting=weighting, unit="person")
    weighted = weighting.max_weight is not None
    assert worst(*compared(publication, 80, weighted=weighted)) < TOLERANCE
