"""What a person reads: intervals for all of her rows that hold as often as they say, and totals of several.

A test of coverage compares the number of fits in which an interval misses the truth with the binomial law at
the stated rate, one-sided, with a false-alarm rate of 1e-6 over the comparisons of one test (Bonferroni).
"""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from grids import grid
from problems import rows_in_ball
from scipy import stats

import expost
from expost import research
from expost.data.blocks import Block
from expost.data.choices import Choice
from expost.data.people import People
from expost.data.ranges import AskedRanges
from expost.data.rows import DenseRows
from expost.exceptions import DomainError, ExpostError, ParameterError
from expost.fitting.choose import choose_ranges
from expost.fitting.release import Release
from expost.losses import SoftmaxLoss
from expost.losses.corners import Corners
from expost.reports.base import Scope, Shares
from expost.reports.evaluate import rows_counted, spent_on_choices
from expost.reports.intervals import Determinant, inner_product, noise_factors, weight_of
from expost.reports.laws import NO_DRIFT, Across, conditional_quantile, person_law, two_sided
from expost.reports.records import records_of

CONFIDENCES = (0.5, 0.8, 0.95)
CHOSEN = """
person = "id"
norm = 1.5
[[features]]
name = "x"
kind = "number"
low = "private"
high = 100.0
grid = [40.0, 60.0]
levels = [0.5, 0.9]
[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]
"""


def test_quantiles_of_people():
    """The figures of the theorem, which are rounded up, and one row is one normal variable."""
    found = np.array([Across(rows).quantile(0.05) for rows in (1, 2, 3, 5, 10)])
    assert (np.ceil(100 * found) / 100).tolist() == [1.96, 2.04, 2.11, 2.25, 2.57]
    assert Across(1).quantile(0.05) == two_sided(0.05)
    at = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(Across(1).tail(at), 2.0 * stats.norm.sf(at), rtol=1e-14)


@pytest.mark.parametrize(
    ("loss", "directions"),
    [
        (expost.LogisticLoss(), 1),
        (SoftmaxLoss(3), 2),
        (SoftmaxLoss(5), 4),
        (expost.LipschitzPoisson(features=4, largest=10.0), 1),
        (expost.SmoothedNorm(3), 3),
    ],
    ids=str,
)
def test_each_row_of_a_person_has_a_normal_for_each_direction_of_its_gradient(loss, directions):
    """One along a row, with several classes one fewer than those, and no more than there are coefficients."""
    for rows in (1, 2, 5):
        assert person_law(loss, rows, 1000) == Across(rows * directions)
        assert person_law(loss, rows, 4) == Across(min(rows * directions, 4))


@pytest.mark.parametrize("freedom", [2, 3, 7])
def test_without_a_stretch_it_is_the_length_of_all(freedom):
    """Every direction counts as much as her own."""
    law, at = Across(freedom, 1.0), np.array([0.1, 1.0, 3.0, 8.0])
    np.testing.assert_allclose(law.tail(at), stats.chi.sf(at, freedom), rtol=1e-11)
    for failure in (0.9, 0.05, 1e-9):
        assert law.quantile(failure) == pytest.approx(stats.chi.isf(failure, freedom), rel=1e-11)


@pytest.mark.parametrize("freedom", [2, 3, 7])
def test_tails_of_people_against_draws(freedom):
    rng = np.random.default_rng(freedom)
    noise = rng.normal(size=(200_000, freedom))
    drawn = np.sqrt(noise[:, 0] ** 2 + np.sum(noise[:, 1:] ** 2, axis=1) / 4.0)
    for at in (1.0, 2.0, 2.5):
        rate = float(Across(freedom).tail(np.array(at)))
        low, high = stats.binom.interval(1 - 1e-6 / 9, len(drawn), rate)
        assert low <= np.sum(drawn > at) <= high


def people(seed, labels=2, rows=(1, 2, 3, 5)):
    """People with rows that point against each other, that repeat, and that have several labels."""
    rng = np.random.default_rng(seed)
    ids = np.concatenate([np.repeat(np.arange(len(rows)), rows), 100 + rng.integers(0, 12, 40)])
    X = rows_in_ball(rng, len(ids), 3)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[2] = -X[1]
    X[4:6] = X[3]
    return X, rng.integers(0, labels, len(ids)).astype(float), ids


LOSSES = {"logistic": 2, "pseudo_huber": 2, SoftmaxLoss(3): 3}


# Several classes take longest.
COVERED = grid(
    LOSSES,
    ["independent", "adaptive"],
    ["person", "row"],
    slow=lambda loss, report, unit: LOSSES[loss] > 2 and (report, unit) != ("adaptive", "person"),
)


@pytest.mark.long
@pytest.mark.parametrize(("loss", "report", "unit"), COVERED, ids=str)
@pytest.mark.parametrize("fits", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_reports_of_people_and_families_cover(loss, report, unit, fits):
    X, y, ids = people(2, LOSSES[loss])
    some = ids < 100
    plan = expost.calibrate(loss=loss, epsilon=3.0, delta=1e-2, l2=2.0, report=report, unit=unit)
    groups = {"groups": ids} if unit == "person" else {}
    missed = {one: np.zeros(4, dtype=int) for one in CONFIDENCES}
    for seed in range(fits):
        release, private = research.draw(plan, X, y, random_state=seed, **groups)
        truth = research.losses(release, private, X[some], y[some], member=True, groups=ids[some]).loss
        for one in CONFIDENCES:
            found = research.bounds(release, X[some], y[some], confidence=one, member=True, groups=ids[some])
            missed[one] += (truth > found.upper) | (truth < found.lower)
    for one in CONFIDENCES:
        assert np.all(missed[one] <= stats.binom.isf(1e-6 / 12, fits, 1 - one)), one


@pytest.mark.long
@pytest.mark.parametrize("loss", ["logistic", SoftmaxLoss(3)], ids=str)
@pytest.mark.parametrize("report", ["independent", "leverage"])
@pytest.mark.parametrize("fits", [30, pytest.param(150, marks=pytest.mark.slow)])
def test_reports_of_changes_cover(loss, report, fits):
    """Some rows of a family leave and others enter; the ends of the determinant term are certain."""
    X, y, ids = people(2, LOSSES[loss])
    some, leaves = ids < 100, np.arange(len(ids)) % 3 != 0
    table, asked = leaves | ~some, (X[some], y[some])
    who = {"groups": ids[some], "member": leaves[some]}
    plan = expost.calibrate(loss=loss, epsilon=3.0, delta=1e-2, l2=2.0, report=report)
    missed = {one: np.zeros(4, dtype=int) for one in CONFIDENCES}
    for seed in range(fits):
        release, private = research.draw(plan, X[table], y[table], random_state=seed)
        truth = research.losses(release, private, *asked, **who)
        for one in CONFIDENCES:
            found = research.bounds(release, *asked, confidence=one, **who)
            missed[one] += (truth.loss > found.upper) | (truth.loss < found.lower)
    for one in CONFIDENCES:
        assert np.all(missed[one] <= stats.binom.isf(1e-6 / 12, fits, 1 - one)), one


@pytest.mark.long
def test_a_report_for_some_of_her_rows_is_no_report_for_her():
    """Her surprising row is left out: what is shown for the other is below her loss in most runs."""
    rng = np.random.default_rng(5)
    X = np.tile([1.0, 0.0], (400, 1)) + np.column_stack([np.zeros(400), rng.normal(0, 0.05, 400)])
    X = np.vstack([X, [[1.0, 0.0], [0.0, 1.0]]])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.append(np.ones(400), [1.0, 0.0])
    ids = np.append(np.arange(400), [1000, 1000])
    plan = expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-6, l2=5.0, unit="person")
    short = whole = 0
    for seed in range(60):
        release, private = research.draw(plan, X, y, random_state=seed, groups=ids)
        hers = research.losses(release, private, X[-2:], y[-2:], member=True, groups=ids[-2:]).loss[0]
        part = research.bounds(release, X[-2:-1], y[-2:-1], member=True, groups=ids[-2:-1])
        every = research.bounds(release, X[-2:], y[-2:], member=True, groups=ids[-2:])
        short += hers > part.upper[0]
        whole += hers > every.upper[0]
    assert short > 15  # of 60, where 3 would be 5%
    assert whole <= stats.binom.isf(1e-6, 60, 0.05)


@pytest.mark.parametrize("unit", ["person", "row"])
def test_rows_that_repeat_count_once_but_for_families_at_corners(unit):
    """A row of no weight is as her first. At corners a family's noise depends on how much it weighs."""
    plan = expost.calibrate(loss="logistic", sigma=2.0, l2=2.0, unit=unit)
    release = Release(plan, np.zeros(2))
    corners = Corners(np.full(2, 0.1), np.full(2, -np.inf), np.full(2, np.inf))
    one, other, third = [0.1, 0.2], [0.3, 0.2], [0.1, 0.5]
    rows = np.array([[one, one, one], [one, other, one], [one, other, third], [third, other, third]])
    weights = np.array([[0.5, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.5, 0.5, 0.5]])
    known = (None, [1, 2, 3, 2]), (weights.ravel(), [1, 1, 2, 2]), (np.zeros(12), [1, 1, 1, 1])
    for given, counts in known:
        block = Block(rows.reshape(12, 2), np.zeros(12), given)
        assert rows_counted(release, block, 3).tolist() == counts
        counts = [3, 3, 3, 3] if unit == "row" else counts
        assert rows_counted(replace(release, corners=corners), block, 3).tolist() == counts


def test_what_a_record_weighs_in_its_unit():
    """Rows of a person share a weight of 1, which counts twice where some leave and others enter."""
    person, row = (
        expost.calibrate(loss="logistic", sigma=2.0, l2=2.0, unit=unit) for unit in ("person", "row")
    )
    assert [weight_of(person, 3), weight_of(person, 3, mixed=True)] == [1, 2]
    assert [weight_of(row, 3), weight_of(row, 3, mixed=True)] == [3, 3]


def test_a_choice_costs_every_row_of_a_family_also_those_that_nobody_remembers():
    """A promise to rows is one to each of them, and a promise to people holds for all rows of one."""
    choices = [
        Choice(candidates=(1.0, 2.0), place=0, epsilon=epsilon, unit=unit, id=name * 64)
        for epsilon, unit, name in ((0.25, "row", "a"), (0.5, "person", "b"), (0.25, "row", "a"))
    ]
    releases = [SimpleNamespace(choices=choices[:2]), SimpleNamespace(choices=choices[2:])]
    family = People(np.array([0, 0, 0, 1]), np.array(["f", "g"]))
    costs = {None: 0.75, family: [1.25, 0.75], replace(family, forgotten=2): [1.75, 1.25]}
    costs |= {replace(family, mixed=True): [1.75, 1.25], replace(family, named=False): 0.75}
    for people_of_it, cost in costs.items():
        found = spent_on_choices(releases, SimpleNamespace(people=people_of_it))
        np.testing.assert_allclose(found, cost, rtol=1e-14)
    assert spent_on_choices(releases) == 0.75


def test_who_only_enters_or_leaves_reads_the_noisy_gradient_with_that_sign():
    """With so much regularisation that no determinant counts, the ends are those of one answer for all."""
    scales = {"sigma": 1.0, "sigma_gradient": 1.0, "sigma_hessian": 1.0}
    plan = expost.calibrate(loss="logistic", report="dependent", l2=1e9, **scales)
    gradient, hessian = np.array([5.0, -3.0, 2.0]), 1e9 * np.eye(3)
    release = Release(replace(plan, precision=None), np.zeros(3), gradient=gradient, hessian=hessian)
    X, y, ids = people(6)
    X, y, ids, ends = X[:3], y[:3], ids[:3], {}
    for side in (True, False):
        changed = research.bounds(release, X, y, groups=ids, member=[side] * 3)
        whole = research.bounds(release, X, y, groups=ids, member=side)
        np.testing.assert_allclose(changed.upper, whole.upper, rtol=1e-6)
        np.testing.assert_allclose(changed.lower, whole.lower, rtol=1e-6, atol=1e-6)
        ends[side] = changed.upper
    assert np.all(np.abs(ends[True] - ends[False]) > 0.01)


def test_the_noise_across_her_direction_counts_twice_unless_it_is_bounded_in_every_direction():
    """Her direction is that of her gradient where all coefficients are zero, fixed before any noise."""
    rng = np.random.default_rng(9)
    X, y = rows_in_ball(rng, 12, 3), rng.integers(0, 2, 12).astype(float)
    plan = expost.calibrate(loss="logistic", sigma=2.0, l2=0.3, fit_intercept=False)
    release = Release(plan, np.array([3.0, -2.0, 1.0]))
    gradient, start = (
        (plan.loss.derivatives(scores, y)[0][:, None] * X).reshape(4, 3, 3).sum(axis=1)
        for scores in (X @ release.coefficients, np.zeros(12))
    )
    length = np.linalg.norm(gradient, axis=1)
    along = np.vecdot(gradient, start) / np.linalg.norm(start, axis=1)
    one, every = (
        records_of(release, Block(DenseRows.here(X), y, None), Scope(scope), 3) for scope in (None, "all")
    )
    np.testing.assert_allclose(one.steepness, np.sqrt(4.0 * length**2 - 3.0 * along**2), rtol=1e-12)
    np.testing.assert_allclose(every.steepness, length, rtol=1e-12)
    for records in (one, every):
        np.testing.assert_allclose(records.gradient_norm, length, rtol=1e-12)


def test_rows_that_leave_and_rows_that_enter_have_an_end_of_the_determinant_term_each():
    """Whatever the rest of the table is: rows that leave can make it smaller, and rows that enter larger."""
    rng = np.random.default_rng(8)
    X, y = rows_in_ball(rng, 12, 3, norm=2.0), rng.integers(0, 2, 12).astype(float)
    weights = np.tile([1.0, -0.5, -2.0], 4)
    plan = expost.calibrate(loss="logistic", sigma=2.0, l2=0.3, norm=2.0, fit_intercept=False, max_weight=2.0)
    release = Release(plan, np.array([0.5, -0.25, 1.0]))
    bends = np.abs(weights) * plan.loss.derivatives(X @ release.coefficients, y)[1]
    parts = (bends[:, None, None] * X[:, :, None] * X[:, None, :]).reshape(4, 3, 3, 3)
    enter, leave = parts[:, 0], parts[:, 1] + parts[:, 2]
    records = records_of(release, Block(DenseRows.here(X), y, weights), Scope(None), 3)
    determinant = Determinant(release, Shares.of("independent", 0.05), Scope(None))
    for member in (True, False):
        found = determinant.bound(records, member=member)
        np.testing.assert_allclose(found.low, -np.linalg.slogdet(np.eye(3) + enter / 0.3)[1], rtol=1e-10)
        np.testing.assert_allclose(found.high, np.linalg.slogdet(np.eye(3) + leave / 0.3)[1], rtol=1e-10)
        for size in (0.0, 0.1, 1.0, 10.0):
            others = 0.3 * np.eye(3) + size * X[:4].T @ X[:4]
            truth = np.linalg.slogdet(others + leave)[1] - np.linalg.slogdet(others + enter)[1]
            assert np.all((found.low <= truth) & (truth <= found.high))


def test_one_row_is_a_row():
    X, y, _ = people(3)
    plans = [expost.calibrate(loss="logistic", sigma=2.0, l2=2.0, unit=unit) for unit in ("row", "person")]
    alone = np.arange(len(X))
    release, _ = research.draw(plans[0], X, y, random_state=0)
    rows = research.bounds(release, X, y)
    families = research.bounds(release, X, y, groups=alone)
    np.testing.assert_allclose(families.upper, rows.upper, rtol=1e-12)
    np.testing.assert_allclose(families.total, rows.total, rtol=1e-12)


def publications(unit, count=3, **options):
    X, y, ids = people(4)
    plan = expost.calibrate(loss="logistic", epsilon=1.0, l2=5.0, fit_intercept=True, unit=unit, **options)
    groups = ids if unit == "person" else None
    models = [
        expost.LogisticRegression(plan=plan, classes=[0, 1], random_state=seed) for seed in range(count)
    ]
    return [model.fit(X, y, groups=groups) for model in models], X, y, ids


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"report": "dependent"}], ids=["model", "statistics"])
@pytest.mark.parametrize("unit", ["person", "row"])
def test_totals_of_several_publications_for_people(unit, options):
    models, X, y, ids = publications(unit, 4, **options)
    files = [model.publication_ for model in models]
    together = expost.total(files, X, y, groups=ids, confidence=0.9)
    added = sum(one.bounds(X, y, groups=ids, confidence=1 - 0.1 / 4).total for one in files)
    assert together.shape == (len(set(ids.tolist())),)
    # The plans decide in advance which of the two it is, so for some people it is the larger one.
    assert np.mean(together) < np.mean(added)
    assert np.any(together < 0.95 * added)
    # One person asked about alone, and among others, has the same total.
    first = ids == ids[3]
    alone = expost.total(files, X[first], y[first], groups=ids[first], confidence=0.9)
    place = list(dict.fromkeys(ids.tolist())).index(ids[3])
    np.testing.assert_allclose(alone, together[place], rtol=1e-12)
    if not options:
        truth = sum(model.ex_post_losses(X, y, groups=ids, return_terms=True).signed for model in models)
        surely = expost.total(files, X, y, groups=ids, confidence=1 - 1e-9, member=True)
        assert np.all(np.abs(truth) <= surely)


def test_totals_of_both_units_and_what_is_refused():
    models, X, y, ids = publications("person", 1)
    others, *_ = publications("row", 1)
    files = [models[0].publication_, others[0].publication_]
    assert len(expost.total(files, X, y, groups=ids)) == len(set(ids.tolist()))
    with pytest.raises(ExpostError, match="groups"):
        expost.total(files, X, y)
    with pytest.raises(ExpostError, match="groups"):
        files[0].bounds(X, y)


def test_unknown_weights_of_people_are_refused():
    X, y, ids = people(4)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=0)
    model.fit(X, y, sample_weight=np.full(len(X), 0.5), groups=ids)
    with pytest.raises(DomainError, match="`sample_weight` must be given for people"):
        model.publication_.bounds(X, y, groups=ids)
    with pytest.raises(DomainError, match="`sample_weight` must be given for people"):
        expost.total([model.publication_], X, y, groups=ids)
    assert len(model.publication_.bounds(X, y, sample_weight=np.full(len(X), 0.5), groups=ids).total)


def test_no_more_people_are_asked_about_than_are_covered_together():
    """People are counted, not their rows."""
    (model,), X, y, ids = publications("person", 1)
    bounds, count = model.publication_.bounds, len(set(ids.tolist()))
    assert count < len(ids)
    assert len(bounds(X, y, groups=ids, simultaneous=count).total) == count
    with pytest.raises(ParameterError, match="`simultaneous` must be at least the number of records"):
        bounds(X, y, groups=ids, simultaneous=count - 1)


def test_research_knows_people():
    X, y, ids = people(4)
    plan = expost.calibrate(loss="logistic", sigma=2.0, l2=2.0, unit="person")
    for ask in (
        lambda: research.draw(plan, X, y, random_state=0),
        lambda: research.imagine(plan, X, y, np.zeros(3)),
    ):
        with pytest.raises(ParameterError, match="groups"):
            ask()
    release, _ = research.draw(plan, X, y, random_state=0, groups=ids)
    with pytest.raises(ParameterError, match="single rows"):
        research.bounds(release, X, y, groups=ids, report=lambda *_, **__: None)


def test_a_person_who_leaves_and_enters_is_two_at_corners(monkeypatch):
    """Her gradient can be twice as long, and theorem 19.4 asks for the largest: the margin is that of two."""
    corner = {
        "unit": "person",
        "epsilon": 8.0,
        "norm": 1.0,
        "fit_intercept": False,
        "random_state": 0,
        "outcome": (-1, 1),
    }
    X, y, ids = people(5, labels=2)
    publication = expost.LinearRegression(l1=1e-3, **corner).fit(X, 2 * y - 1, groups=ids).publication_
    release, weights = publication.release, []
    plan = release.plan

    def product(*given, weight, **named):
        weights.append(weight)
        return inner_product(*given, weight=weight, **named)

    monkeypatch.setattr(sys.modules["expost.reports.evaluate"], "inner_product", product)
    for member in (True, [True, False]):
        publication.bounds([[-0.5, 0.8, 0.0], [0.5, 0.8, 0.0]], [0, 0], groups=[0, 0], member=member)
    assert weights == [1, 2]
    law, length = Across(2), plan.accounting.slope / plan.sigma
    reached = [noise_factors(release, Scope(None), 0.05, NO_DRIFT, law, weight).norm for weight in weights]
    # A share of 1/1024 is for what printing changes.
    wanted = [conditional_quantile(law, 0.05, weight * law.stretch * length) for weight in weights]
    np.testing.assert_allclose(reached, wanted, rtol=1e-3)
    assert reached[1] > 1.2 * reached[0]


def test_a_choice_costs_a_person_twice_who_leaves_and_enters():
    """The change of its scores has a range of up to 2: her exact loss can be above the promise to one."""
    asked = AskedRanges.from_toml(CHOSEN, 1.0)
    values = [30.0] + [39.0] * 19 + [50.0] * 60 + [90.0] * 20
    table = pd.DataFrame({"id": range(100), "x": values, "ill": ["no", "yes"] * 50})
    changed = table.assign(x=[70.0, *values[1:]])
    (end,) = asked.ends

    def logarithms(frame):
        exponents = [float(one) for one in end.exponents(asked.read(frame)[end.read_as].histogram(end))]
        return np.array(exponents) - np.logaddexp.reduce(exponents)

    (choice,) = choose_ranges(asked.ends, asked.read(table), random_state=0)
    model = expost.LogisticRegression(domain=asked.resolved([choice]), random_state=0).fit(table)
    rows = pd.concat([table[:1], changed[:1]])
    mixed = model.publication_.bounds(rows, groups=[0, 0], member=[True, False])
    whole = model.publication_.bounds(rows, groups=[0, 0], member=True)
    exact = np.abs(logarithms(table) - logarithms(changed))
    assert np.max(exact) > 1.3 * end.epsilon
    np.testing.assert_allclose(mixed.total - mixed.upper, 2.0 * end.epsilon, rtol=1e-12)
    np.testing.assert_allclose(whole.total - whole.upper, end.epsilon, rtol=1e-12)
