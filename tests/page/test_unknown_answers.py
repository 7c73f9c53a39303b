"""An unknown answer counts as the worst it may have been: no value gives more, and little is lost."""

import node
import numpy as np
import pages
import pytest

from expost.page.numbers import payload

pytestmark = pytest.mark.skipif(node.NODE is None, reason=node.MISSING)
SINGLE = [name for name in pages.LOSSES if not name.startswith("softmax") and name != "soft"]


def asked_of(publications, rng, count, most):
    """People with up to ``most`` unknown answers, numbers and listed values, the outcome among them."""
    numbers = payload(publications)
    publication = publications[0]
    people = pages.people(rng, count, publication.domain, publication.loss)
    options = pages.questions(rng, count)
    asked = []
    for person, option in zip(people, options, strict=True):
        places = rng.choice(len(person), size=rng.integers(1, most + 1), replace=False)
        asked.append([[None if i in places else answer for i, answer in enumerate(person)], option])
    return numbers, asked


def searched(cases, tries):
    numbers = [one for one, _ in cases]
    asked = [[place, *pair] for place, (_, pairs) in enumerate(cases) for pair in pairs]
    return node.answer("ranges.mjs", {"numbers": numbers, "asked": asked, "tries": tries})


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        "independent",
        *(pytest.param(kind, marks=pytest.mark.docs) for kind in ("leverage", "dependent")),
        "adaptive",
    ],
)
def test_the_bound_over_ranges_is_above_every_value_and_close_to_one(kind):
    """Every loss of one linear predictor; 300 random values each, half of them at or near an end."""
    rng = np.random.default_rng(8)
    cases = [asked_of([pages.published(loss, kind)], rng, 6, 3) for loss in SINGLE]
    found = searched(cases, 300)["results"]
    for bound, largest in found:
        assert bound is not None
        assert bound >= largest
    # A known member is bounded from both sides where a number is open, so only most are this close.
    ratios = np.array([bound / largest for bound, largest in found])
    assert np.median(ratios) < 1.01
    assert np.max(ratios) < 1.35


@pytest.mark.long
def test_listed_values_are_tried_one_by_one_for_several_classes():
    rng = np.random.default_rng(9)
    publication = pages.published("softmax", "leverage")
    numbers = payload([publication])
    answers = pages.people(rng, 4, publication.domain, publication.loss)
    asked = [
        [[*one[:2], None, None, one[4], None], option]
        for one, option in zip(answers, pages.questions(rng, 4), strict=True)
    ]
    told = searched([(numbers, asked)], 400)
    for bound, largest in told["results"]:
        assert bound == pytest.approx(largest, rel=1e-12)
    assert told["offered"] == [[True] * 6]


CLASSES = [name for name in pages.LOSSES if name.startswith("softmax")]


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    ["leverage", *(pytest.param(kind, marks=pytest.mark.slow) for kind in pages.KINDS if kind != "leverage")],
)
def test_numbers_of_several_classes_are_bounded_by_intervals(kind):
    """No value gives more than the bound, and the bound is not far from one that some value gives."""
    rng = np.random.default_rng(12)
    cases = [asked_of([pages.published(loss, kind)], rng, 3, 3) for loss in CLASSES]
    found = searched(cases, 150)["results"]
    assert all(bound >= largest for bound, largest in found)
    ratios = np.array([bound / largest for bound, largest in found])
    assert np.median(ratios) < 1.25
    assert np.max(ratios) < 2.0


@pytest.mark.long
@pytest.mark.parametrize("loss", ["logistic", "huber", pytest.param("softmax", marks=pytest.mark.slow)])
def test_everything_may_be_unknown(loss):
    """Eight numbers and six lists: more corners and combinations than can be looked at."""
    publication = pages.wide(loss)
    numbers = payload([publication])
    asked = [
        [[None] * len(numbers["fields"]), option] for option in pages.questions(np.random.default_rng(2), 2)
    ]
    for bound, largest in searched([(numbers, asked)], 400)["results"]:
        assert largest <= bound < 6.0 * largest


@pytest.mark.long
@pytest.mark.parametrize(
    "loss", ["capped-gradients", pytest.param("softmax-gradients", marks=pytest.mark.slow)]
)
def test_no_value_has_a_larger_total_by_the_library(loss):
    """Python has no bound over open answers: it tries 80 values for each, with figures of its own."""
    rng, publication = np.random.default_rng(14), pages.published(loss, "leverage")
    numbers, asked = asked_of([publication], rng, 4, 4)
    for (answers, option), (bound, _) in zip(asked, searched([(numbers, asked)], 0)["results"], strict=True):
        others = pages.people(rng, 80, publication.domain, publication.loss)
        filled = [[o if a is None else a for a, o in zip(answers, one, strict=True)] for one in others]
        totals = pages.by_python(publication, filled, [option] * len(filled))[:, 3]
        assert np.max(totals) <= bound * (1.0 + 1e-9)
        assert bound < 2.5 * np.max(totals)


@pytest.mark.long
def test_two_publications_are_bounded_together():
    rng = np.random.default_rng(10)
    recalibrated = pages.published("logistic", "independent", sigma_recalibration=12.0)
    several = [recalibrated, pages.published("hinge", "adaptive", seed=4)]
    for bound, largest in searched([asked_of(several, rng, 6, 2)], 400)["results"]:
        assert largest <= bound < 1.35 * largest


@pytest.mark.long
def test_moments_are_bounded_over_unknown_answers():
    """What a record adds to them at most rises with the sizes of its prediction and of its residual."""
    publication = pages.published("huber", "leverage", sigma_recalibration=1.5)
    cases = [
        asked_of([publication], np.random.default_rng(seed), 3, unknown) for seed, unknown in ((1, 2), (2, 4))
    ]
    for bound, largest in searched(cases, 400)["results"]:
        assert largest <= bound < 1.35 * largest


@pytest.mark.long
def test_numbers_without_bounds_cannot_be_unknown():
    numbers = payload([pages.published("soft", "independent")])
    offered = node.answer("ranges.mjs", {"numbers": [numbers], "asked": [], "tries": 0})["offered"]
    assert offered == [[False] * len(numbers["fields"])]


@pytest.mark.slow
@pytest.mark.parametrize("kind", pages.KINDS)
@pytest.mark.parametrize("loss", SINGLE)
def test_the_same_with_many_people_and_values(loss, kind):
    found = searched([asked_of([pages.published(loss, kind)], np.random.default_rng(11), 40, 4)], 4000)[
        "results"
    ]
    assert all(bound is None or bound >= largest for bound, largest in found)
