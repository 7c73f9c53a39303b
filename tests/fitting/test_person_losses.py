"""Exact losses of people and of families against brute-force ratios of densities."""

import numpy as np
import pytest
from problems import CASES, gradient_and_hessian, rows_in_ball, with_intercept
from test_vector_objective import written_out

import expost
from expost import research
from expost.data.people import People
from expost.exceptions import ExpostError
from expost.losses import SoftmaxLoss

SIGMA, L2, D = 1.3, 0.6, 3
# How many rows each person has: one, a few, as many as coefficients, and more; and who is asked about.
ROWS = (1, 2, 3, 4, 6, 9, 1, 2)


def table(seed, labels):
    """Rows of people that are not sorted, and those of five others who were not there."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(ROWS)), ROWS)
    order = rng.permutation(len(ids))
    ids = ids[order]
    X, y = rows_in_ball(rng, len(ids), D), labels(rng, len(ids))
    return X, y, np.array([f"person {one}" for one in ids])


def shares(ids, rows_per_person=None):
    """The weight of each row, from the definition."""
    counts = {one: max(int(np.sum(ids == one)), rows_per_person or 1) for one in ids}
    return np.array([1.0 / counts[one] for one in ids])


def in_order(ids):
    return list(dict.fromkeys(ids.tolist()))


def ratio(density, weights, keep, member):
    """The log ratio of the densities of the actual table and its neighbour, with rows of weight zero."""
    with_her, without = density(weights), density(np.where(keep, 0.0, weights))
    return with_her - without if member else without - with_her


@pytest.mark.long
@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_losses_are_the_ratio_of_densities(case, unit):
    X, y, ids = table(3, case.labels)
    plan = expost.calibrate(loss=case.loss, sigma=SIGMA, l2=L2, unit=unit)
    theta = np.random.default_rng(4).normal(size=D)
    weights = shares(ids) if unit == "person" else np.ones(len(ids))

    def density(weights):
        gradient, hessian = gradient_and_hessian(case, X, y, theta, l2=L2, weights=weights)
        return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]

    everybody = {} if unit == "row" else {"groups": ids}
    release, private = research.imagine(plan, X, y, theta, **everybody)
    found = research.losses(release, private, X, y, member=True, groups=ids)
    assert found.people.tolist() == in_order(ids)
    truth = [ratio(density, weights, ids == one, True) for one in in_order(ids)]
    np.testing.assert_allclose(found.signed, truth, rtol=1e-10, atol=1e-10)
    # Each of them as an outsider of a table without her.
    for one, expected in zip(in_order(ids), truth, strict=True):
        hers = ids == one
        rest = {} if unit == "row" else {"groups": ids[~hers]}
        _, others = research.imagine(plan, X[~hers], y[~hers], theta, **rest)
        got = research.losses(release, others, X[hers], y[hers], member=False, groups=ids[hers])
        np.testing.assert_allclose(got.signed, [-expected], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("cap", [1.0, 0.6])
def test_losses_of_three_classes(cap, unit):
    loss = SoftmaxLoss(3, cap)
    X, y, ids = table(5, lambda rng, n: rng.integers(0, 3, n).astype(float))
    plan = expost.calibrate(loss=loss, sigma=SIGMA, l2=L2, unit=unit)
    theta = np.random.default_rng(6).normal(size=2 * D)
    weights = shares(ids) if unit == "person" else np.ones(len(ids))

    def density(weights):
        gradient, hessian = 0.0, 0.0
        for row, label, weight in zip(X, y, weights, strict=True):
            one = written_out(loss, row[None, :], np.array([label]), theta, 0.0)
            gradient, hessian = gradient + weight * one[0], hessian + weight * one[1]
        gradient, hessian = gradient + L2 * theta, hessian + L2 * np.eye(len(theta))
        return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]

    everybody = {} if unit == "row" else {"groups": ids}
    release, private = research.imagine(plan, X, y, theta, **everybody)
    found = research.losses(release, private, X, y, member=True, groups=ids)
    truth = [ratio(density, weights, ids == one, True) for one in in_order(ids)]
    np.testing.assert_allclose(found.signed, truth, rtol=1e-10, atol=1e-10)


def changes(seed, labels):
    """A table, and families of its rows and of others that may enter it: all rows, whose, and who leaves."""
    X, y, ids = table(seed, labels)
    others, their_labels, _ = table(seed + 100, labels)
    member = np.append(np.ones(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool))
    rng = np.random.default_rng(seed)
    entering = rng.choice(np.append(in_order(ids), "somebody new"), len(ids))
    order = rng.permutation(2 * len(ids))
    both = np.vstack([X, others]), np.append(y, their_labels), np.append(ids, entering), member
    return X, y, ids, tuple(part[order] for part in both)


def change_of(density, asked, one, unit):
    """The log ratio of densities of the table and of that with a family's change, by weights of all rows."""
    _, _, groups, member = asked
    hers = groups == one
    before, after = np.where(member, 1.0, 0.0), np.where(member ^ hers, 1.0, 0.0)
    if unit == "person":
        for weights in (before, after):
            counts = {who: np.sum(weights[groups == who]) for who in in_order(groups)}
            weights /= np.array([max(counts[who], 1.0) for who in groups])
    return density(before) - density(after)


@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("case", [*CASES, SoftmaxLoss(3), SoftmaxLoss(3, 0.6)], ids=str)
def test_changes_in_which_some_leave_and_others_enter(case, unit):
    """From one row to many more than coefficients, of whom any number leaves and any number enters."""
    several = isinstance(case, SoftmaxLoss)
    loss, outputs = (case, 2) if several else (case.loss, 1)
    labels = (lambda rng, n: rng.integers(0, 3, n).astype(float)) if several else case.labels
    X, y, ids, asked = changes(21, labels)
    plan = expost.calibrate(loss=loss, sigma=SIGMA, l2=L2, unit=unit)
    theta = np.random.default_rng(22).normal(size=outputs * D)

    def of_row(row, label):
        row, label = row[None, :], np.array([label])
        if several:
            return written_out(loss, row, label, theta, 0.0)
        return gradient_and_hessian(case, row, label, theta, l2=0.0)

    gradients, hessians = map(np.array, zip(*map(of_row, *asked[:2]), strict=True))

    def density(weights):
        gradient = L2 * theta + weights @ gradients
        hessian = L2 * np.eye(len(theta)) + np.tensordot(weights, hessians, 1)
        return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]

    everybody = {} if unit == "row" else {"groups": ids}
    release, private = research.imagine(plan, X, y, theta, **everybody)
    found = research.losses(release, private, *asked[:2], member=asked[3], groups=asked[2])
    truth = [change_of(density, asked, one, unit) for one in in_order(asked[2])]
    np.testing.assert_allclose(found.signed, truth, rtol=1e-10, atol=1e-10)
    # All that leave, and all that enter, are what one truth value says of them.
    for member in (True, False):
        some = asked[3] == member
        here = (*(part[some] for part in asked[:2]),)
        one = research.losses(release, private, *here, member=member, groups=asked[2][some])
        rows = research.losses(release, private, *here, member=asked[3][some], groups=asked[2][some])
        np.testing.assert_allclose(rows.signed, one.signed, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("rows_per_person", [None, 4])
def test_changes_with_weights_and_a_declared_number_of_rows(rows_per_person):
    case = CASES[0]
    rows, labels, groups, member = changes(23, case.labels)[3]
    weights = np.random.default_rng(24).random(len(groups))
    plan = expost.calibrate(loss="logistic", sigma=SIGMA, l2=L2, unit="person", fit_intercept=True)
    model = expost.LogisticRegression(
        plan=plan, classes=[0, 1], rows_per_person=rows_per_person, random_state=1
    ).fit(rows[member], labels[member], sample_weight=weights[member], groups=groups[member])
    theta, A = np.append(model.coef_, model.intercept_), with_intercept(rows, True)

    def density(here):
        counted = np.zeros(len(groups))
        counted[here] = weights[here] * shares(groups[here], rows_per_person)
        gradient, hessian = gradient_and_hessian(case, A, labels, theta, l2=L2, weights=counted)
        return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]

    found = model.ex_post_losses(
        rows, labels, sample_weight=weights, groups=groups, member=member, return_terms=True
    )
    truth = [density(member) - density(member ^ (groups == one)) for one in in_order(groups)]
    np.testing.assert_allclose(found.signed, truth, rtol=1e-10, atol=1e-10)


def test_who_leaves_is_said_for_every_row_or_for_all():
    X, y, ids = table(25, CASES[0].labels)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, y)
    leaves = np.arange(len(X)) % 2 == 0
    for member, groups, reason in (
        (leaves, None, "one truth value for all rows"),
        (leaves[1:], ids, "another length"),
        (leaves.astype(int), ids, "got something else"),
        ("yes", ids, "got something else"),
    ):
        for ask in (model.ex_post_losses, model.publication_.bounds):
            with pytest.raises(ExpostError, match=f"`member` must .*{reason}"):
                ask(X, y, member=member, groups=groups)
    with pytest.raises(ExpostError, match="of whom no row is `forgotten`"):
        model.publication_.bounds(X, y, member=leaves, groups=ids, forgotten=1)


@pytest.mark.parametrize("rows_per_person", [None, 4])
def test_losses_with_weights_and_a_declared_number_of_rows(rows_per_person):
    case = CASES[0]
    X, y, ids = table(7, case.labels)
    weights = np.random.default_rng(8).random(len(ids))
    plan = expost.calibrate(loss="logistic", sigma=SIGMA, l2=L2, unit="person", fit_intercept=True)
    model = expost.LogisticRegression(
        plan=plan, classes=[0, 1], rows_per_person=rows_per_person, random_state=1
    ).fit(X, y, sample_weight=weights, groups=ids)
    theta, A = np.append(model.coef_, model.intercept_), with_intercept(X, True)

    def density(weights):
        gradient, hessian = gradient_and_hessian(case, A, y, theta, l2=L2, weights=weights)
        return -gradient @ gradient / (2 * SIGMA**2) + np.linalg.slogdet(hessian)[1]

    found = model.ex_post_losses(X, y, sample_weight=weights, groups=ids, return_terms=True)
    every = weights * shares(ids, rows_per_person)
    truth = [ratio(density, every, ids == one, True) for one in in_order(ids)]
    np.testing.assert_allclose(found.signed, truth, rtol=1e-10, atol=1e-10)


@pytest.mark.long
def test_losses_of_people_of_a_convex_model():
    rng = np.random.default_rng(9)
    records, ids = rng.normal(0.2, 0.2, size=(40, 2)), rng.integers(0, 12, 40)
    model = expost.ConvexModel(loss=expost.SmoothedNorm(2), unit="person", random_state=0)
    model.fit(records, groups=ids)
    everyone = model.ex_post_losses(records, groups=ids)
    assert len(everyone) == len(set(ids.tolist()))
    assert model.bounds(records, groups=ids, confidence=1 - 1e-9).upper.shape == everyone.shape
    assert np.all(everyone <= model.bounds(records, groups=ids, confidence=1 - 1e-9, member=True).upper)


@pytest.mark.parametrize("rows", [2, 4, 5, 10])
@pytest.mark.parametrize("loss", ["logistic", SoftmaxLoss(3), "pseudo_huber"], ids=str)
def test_identical_rows_are_one_row(loss, rows):
    rng = np.random.default_rng(11)
    X = rows_in_ball(rng, 12, D)
    y = rng.integers(0, 2, 12).astype(float)
    plan = expost.calibrate(loss=loss, sigma=SIGMA, l2=1.0, unit="person")
    theta = rng.normal(size=D * plan.loss.outputs)
    once = np.arange(12)
    often = np.repeat(once, np.where(once == 3, rows, 1))

    def losses(at):
        drawn = research.imagine(plan, X[at], y[at], theta, groups=at)
        return research.losses(*drawn, X[at], y[at], member=True, groups=at)

    alone, several = losses(once), losses(often)
    np.testing.assert_allclose(several.signed, alone.signed, rtol=1e-12, atol=1e-12)


def test_the_sum_of_the_losses_of_rows_is_no_substitute():
    X, y, ids = table(3, CASES[0].labels)
    plan = expost.calibrate(loss="logistic", sigma=SIGMA, l2=L2)
    theta = np.random.default_rng(4).normal(size=D)
    release, private = research.imagine(plan, X, y, theta)
    family = research.losses(release, private, X, y, member=True, groups=ids).loss
    rows = research.losses(release, private, X, y, member=True).loss
    added = np.bincount(People.of(ids).codes, weights=rows)
    assert np.any(added < 0.9 * family) or np.any(added > 1.1 * family)


def test_shares_never_sum_to_more_than_one():
    for rows in range(1, 200):
        share = People.alone(rows).shares(None)
        assert np.sum(share, dtype=np.longdouble) <= 1.0 < np.sum(share, dtype=np.longdouble) + 1e-12
    assert People.alone(3).shares(12).tolist() == [np.nextafter(1 / 12, 0.0)] * 3
    assert People.alone(20).shares(12).tolist() == [np.nextafter(1 / 20, 0.0)] * 20


LAYOUTS = {
    "doubles": lambda X: X,
    "floats": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "whole numbers": lambda X: np.round(3.0 * X).astype(np.int16),
}


@pytest.mark.long
@pytest.mark.parametrize("columns", [3, 70])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_kernels_and_numpy_agree(layout, columns, monkeypatch):
    """People with one row and with more rows than kernels take, of any layout, members and outsiders."""
    rng = np.random.default_rng(12)
    ids = rng.permutation(np.repeat(np.arange(45), np.arange(45) % 40 + 1))
    X = LAYOUTS[layout](rng.normal(size=(len(ids), columns)))
    y, weights = rng.integers(0, 2, len(ids)), rng.random(len(ids))
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=0)
    model.fit(X, y, groups=ids, sample_weight=weights)

    def terms(member):
        return model.ex_post_losses(X, y, groups=ids, sample_weight=weights, member=member, return_terms=True)

    for member in (True, False):
        with monkeypatch.context() as patched:
            patched.setattr("expost._common.kernels.library", lambda: None)
            by_numpy = terms(member)
        for name in ("determinant", "quadratic", "inner_product"):
            found, expected = getattr(terms(member), name), getattr(by_numpy, name)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_determinants_beyond_doubles_have_their_logarithm():
    """A family that is nearly all of the curvature: the product of its pivots is no double."""
    rng = np.random.default_rng(13)
    X, y, family, l2 = np.eye(30), rng.integers(0, 2, 30), np.zeros(30, dtype=int), 1e-12
    plan = expost.calibrate(loss="logistic", sigma=1.0, l2=l2)
    theta = rng.normal(size=30)
    truth = np.sum(np.log1p(np.exp(theta) / (1.0 + np.exp(theta)) ** 2 / l2))
    release, private = research.imagine(plan, X, y, theta)
    gone = research.losses(release, private, X, y, member=True, groups=family)
    np.testing.assert_allclose(gone.determinant, [truth], rtol=1e-4)  # one less what is nearly one
    _, nobody = research.imagine(plan, 0.0 * X, y, theta)
    come = research.losses(release, nobody, X, y, member=False, groups=family)
    np.testing.assert_allclose(come.determinant, [-truth], rtol=1e-13)
