"""Budgets chosen on the way: the divergences of pairs that are known, their sum, and what it promises."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from mpmath import mp, mpf

from expost.exceptions import ParameterError
from expost.privacy import renyi
from expost.privacy.adaptive import AdaptiveComposition, curve_divergence, filter_order
from expost.privacy.profile_curve import ProfileCurve

ORDERS = (1.5, 2.0, 5.0, 40.0)


def hockey_stick(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def pair(seed, lost=0.0):
    """Two laws on six outcomes, and one more for either that the other cannot have."""
    rng = np.random.default_rng(seed)
    first, second = (rng.dirichlet(np.full(6, 5.0)) * (1.0 - lost) for _ in range(2))
    return np.append(first, [lost, 0.0]), np.append(second, [0.0, lost])


def curve(first, second):
    """The two profiles with knots at all losses: between them they are straight in exp(epsilon)."""
    losses = np.log(first[:6] / second[:6])

    def knots(one, other, some):
        places = [0.0, *sorted(some[some > 0.0])]
        return tuple((float(at), hockey_stick(one, other, at)) for at in places)

    above, below = knots(first, second, losses), knots(second, first, -losses)
    return ProfileCurve(above, ((0.0, above[0][1]), *below[1:]))


@pytest.mark.parametrize("seed", range(5))
def test_the_divergence_of_a_curve_is_that_of_its_pair(seed):
    first, second = pair(seed)
    for one, other in ((first, second), (second, first)):
        for order in ORDERS:
            exact = math.log(np.sum(one[:6] ** order * other[:6] ** (1.0 - order))) / (order - 1.0)
            found = curve_divergence(curve(one, other), order)
            assert exact <= found <= exact + 2e-9 / (order - 1.0)


@pytest.mark.parametrize("number", [0, 20, 50])
@pytest.mark.parametrize("lost", [0.0, 1e-4])
def test_what_is_certified_is_the_dearer_directions_sum(number, lost):
    """By the formula of section 17, and what may be lost at once is added, of either direction."""
    curves = tuple(curve(*pair(seed, lost)) for seed in (0, 1, 1, 2))
    together, order = AdaptiveComposition(curves, "row", number), 1.0 + 2.0 ** (number / 16.0)
    added, removed = (
        sum(curve_divergence(side, order) for side in sides)
        for sides in (curves, [one.backwards for one in curves])
    )
    spent, tail = max(added, removed), 8.0 * lost
    assert abs(added - removed) > 1e-3
    for epsilon in (0.0, 0.5, 1.0, 3.0, 20.0):
        with mp.workdps(50):
            a = mpf(order)
            exact = mp.exp((a - 1) * (mpf(spent) - mpf(epsilon))) / (a - 1) * (1 - 1 / a) ** a
        found = together.delta_at(epsilon)
        assert found == pytest.approx(min(float(exact) + tail, 1.0), rel=1e-9, abs=0.0)
    for delta in (1e-2, 2e-3):
        least = spent + math.log((1.0 - 1.0 / order) ** order / (order - 1.0) / (delta - tail)) / (
            order - 1.0
        )
        assert together.epsilon_at(delta) == pytest.approx(least, rel=1e-8)
        assert together.delta_at(together.epsilon_at(delta)) <= delta


@pytest.mark.parametrize("number", [0, 20, 50])
def test_no_composition_of_real_pairs_is_above_it(number):
    """Brute force over all outcomes of three mechanisms, in both directions."""
    pairs = [pair(seed) for seed in (0, 1, 2)]
    together = AdaptiveComposition(tuple(curve(*one) for one in pairs), "row", number)
    first, second = (
        np.array([math.prod(masses) for masses in product(*(one[side] for one in pairs))]) for side in (0, 1)
    )
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        reached = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
        assert reached <= together.delta_at(epsilon)
    deltas = [together.delta_at(epsilon) for epsilon in np.linspace(0.0, 3.0, 31)]
    assert all(later <= earlier for earlier, later in pairwise(deltas))


def test_a_certified_divergence_counts_where_it_is_smaller_than_the_curves():
    """Of each direction its own, at the order of the composition."""
    one, order = curve(*pair(0)), 1.0 + 2.0 ** (20 / 16.0)
    free = AdaptiveComposition((one,), "row", 20).epsilon_at(1e-6)
    for adding, removing in ((0.01, 0.02), (0.02, 0.01), (0.02, 9.0), (9.0, 9.0)):
        known = ProfileCurve(one.adding, one.removing, ((19, 0.0), (20, adding)), ((20, removing), (21, 0.0)))
        spent = max(
            min(adding, curve_divergence(one, order)), min(removing, curve_divergence(one.backwards, order))
        )
        found = AdaptiveComposition((known,), "row", 20).epsilon_at(1e-6)
        assert found == pytest.approx(renyi.epsilons(np.array([order]), np.array([spent]), 1e-6)[0], rel=1e-8)
        assert found == pytest.approx(free, rel=1e-12) or adding < 9.0


def test_every_guarantee_ends_where_its_curves_do():
    """What may be lost at once is never promised away, and a delta is a probability."""
    together = AdaptiveComposition((curve(*pair(0, 1e-4)),), "row", 20)
    assert together.epsilon_at(2e-4) == math.inf
    assert together.epsilon_at(2.1e-4) < math.inf
    assert together.delta_at(700.0) == pytest.approx(2e-4, rel=1e-9)
    assert together.delta_at(701.0) == 1.0
    for delta in (0.0, 1.0, 1.5):
        with pytest.raises(ParameterError, match="`delta` must be"):
            together.epsilon_at(delta)


def test_nothing_costs_nothing():
    assert AdaptiveComposition(()).epsilon_at(1e-9) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-6), (8.0, 1e-3)])
def test_the_order_of_a_cap_has_room_for_most_gaussian_mechanisms(epsilon, delta):
    """Their divergences are multiples of the order; by trying all orders and sizes."""
    sizes = np.geomspace(1e-6, 10.0, 2000)
    costs = np.array([renyi.epsilons(renyi.ORDERS, size * renyi.ORDERS, delta) for size in sizes])
    rooms = dict(zip(renyi.NUMBERS, np.sum(costs <= epsilon, axis=0), strict=True))
    assert 0 < rooms[filter_order(epsilon, delta)] == max(rooms.values()) < len(sizes)


def test_numbers_of_orders_are_sixteenths_of_octaves():
    """Orders less one between a half and 2 to the 13th."""
    np.testing.assert_array_equal(renyi.orders_of([-16, 0, 16, 208]), [1.5, 2.0, 3.0, 8193.0])
    assert (renyi.NUMBERS[0], renyi.NUMBERS[-1], len(renyi.ORDERS)) == (-16, 208, 225)
