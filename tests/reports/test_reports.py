"""The terms of the intervals, and how they compare."""

from dataclasses import replace

import numpy as np
import pytest
from grids import grid
from oracle import Problem
from problems import CASES, linear_records, rows_in_ball, with_intercept

from expost.data.choices import Choice
from expost.data.rows import DenseRows
from expost.exceptions import ParameterError
from expost.privacy.scales import REPORT_KINDS, NoiseScales
from expost.reports import evaluate
from expost.reports.base import Bounds, Interval, Scope
from expost.reports.evaluate import _counted, streamed_figures, sum_of_terms

KINDS = ("independent", "leverage", "dependent", "adaptive")
BOUNDED = [case for case in CASES if np.isfinite(case.loss.curve.max_slope)]


def problem(report, case=BOUNDED[0], seed=0, n=300, d=4, **changes):
    rng = np.random.default_rng(seed)
    X, y = rows_in_ball(rng, n, d), case.labels(rng, n)
    return Problem(X, y, n - 50, case.loss, report=report, **{"epsilon": 1.0, "l2": 4.0, **changes})


def bounds(made, release, *, member=None, side=True, **options):
    return evaluate(release, made.design[side].labelled(made.y[side]), member=member, **options)


@pytest.mark.parametrize(("case", "report"), grid(BOUNDED, KINDS), ids=str)
def test_the_true_loss_lies_inside_at_overwhelming_confidence(case, report):
    """At a failure probability of 1e-12 per record a miss is a bug, not chance."""
    made = problem(report, case)
    for seed in range(5):
        release, private = made.fit(seed)
        for side in (True, False):
            model = np.abs(made.model_loss(private, member=side))
            total = np.abs(made.total_loss(release, private, member=side))
            for member in (side, None):
                got = bounds(made, release, member=member, side=side, confidence=1 - 1e-12)
                assert np.all((got.lower <= model) & (model <= got.upper))
                assert np.all(total <= got.total)


def test_without_statistics_the_determinant_term_is_the_public_bound():
    """MATH: log(1 + κ‖x‖²/λ), for every λ."""
    made = problem("independent", l2=0.5)
    release, _ = made.fit(0)
    release = replace(release, plan=replace(release.plan, precision=None))
    rows = with_intercept(made.X[True], True)
    slope, curvature = made.loss.derivatives(rows @ release.coefficients, made.y[True])
    norm = np.linalg.norm(rows, axis=1)
    quantile = 1.959963984540054
    expected = np.log1p(curvature * norm**2 / 0.5)
    expected += 0.5 * (slope * norm / release.plan.sigma) ** 2
    expected += np.abs(slope) * norm * quantile / release.plan.sigma
    np.testing.assert_allclose(bounds(made, release, member=True).upper, expected, rtol=1e-10)


@pytest.mark.parametrize("simultaneous", [None, 300, "all"])
def test_printed_numbers_widen_an_interval_by_a_fraction_of_a_percent(simultaneous):
    """The printed coefficients are not the exact minimiser; the reading pays for that, and little."""
    for report in KINDS:
        made = problem(report)
        release, _ = made.fit(0)
        real = replace(release, plan=replace(release.plan, precision=None))
        options = {"member": None, "simultaneous": simultaneous}
        printed, exact = bounds(made, release, **options), bounds(made, real, **options)
        for name in ("upper", "total"):
            ratio = getattr(printed, name) / getattr(exact, name)
            assert np.all(ratio > 1.0)
            assert np.all(ratio < 1.01)
        assert np.all(printed.lower <= exact.lower)


def test_a_precise_hessian_gives_the_exact_determinant_term():
    """As the noise goes to zero the interval converges to the truth, for members and others."""
    made = problem("leverage", sigma=4.0, sigma_hessian=1e-7)
    release, private = made.fit(0)
    from expost.reports.base import Scope, Shares
    from expost.reports.intervals import Determinant

    for side in (True, False):
        rows = with_intercept(made.X[side], True)
        slope, curvature = made.loss.derivatives(rows @ release.coefficients, made.y[side])
        records = linear_records(rows, slope, curvature)
        interval = Determinant(release, Shares.of("leverage", 0.05), Scope(None)).bound(records, member=side)
        leverage = curvature * np.sum(rows * np.linalg.solve(private.hessian, rows.T).T, axis=1)
        truth = -np.log1p(-leverage) if side else -np.log1p(leverage)
        np.testing.assert_allclose(interval.low, truth, rtol=1e-5)
        np.testing.assert_allclose(interval.high, truth, rtol=1e-5)
        rounding = 1e-12 * np.abs(truth)
        assert np.all((interval.low <= truth + rounding) & (truth - rounding <= interval.high))
        assert np.all(interval.low < interval.high)


@pytest.mark.parametrize(
    ("report", "member", "simultaneous"), grid(KINDS[1:], [True, False, None], [None, 300, "all"])
)
def test_statistics_cost_no_more_than_their_share_of_the_confidence(report, member, simultaneous):
    """The bound is never above the independent report's at the confidence that remains for it."""
    made = problem(report)
    share = REPORT_KINDS[report].failure_shares["tilt"]
    for seed in range(10):
        release, _ = made.fit(seed)
        plain = replace(
            release,
            plan=replace(release.plan, report="independent", scales=NoiseScales(release.plan.sigma)),
            gradient=None,
            hessian=None,
            eigenvalue=None,
        )
        for failure in (0.2, 0.05, 1e-4):
            got = bounds(made, release, member=member, confidence=1 - failure, simultaneous=simultaneous)
            alone = bounds(
                made, plain, member=member, confidence=1 - failure * share, simultaneous=simultaneous
            )
            assert np.all(got.upper <= alone.upper * (1 + 1e-9))


@pytest.mark.parametrize("report", KINDS)
def test_stronger_claims_have_wider_intervals(report):
    """Wider with confidence, with more records at once, and with unknown membership."""
    made = problem(report)
    release, _ = made.fit(3)
    low, high = bounds(made, release, confidence=0.9), bounds(made, release, confidence=0.999)
    one, many = bounds(made, release), bounds(made, release, simultaneous=1000)
    everyone = bounds(made, release, simultaneous="all")
    inside, outside = bounds(made, release, member=True), bounds(made, release, member=False)
    for narrow, wide in ((low, high), (one, many), (one, everyone), (inside, one), (outside, one)):
        assert np.all(narrow.upper <= wide.upper)
        assert np.all(narrow.lower >= wide.lower)
        assert np.all(narrow.total <= wide.total)
        assert np.all(narrow.report_cost <= wide.report_cost)
    np.testing.assert_array_equal(one.upper, np.maximum(inside.upper, outside.upper))
    np.testing.assert_array_equal(one.lower, np.minimum(inside.lower, outside.lower))
    if report == "independent":
        assert not np.any(one.report_cost)
        np.testing.assert_array_equal(one.total, one.upper)
    else:
        assert np.all(one.report_cost > 0)
        assert np.all(one.total > one.upper)


@pytest.mark.long
def test_soundness_needs_no_condition_on_the_regularisation():
    """The paper's report demands λ ≥ 2σ₃τ; ours holds far below, where the noisy Hessian is indefinite."""
    made = problem(
        "adaptive", n=80, sigma=1.0, sigma_gradient=1.0, sigma_hessian=5.0, sigma_eigenvalue=5.0, l2=0.05
    )
    indefinite = 0
    for seed in range(30):
        release, private = made.fit(seed)
        indefinite += np.linalg.eigvalsh(release.hessian)[0] < 0
        for side in (True, False):
            got = bounds(made, release, member=side, side=side, confidence=1 - 1e-12)
            truth = np.abs(made.model_loss(private, member=side))
            assert np.all((got.lower <= truth) & (truth <= got.upper) & np.isfinite(got.upper))
    assert indefinite > 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence": 1.0}, "`confidence` must be a number with 0 < confidence < 1"),
        ({"confidence": 0.0}, "`confidence`"),
        ({"simultaneous": 0}, "`simultaneous` must be a whole number of at least 1"),
        ({"simultaneous": "some"}, "`simultaneous` must be None, a number of records or 'all'"),
        ({"simultaneous": 249}, "records that are asked about; got simultaneous=249"),
        ({"member": "yes"}, "`member` must be a truth value, or one for each row"),
    ],
)
def test_bad_options_are_refused(options, words):
    made = problem("independent")
    release, _ = made.fit(0)
    with pytest.raises(ParameterError, match=words):
        evaluate(release, made.design[True].labelled(made.y[True]), **options)


def test_private_choices_are_paid_for_in_the_total_alone():
    made = problem("independent", sigma=4.0)
    release, _ = made.fit(0)
    choices = tuple(
        Choice(candidates=(1.0, 2.0), place=0, epsilon=epsilon, id=name * 64)
        for epsilon, name in ((0.25, "a"), (0.5, "b"))
    )
    plain, chosen = bounds(made, release), bounds(made, replace(release, choices=choices))
    np.testing.assert_allclose(chosen.total, plain.total + 0.75, rtol=1e-14)
    for name in ("lower", "upper", "report_cost"):
        np.testing.assert_array_equal(getattr(chosen, name), getattr(plain, name))


def test_as_many_records_as_are_covered_can_be_asked_about():
    """Each gets its share of the failure probability, so asking about fewer of them changes no figure."""
    made = problem("leverage")
    release, _ = made.fit(0)
    together = bounds(made, release, simultaneous=250)
    few = evaluate(release, made.design[False].labelled(made.y[False]), simultaneous=250)
    apart = evaluate(
        release, made.design[False].labelled(made.y[False]), confidence=1 - 0.05 / 250, member=None
    )
    assert len(together.total) == 250
    assert len(few.total) == 50
    # The Hessian's event is one for all records, so only the rest of the failure probability is shared.
    assert np.all(few.upper <= apart.upper)


def test_too_many_records_are_refused_before_any_is_read_where_their_number_is_known():
    made = problem("independent", sigma=4.0)
    release, _ = made.fit(0)
    with pytest.raises(ParameterError, match="at least the number of records"):
        streamed_figures(release, made.records(True), simultaneous=249)
    with pytest.raises(ParameterError, match="at least the number of records"):
        list(_counted(iter([next(streamed_figures(release, made.records(True)))] * 2), Scope(499)))


@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_a_record_has_the_same_figures_however_many_are_read_at_a_time(report, monkeypatch, remembered):
    made = problem(report)
    release, _ = made.fit(0)
    whole = bounds(made, release)
    monkeypatch.setitem(DenseRows.here.__globals__, "_ROOM", 100)
    for figure, other in zip(bounds(made, release).figures, whole.figures, strict=True):
        np.testing.assert_allclose(figure, other, rtol=1e-12)


@pytest.mark.parametrize("simultaneous", [None, 300, "all"])
def test_bounds_say_how_sure_they_are_and_of_what(simultaneous):
    made = problem("independent")
    release, _ = made.fit(0)
    found = bounds(made, release, confidence=0.9, simultaneous=simultaneous)
    assert found.confidence == pytest.approx(0.9, rel=1e-14)
    assert found.scope == Scope(simultaneous)
    for usual in (bounds(made, release), Bounds(*found.figures)):
        assert usual.confidence == pytest.approx(0.95, rel=1e-14)


def test_no_more_records_than_a_trillion_are_covered_together():
    assert Scope.of(10**12).each(0.5) == pytest.approx(5e-13, rel=1e-14)
    with pytest.raises(ParameterError, match="`simultaneous` must be at most 1e12"):
        Scope.of(10**12 + 1)


def test_what_a_confidence_is_about_is_said():
    said = {None: "a record fixed before the publication", 7: "7 records at once"}
    for simultaneous, words in (said | {"all": "all possible records at once"}).items():
        assert Scope(simultaneous).sentence(0.9).endswith(f"with confidence 0.9, for {words}.")


def test_where_a_term_is_beyond_doubles_nothing_is_known_and_nothing_is_a_plain_zero():
    none = np.zeros(1)
    with np.errstate(invalid="ignore"):
        found = sum_of_terms(Interval(none, none), np.array([np.inf]), Interval(none, none))
    assert (found.low[0], found.high[0]) == (0.0, np.inf)
    found = sum_of_terms(Interval(-none, none), none, Interval(-none, none))
    assert (found.low[0], found.high[0]) == (0.0, 0.0)
    assert not np.signbit(found.high[0])


def test_terms_that_may_vanish_reach_to_zero_from_both_sides():
    """A term that is surely positive, or surely negative, is not when its weight is unknown."""
    ends = {"positive": (0.25, 0.75), "negative": (-3.0, -2.0), "both": (-0.5, 0.125)}
    sure = {name: Interval(np.array([low]), np.array([high])) for name, (low, high) in ends.items()}
    for one, other in (("positive", "negative"), ("negative", "both"), ("both", "positive")):
        found = sum_of_terms(sure[one], np.array([0.5]), sure[other], each_may_vanish=True)
        low = min(ends[one][0], 0.0) + min(ends[other][0], 0.0)
        high = max(ends[one][1], 0.0) + max(ends[other][1], 0.0) + 0.5
        assert found.low[0] == 0.0
        assert found.high[0] == pytest.approx(max(high, -low), rel=1e-10)
    known = sum_of_terms(sure["positive"], np.array([0.5]), sure["both"])
    assert known.low[0] == pytest.approx(0.25 + 0.5 - 0.5, rel=1e-10)
    # Nothing below is known of one that is surely positive either.
    positive = sum_of_terms(sure["positive"], np.array([0.0]), sure["positive"], each_may_vanish=True)
    assert positive.low[0] == 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_interval_is_widened_by_a_share_of_every_term(sign, monkeypatch):
    """By as much as rounding could move the sum of the terms, whatever signs they have."""
    monkeypatch.setitem(sum_of_terms.__globals__, "SLACK", 0.01)
    one, other = Interval(np.array([-0.5]), np.array([0.25])), Interval(np.array([-2.0]), np.array([4.0]))
    determinant, product = (one, other) if sign > 0.0 else (other, one)
    found = sum_of_terms(determinant, np.array([0.125]), product)
    widened = 0.01 * (0.5 + 0.25 + 2.0 + 4.0 + 0.125)
    assert found.high[0] == pytest.approx(0.25 + 4.0 + 0.125 + widened, abs=1e-15)
    assert found.low[0] == 0.0
