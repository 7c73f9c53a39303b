"""The page counts private choices as the library does, in node."""

import json

import node
import numpy as np
import pages
import pytest
from test_person_parity import TOLERANCE, persons, worst

import expost
from expost.data.choices import RangeChoice
from expost.page.numbers import payload

pytestmark = pytest.mark.skipif(node.NODE is None, reason=node.MISSING)


def with_choices(publication):
    name, unit = publication.domain.features[0].name, publication.release.plan.unit
    made = {"candidates": (0.0, 1.0), "epsilon": 0.125, "column": name, "unit": unit}
    choices = tuple(
        RangeChoice(**made, place=place, end=end, level=level, id=f"{place}" * 64)
        for place, (end, level) in enumerate((("low", 0.01), ("high", 0.99)))
    )
    return expost.Publication.from_release(
        publication.release,
        classes=publication.classes,
        feature_names=publication.feature_names,
        domain=publication.domain.model_copy(update={"choices": choices}),
        weighting=publication.weighting,
    )


@pytest.mark.parametrize("unit", ["row", "person"])
def test_the_total_of_the_page_counts_choices_and_is_the_library_s(unit):
    plain = pages.published("capped", "independent", unit=unit)
    publication, rng = with_choices(plain), np.random.default_rng(1)
    assert "choices" not in plain.to_json()
    numbers = json.loads(json.dumps(payload([publication])))
    assert numbers["chosen"] == 0.25
    assert numbers["promises"][0] > plain.plan.epsilon
    people, asked = persons(rng, publication, 12), pages.questions(rng, 12)
    ours = pages.by_node(numbers, [[0, rows, one, 0] for rows, one in zip(people, asked, strict=True)])
    theirs, before = (pages.persons_by_python(one, people, asked, [0] * 12) for one in (publication, plain))
    assert worst(ours, theirs) < TOLERANCE
    rows = np.array([len(one) if unit == "row" else 1 for one in people])
    np.testing.assert_allclose(theirs[:, 3] - before[:, 3], 0.25 * rows, rtol=1e-9)
