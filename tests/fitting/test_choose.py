"""Choices are drawn with the exact probabilities, and everyone's loss is the ratio of two of them."""

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import chi2

import expost
from expost.data import ranges
from expost.data.choices import ONE, Choice, RangeChoice, rounded_scores
from expost.data.ranges import Column, choice_losses, read_columns
from expost.exceptions import BudgetError, DomainError, ParameterError, PublicationError
from expost.fitting.choose import choose_ranges, draw
from expost.fitting.noise import ExactNoise, SeededNoise
from expost.privacy.choices import ChoicePlan

ALARM = 1e-6
SCORES = np.array([[0.0, 1.0, 0.25], [0.5, 0.5, 1.0], [1.0, 0.0, 0.125], [0.75, 0.25, 0.0]])


def softmax(exponents):
    weights = np.exp(np.array(exponents, dtype=float) - max(map(float, exponents)))
    return weights / weights.sum()


def sums_of(scores, epsilon=1.3):
    return softmax(epsilon * np.asarray(scores).sum(axis=0))


@pytest.mark.parametrize(
    "exponents",
    [(0, 0), (0, -1, -3), (Fraction(1, 3), Fraction(-7, 2), 2), (-100, Fraction(-1001, 10), -900)],
)
def test_the_draw_has_the_probabilities_of_the_exponents(exponents):
    for noise in (SeededNoise(4), SeededNoise(np.random.default_rng(5)), ExactNoise()):
        draws = Counter(draw([Fraction(one) for one in exponents], noise) for _ in range(1000))
        expected = 1000 * softmax(exponents)
        likely = expected > 1.0
        assert set(draws) <= set(np.flatnonzero(expected > 1e-4).tolist())
        statistic = sum((draws[j] - expected[j]) ** 2 / expected[j] for j in np.flatnonzero(likely).tolist())
        assert statistic < chi2.isf(ALARM, max(likely.sum() - 1, 1)) + 1e-6


def test_a_chosen_end_is_off_by_more_than_was_said_with_the_stated_probability_at_most():
    """Over tables at random, and nearly attained where all candidates but one are just so far off."""
    rng, grid = np.random.default_rng(0), tuple(map(float, range(41)))
    for level, epsilon in ((0.01, 0.05), (0.5, 0.3), (0.99, 1.0)):
        own = {"column": "a", "end": "high", "level": level, "candidates": grid, "id": "0" * 64}
        choice = RangeChoice(**own, epsilon=epsilon, place=0)
        most, worst = choice.missed_by(0.05), 0.0
        far = math.ceil(most)
        just = [10**5 * round(100 * level) - far, *[0] * 39, far, 10**5 * round(100 - 100 * level)]
        for cells in (just, *rng.integers(0, 40, (20, 42)).tolist()):
            weights = ONE * np.array([*cells, 0][:42])
            error = np.abs(np.cumsum(weights)[:41] - level * weights.sum()) / ONE
            off = softmax(choice.exponents(weights))[error > error.min() + most - 1e-6].sum()
            assert off <= 0.05
            worst = max(worst, off)
        assert worst > 0.03


def test_whole_numbers_are_drawn_evenly_below_any_bound():
    for noise in (ExactNoise(), SeededNoise(1)):
        assert {noise.below(1) for _ in range(5)} == {0}
        assert {noise.below(3) for _ in range(200)} == {0, 1, 2}  # misses with 3 (2/3)^200 < 1e-34
        assert all(0 <= noise.below(2**90 + 1) <= 2**90 for _ in range(50))


@pytest.mark.parametrize("place", range(3))
def test_exact_losses_are_ratios_of_probabilities_and_bounds_hold_them(place):
    choice = Choice(candidates=("a", "b", "c"), place=place, epsilon=1.3, id="0" * 64)
    losses, (low, high) = choice.ex_post_losses(SCORES), choice.bounds(SCORES)
    whole = sums_of(SCORES)[place]
    for record in range(len(SCORES)):
        without = sums_of(np.delete(SCORES, record, axis=0))[place]
        assert losses[record] == pytest.approx(math.log(whole / without), abs=1e-12)
    assert np.all((low <= losses) & (losses <= high))
    assert np.all(np.abs(losses) <= 1.3)


def test_every_neighbour_is_inside_the_profile_and_a_range_of_two_is_not():
    plan = ChoicePlan(1.3, 3)
    broken = 0.0
    for record in range(len(SCORES)):
        for at in np.linspace(0.0, 1.3, 14):
            for factor in (1.0, 2.0):
                one, other = (
                    sums_of(factor * table) for table in (SCORES, np.delete(SCORES, record, axis=0))
                )
                delta = max(
                    np.maximum(p - math.exp(at) * q, 0.0).sum() for p, q in ((one, other), (other, one))
                )
                if factor == 1.0:
                    assert delta <= plan.delta_at(at) + 1e-15
                else:
                    broken = max(broken, delta - plan.delta_at(at))
    assert broken > 0.01  # scores that nobody divided by their range


def test_scores_beyond_0_and_1_are_cut_so_that_nobody_counts_more():
    wild = np.array([[1e300, -1e300], [math.inf, 0.0], [0.2, 0.7]])
    choice = expost.choose(["a", "b"], wild, epsilon=2.0, random_state=0)
    tame = np.clip(wild, 0.0, 1.0)
    np.testing.assert_array_equal(choice.ex_post_losses(wild), choice.ex_post_losses(tame))
    assert np.all(np.abs(choice.ex_post_losses(wild)) <= 2.0)


def test_a_choice_is_what_its_file_says_and_a_seed_voids_it():
    choice = expost.choose([1, 2.5, "all"], np.tile([0.0, 1.0, 0.0], (500, 1)), epsilon=1.0)
    assert (choice.chosen, choice.insecure, choice.plan) == (2.5, False, ChoicePlan(1.0, 3))
    assert Choice.from_json(choice.to_json()) == choice
    seeded = expost.choose(np.array([0, 1]), np.zeros((3, 2)), epsilon=1.0, random_state=3)
    assert seeded.insecure
    assert "INSECURE" in str(seeded._summary().html())
    assert seeded.id != expost.choose([0, 1], np.zeros((3, 2)), epsilon=1.0, random_state=3).id


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"candidates": ["a"]}, "candidates"),
        ({"candidates": ["a", "a", "b"]}, "candidates"),
        ({"candidates": [None, 1, 2]}, "candidates"),
        ({"candidates": {"a", "b", "c"}}, "candidates"),  # in no order: whose column is whose?
        ({"candidates": "abc"}, "candidates"),
        ({"candidates": 3}, "candidates"),
        ({"scores": np.full((4, 3), math.nan)}, "scores"),
        ({"scores": np.zeros((4, 2))}, "scores"),
        ({"scores": np.zeros(3)}, "scores"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_arguments_of_choose_are_named(change, named):
    arguments = {"candidates": ["a", "b", "c"], "scores": SCORES, "epsilon": 1.0} | change
    with pytest.raises(ParameterError, match=f"^`{named}`"):
        expost.choose(**arguments)


SECRET = "hush17"


@pytest.mark.parametrize(
    "scores",
    [
        [[SECRET, 1.0, 0.0]],
        np.array([[SECRET, 1.0, 0.0]], dtype=object),
        [[0.5, 1.0, 0.0], [0.5]],
        [["0.5", "1", "0"]],
        np.array([[1 + 2j, 0, 0]]),
        np.array([[np.complex128(1 + 2j), 0, 0]], dtype=object),
        [[object(), 1.0, 0.0]],
    ],
)
def test_scores_that_are_no_numbers_are_refused_without_quoting_them(scores):
    choice = Choice(candidates=("a", "b", "c"), place=0, epsilon=1.0, id="0" * 64)
    uses = (
        lambda: expost.choose(["a", "b", "c"], scores, epsilon=1.0),
        lambda: choice.bounds(scores),
        lambda: choice.ex_post_losses(scores),
    )
    for use in uses:
        with pytest.raises(ParameterError, match=r"^`scores` must be numbers") as caught:
            use()
        assert caught.value.__cause__ is caught.value.__context__ is None  # neither has a cell


def test_scores_may_be_numbers_of_any_kind_and_their_count_is_not_said():
    for kind in (bool, np.int8, np.float32, object):
        scores = np.array([[1, 0], [0, 1]], dtype=kind)
        np.testing.assert_array_equal(rounded_scores(scores, 2), [[ONE, 0], [0, ONE]])
    with pytest.raises(ParameterError, match=r"got scores=\(2,\)\.$"):
        rounded_scores(np.zeros((1234567, 2)), 3)


def test_a_file_that_is_no_choice_is_refused_in_a_sentence():
    text = Choice(candidates=("a", 2, 2.5), place=0, epsilon=1.0, id="0" * 64).to_json()
    assert Choice.from_json(text.encode()).candidates == ("a", 2, 2.5)
    wrong = {
        text.replace('"place":0', '"place":-1'): "`place` must be greater than or equal to 0",
        text.replace('"place":0', '"place":3'): "cannot use this publication: `place` must be that of one of",
        text.replace('"place":0', '"place":0,"place":1'): "the key 'place' appears twice",
        text.replace('"place":0', '"place":0,"more":1'): "`more` is no field",
        text.replace("2.5", "NaN"): "numbers must be finite",
        text.replace("2.5", "true"): "`candidates",
        "[]": "one JSON object",
        "": "it is empty",
    }
    for changed, words in wrong.items():
        with pytest.raises(PublicationError, match=re.escape(words)) as caught:
            Choice.from_json(changed)
        assert "\n" not in str(caught.value)


def test_a_ledger_counts_choices_before_they_are_drawn(tmp_path):
    account = expost.Ledger(tmp_path / "ledger.db").account("table", epsilon=0.5, delta=1e-6)
    expost.choose(["a", "b", "c"], SCORES, epsilon=0.3, account=account)
    entry = account.entries[0]
    assert (entry.state, entry.epsilon, entry.delta) == ("finished", 0.3, 0.0)
    assert account.left == pytest.approx(0.2, abs=1e-3)
    with pytest.raises(BudgetError, match="these choices"):
        expost.choose(["a", "b", "c"], SCORES, epsilon=0.3, account=account)
    assert len(account.entries) == 1


@pytest.fixture
def account(tmp_path):
    return expost.Ledger(tmp_path / "ledger.db").account("table", epsilon=2.0, delta=1e-6)


@pytest.mark.parametrize(
    "candidates",
    [
        [math.nan, 1.0],
        [math.inf, 1.0],
        [True, False],
        ["a\ud800", 1],
        [[1], [2]],
        [10**50, 1],
        [10**5000, 1],
    ],
)
def test_candidates_that_no_file_holds_are_refused_before_anything_is_spent(candidates, account):
    with pytest.raises(ParameterError, match=r"^`candidates` must be texts or finite numbers"):
        expost.choose(candidates, np.zeros((4, 2)), epsilon=1.0, account=account)
    assert account.entries == ()


def test_an_account_of_a_choice_must_be_one():
    with pytest.raises(ParameterError, match=r"^`account` must be an account of"):
        expost.choose([0, 1], np.zeros((4, 2)), epsilon=1.0, account="x")


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), np.float32(0.25), 1])
def test_every_kind_of_number_is_an_epsilon_that_a_ledger_holds(epsilon, account):
    choice = expost.choose([0, 1], np.zeros((4, 2)), epsilon=epsilon, account=account)
    assert choice.epsilon == account.entries[0].epsilon == float(epsilon)


def test_a_choice_is_counted_by_its_name_when_it_is_drawn(account, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.fitting.choose.draw", stopped)
    with pytest.raises(KeyboardInterrupt):
        expost.choose([0, 1], np.zeros((4, 2)), epsilon=0.5, account=account)
    assert [entry.state for entry in account.entries] == ["finished"]
    assert len(account.entries[0].sha256) == 64


def test_no_ledger_that_fails_after_the_draw_loses_a_choice(account, monkeypatch):
    def failing(*_, **__):
        account.path.write_bytes(b"no ledger")
        return 1

    monkeypatch.setattr("expost.fitting.choose.draw", failing)
    assert expost.choose([0, 1], np.zeros((4, 2)), epsilon=0.5, account=account).chosen == 1


@pytest.mark.parametrize("name", ["in\tc", "a\u200bb", "x" * 2000])
def test_a_column_may_have_any_name_in_a_ledger(name, account):
    ends = [asked(column=name)]
    (found,) = choose_ranges(
        ends, {ends[0].read_as: Column(VALUES, np.full(len(VALUES), ONE), None)}, account=account
    )
    (entry,) = account.entries
    assert entry.note.startswith("range of ")
    assert entry.note.endswith(": low")
    assert entry.note.isprintable()
    assert entry.sha256 == found.id


# Ranges of columns: the score is a rank, which is no sum.

GRID = (0.0, 1.0, 2.0, 4.0, 8.0)


def asked(level=0.2, epsilon=1.5, **changes):
    fields = {"column": "x", "end": "low", "level": level, "candidates": GRID, "place": 0}
    return RangeChoice(**fields | {"epsilon": epsilon, "id": "0" * 64} | changes)


def ranked(values, weights, choice):
    """The probabilities by their definition."""
    below = np.array([sum(w for x, w in zip(values, weights, strict=True) if x <= g) for g in GRID])
    q = choice.level
    return softmax(-choice.epsilon * abs(below - q * sum(weights)) / (2 * max(q, 1 - q)))


VALUES = np.array([-3.0, 0.0, 0.5, 1.0, 1.0, 3.0, 8.0, 9.0, 2.0])


@pytest.mark.parametrize("level", [0.01, 0.2, 0.5, 0.99])
def test_the_losses_of_a_range_are_ratios_of_probabilities(level):
    column, ones = Column(VALUES, np.full(len(VALUES), ONE), None), np.ones(len(VALUES))
    for place in range(len(GRID)):
        choice = asked(level, place=place)
        exact = [float(one) for one in choice.exponents(column.histogram(choice))]
        np.testing.assert_allclose(softmax(exact), ranked(VALUES, ones, choice), rtol=1e-12)
        losses = column.losses(choice)
        for record in range(len(VALUES)):
            without = ranked(np.delete(VALUES, record), ones[1:], choice)[place]
            truth = math.log(ranked(VALUES, ones, choice)[place] / without)
            assert losses[record] == pytest.approx(truth, abs=1e-12)
        assert np.all(np.abs(losses) <= choice.epsilon)


def test_the_losses_of_a_range_are_the_same_however_many_cells_are_taken_at_a_time(monkeypatch):
    column, choice = Column(VALUES, np.full(len(VALUES), ONE), None), asked(0.2, place=1)
    whole = column.losses(choice)
    monkeypatch.setattr(ranges, "NUMBERS", 7)
    np.testing.assert_array_equal(column.losses(choice), whole)


@pytest.mark.parametrize("level", [0.01, 0.3, 0.99])
def test_no_table_exceeds_the_profile_of_a_range_and_one_without_its_factor_does(level):
    rng, choice = np.random.default_rng(3), asked(level)
    tables = [rng.choice(np.append(GRID, [-1.0, 9.0]), size=rng.integers(2, 9)) for _ in range(60)]
    # She is the lowest or the highest, and all others are on the other side of the quantile.
    tables.append(np.append(-1.0 if level < 0.5 else 9.0, np.full(300, 8.0 if level < 0.5 else 0.5)))
    beyond, widest, divided = 0.0, 0.0, 2 * max(level, 1 - level)
    for values in tables:
        ones = np.ones(len(values))
        for factor in (1.0, divided):  # the second divides by nothing
            tried = asked(level, epsilon=1.5 * factor)
            one, other = ranked(values, ones, tried), ranked(values[1:], ones[1:], tried)
            for at in (0.0, 0.5, 1.0, 1.4):
                sides = ((one, other), (other, one))
                delta = max(np.maximum(p - math.exp(at) * q, 0.0).sum() for p, q in sides)
                assert factor > 1.0 or delta <= choice.plan.delta_at(at) + 1e-15
            change = np.ptp(np.log(one / other))
            beyond = max(beyond, change) if factor > 1.0 else beyond
            widest = max(widest, change) if factor == 1.0 else widest
    assert 0.99 * choice.epsilon <= widest <= choice.epsilon * (1 + 1e-9)
    assert beyond >= 0.99 * divided * choice.epsilon


def test_the_losses_of_families_are_ratios_of_probabilities_without_all_of_their_rows():
    """Of a choice that promises to rows, whose each weighs what it does alone."""
    ids, ones = np.array([7, 3, 7, 3, 3, 1, 7, 2, 2]), np.ones(len(VALUES))
    for place in range(len(GRID)):
        choice = asked(place=place)
        losses = choice_losses({"x": VALUES}, [choice], person=ids)
        named = choice_losses({"x": VALUES, "home": ids}, [choice], person="home")
        np.testing.assert_array_equal(losses, named)
        for family, found in zip([7, 3, 1, 2], losses, strict=True):
            kept = ids != family
            without = ranked(VALUES[kept], ones[kept], choice)[place]
            assert found == pytest.approx(math.log(ranked(VALUES, ones, choice)[place] / without), abs=1e-12)


def test_the_losses_of_people_count_all_of_their_rows():
    ids = np.array(["a", "b", "a", "c", "d", "d", "d", "e", "f"])
    choice = asked(place=2, unit="person")
    column = read_columns({"x": VALUES, "id": ids}, [choice], person="id")[choice.read_as]
    counts = Counter(ids)
    weights = np.array([(ONE // counts[one]) / ONE for one in ids])
    losses = column.losses(choice)
    for number, one in enumerate(dict.fromkeys(ids)):
        left = ids != one
        truth = ranked(VALUES, weights, choice)[2] / ranked(VALUES[left], weights[left], choice)[2]
        assert losses[number] == pytest.approx(math.log(truth), abs=1e-12)
    assert np.all(np.abs(losses) <= choice.epsilon)


def test_a_range_is_found_in_a_large_table_and_missing_values_count_as_declared():
    values = np.concatenate([np.random.default_rng(6).uniform(0.99, 4.01, 40_000), [math.nan] * 10])
    ends = [asked(0.01, 0.5, end="low", missing=2.0), asked(0.99, 0.5, end="high", missing=2.0)]
    columns = read_columns({"x": values}, ends)
    low, high = choose_ranges(ends, columns)
    assert (low.chosen, high.chosen) == (1.0, 4.0)
    with pytest.raises(DomainError, match=r"^`x` is missing"):
        read_columns({"x": values}, [asked()])
    with pytest.raises(DomainError, match=r"^`x` must be a number"):
        read_columns({"x": np.array(["one", "2"])}, [asked()])
    with pytest.raises(DomainError, match="lacks the column 'y'"):
        read_columns({"x": values}, [asked(column="y")])
    with pytest.raises(DomainError, match="data frame"):
        read_columns(values, [asked()])


@pytest.mark.parametrize(
    "change",
    [{"candidates": (1.0,)}, {"candidates": (0.0, 0.0)}, {"level": 0.0005}, {"place": 5}, {"id": "x"}],
)
def test_a_range_that_is_none_is_refused(change):
    with pytest.raises(ValidationError):
        asked(**change)
