"""Effects of a domain, from the file to the page: columns, bounds, verification, coefficients in words."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import expost
from expost import Category, ClassLabel, Domain, Number, Publication, YesNo
from expost._common.strict_json import digest
from expost.cli import app
from expost.exceptions import DomainError, ParameterError, PublicationError

DOMAIN = Domain(
    features=(
        Number(name="age", low=0.0, high=100.0, effect="increasing"),
        Category(name="stage", categories=("I", "II", "III"), effect="monotone"),
        Category(name="ward", categories=("north", "south"), effect=(-0.5, 0.5)),
        YesNo(name="smoker", effect="decreasing"),
        Number(name="dose", low=0.0, high=1.0),
    ),
    label=ClassLabel(name="ill", classes=("no", "yes")),
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = 2000
    found = pd.DataFrame(
        {
            "age": rng.uniform(0.0, 100.0, rows),
            "stage": rng.choice(["I", "II", "III"], rows),
            "ward": rng.choice(["north", "south"], rows),
            "smoker": rng.choice(["yes", "no"], rows),
            "dose": rng.uniform(0.0, 1.0, rows),
        }
    )
    score = found["age"] / 50.0 + 0.8 * (found["stage"] == "III") + 0.5 * (found["smoker"] == "yes") - 1.5
    found["ill"] = np.where(score + 0.5 * rng.logistic(size=rows) > 0.0, "yes", "no")
    return found


@pytest.fixture(scope="module")
def model(table):
    return expost.LogisticRegression(domain=DOMAIN, l1="auto", epsilon=2.0, random_state=1).fit(table)


def test_a_domain_says_the_same_in_a_file():
    assert Domain.from_toml(DOMAIN.to_toml()) == DOMAIN
    assert "effect" not in Number(name="age", low=0.0, high=1.0).model_dump()
    assert DOMAIN.column_names == [
        "age",
        "stage≥II",
        "stage≥III",
        "ward=north",
        "ward=south",
        "smoker",
        "dose",
    ]
    infinite = math.inf
    assert DOMAIN.coef_bounds == (
        (0.0, 0.0, 0.0, -0.5, -0.5, -infinite, -infinite),
        (infinite, infinite, infinite, 0.5, 0.5, 0.0, infinite),
    )


def test_steps_are_counted_up_and_no_longer_than_one():
    rows = DOMAIN.encode(
        {
            "age": [0.0] * 3,
            "stage": ["I", "II", "III"],
            "ward": ["north"] * 3,
            "smoker": ["no"] * 3,
            "dose": [0.5] * 3,
        }
    )
    step = 1.0 / math.sqrt(2.0)
    assert rows[:, 1:3].tolist() == [[0.0, 0.0], [step, 0.0], [step, step]]


@pytest.mark.parametrize(
    "effect", ["up", "monotone", [1.0, 0.0], [0.0], [0.0, math.inf], [False, True], 3, ["0", "1"]]
)
def test_what_is_no_effect_is_refused(effect):
    with pytest.raises(
        DomainError, match=r'`effect` must be "increasing", "decreasing" or two numbers .*; got'
    ):
        Number(name="age", low=0.0, high=1.0, effect=effect)
    with pytest.raises(DomainError, match='`effect` must be "monotone" or two numbers'):
        Category(name="ward", categories=("a", "b"), effect="increasing")


def test_coefficients_keep_to_their_effects(model):
    low, high = map(np.array, DOMAIN.coef_bounds)
    coefficients = model.coef_[0]
    assert np.all((low <= coefficients) & (coefficients <= high))
    assert coefficients[5] == 0.0  # smoking raises the risk, which was declared impossible
    corners = model.publication_.release.corners
    assert corners.l1[:-1].tolist() == [0.5 * model.plan_.sigma] * 7
    assert (corners.l1[-1], corners.low[-1], corners.high[-1]) == (0.0, -math.inf, math.inf)


def test_bounds_of_a_domain_and_of_an_argument_are_refused_together(table):
    model = expost.LogisticRegression(domain=DOMAIN, coef_bounds=(0.0, 1.0))
    with pytest.raises(ParameterError, match="`coef_bounds` must be None with a domain whose features have"):
        model.fit(table)


def forged(publication, **changes):
    changed = json.loads(publication.to_json()) | changes | {"sha256": None}
    fields = {name: value for name, value in changed.items() if name not in ("corners", "sha256") or value}
    return json.dumps(fields | {"sha256": digest(fields)})


def test_a_file_is_read_back_and_verified(model):
    publication = model.publication_
    again = Publication.from_json(publication.to_json())
    assert again == publication
    corners, own = again.release.corners, publication.release.corners
    assert np.array_equal([corners.l1, corners.low, corners.high], [own.l1, own.low, own.high])
    stated = json.loads(publication.to_json())["corners"]
    coefficients = list(publication.coefficients)
    tiny = [*coefficients[:5], -publication.precision.grid, *coefficients[6:]]
    low, high = stated["low"], stated["high"]
    for changes, sentence in (
        ({"corners": None}, "`corners` must have the bounds that the effects in `domain` stand for"),
        ({"corners": stated | {"l1": -1.0}}, "`corners.l1`"),
        ({"corners": stated | {"low": low[1:]}}, "`corners.low` must be null or 7 bounds"),
        ({"corners": stated | {"low": [0.1, *low[1:]]}}, "the effects in `domain`"),
        ({"corners": stated | {"high": ["1", *high[1:]]}}, "must be a number"),
        ({"coefficients": tiny}, "on a bound or zero where they are close to it"),
        ({"coefficients": [-1.0, *coefficients[1:]]}, "`coefficients` must be inside `corners`"),
    ):
        with pytest.raises(PublicationError, match=sentence):
            Publication.from_json(forged(publication, **changes))


def test_a_file_without_corners_says_nothing_of_them(table):
    plain = Domain(features=(DOMAIN.features[4],), label=DOMAIN.label)
    model = expost.LogisticRegression(domain=plain, random_state=1)
    for bounds in (None, (-math.inf, math.inf)):
        fields = json.loads(model.set_params(coef_bounds=bounds).fit(table).publication_.to_json())
        assert "corners" not in fields
        assert fields["coefficients"] == json.loads(model.publication_.to_json())["coefficients"]


def test_the_summary_has_words_and_no_intervals(model):
    summary = model.publication_.summary()
    assert summary.terms[-1] == "intercept"
    assert summary.states[5] == "not used"
    assert np.all(np.isnan(summary.lower))
    assert summary.coefficients[0] == pytest.approx(model.coef_[0, 0] / 50.0)
    # The predictor is the same in both units.
    row = {"age": [30.0], "stage": ["III"], "ward": ["south"], "smoker": ["yes"], "dose": [0.2]}
    units = np.array([30.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.2, 1.0])
    encoded = np.append(DOMAIN.encode(row)[0], 1.0)
    assert units @ summary.coefficients == pytest.approx(encoded @ model.publication_.release.coefficients)
    text = str(summary.to_frame().to_dict())
    assert "coefficient" in text
    with pytest.raises(PublicationError, match="no intervals are known for a model with"):
        model.publication_.predict_proba(pd.DataFrame(row), interval=0.95)


def test_the_command_line_takes_both(table, tmp_path):
    DOMAIN.save(tmp_path / "domain.toml")
    table.to_csv(tmp_path / "table.csv", index=False)
    run = CliRunner().invoke
    domain, rows, output = (str(tmp_path / name) for name in ("domain.toml", "table.csv", "out.json"))
    planned = run(app, ["plan", domain, "--l1", "auto", "--json"])
    assert json.loads(planned.stdout)["corners"]["high"][5] == 0.0
    found = run(app, ["fit", domain, rows, "-o", output, "--l1", "1.5"])
    assert found.exit_code == 0, found.output
    assert "become exactly 0 (l1 = 1.5)" in " ".join(found.output.split())
    publication = Publication.load(output)
    assert publication.release.corners.l1[0] == 1.5
    assert run(app, ["summary", output]).exit_code == 0
    for l1, sentence in (("much", "`l1` must be a number or 'auto'"), ("-1", "`l1` must be a finite number")):
        refused = run(app, ["plan", domain, "--l1", l1])
        assert refused.exit_code == 1
        assert sentence in refused.output
    gradient = run(app, ["plan", domain, "--report", "adaptive"])
    assert "must be None, and no feature have an `effect`" in " ".join(gradient.output.split())
