"""The law on faces and the exact losses there: masses, cells, brute force, printed numbers, divergences."""

import math
from dataclasses import replace

import numpy as np
import pytest
from corner_law import KINDS, cell_probability, law_of, rule
from scipy.special import ndtr

import expost
from expost import LogisticLoss
from expost.data.encoding import encode_records
from expost.data.weights import Declared
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.faces import Atoms, Face, log_probability
from expost.fitting.private_fit import recover
from expost.fitting.release import Release
from expost.privacy.plan import Plan
from expost.privacy.scales import NoiseScales


def plan_of(law, unit="row"):
    """A plan in real arithmetic of the law's noise and penalty; what it promises does not matter here."""
    scales = NoiseScales(law.sigma)
    return Plan(LogisticLoss(), 1.0, False, "independent", "tight", 1.0, 0.5, law.l2, scales, unit=unit)


@pytest.mark.parametrize("kind", KINDS)
def test_the_masses_of_all_faces_add_up_to_one(kind):
    law = law_of(1, kind)
    total = sum(weights @ np.exp(law.log_density(points)) for points, weights in law.faces(24))
    assert total == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("kind", ["l1", "box", "mixed"])
def test_an_edge_has_the_probability_of_its_noise(kind):
    law = law_of(2, kind)
    for place in range(2):
        for kink in {kink for kink in np.array(law.corners.kinks)[:, place] if np.isfinite(kink)}:
            low, high = 0.05, 0.15
            at, weights = rule(low, high, 4)
            points = np.full((len(at), 2), kink)
            points[:, 1 - place] = at
            mass = weights @ np.exp(law.log_density(points))
            assert mass == pytest.approx(cell_probability(law, place, kink, low, high), abs=1e-9)


def points_on_faces(law, count, rng):
    """Random points inside the bounds, most of them on some kink."""
    d = len(law.corners.l1)
    theta = law.corners.inside(rng.normal(scale=0.5, size=(count, d)))
    kinks = np.array(law.corners.kinks)
    for j in range(d):
        finite = kinks[np.isfinite(kinks[:, j]), j]
        put = rng.random(count) < 0.5
        theta[put, j] = rng.choice(finite, count)[put] if len(finite) else theta[put, j]
    return theta


def losses_at(law, theta, *, member, rows=None):
    """The signed losses of the library for every row, or for some rows as one person."""
    release = Release(plan_of(law, "row" if rows is None else "person"), theta, corners=law.corners)
    groups = (
        None if rows is None else np.where(np.isin(np.arange(len(law.y)), rows), -1, np.arange(len(law.y)))
    )
    records = encode_records(law.X, law.y, Declared.of(release.plan), groups=groups)
    return ex_post_terms(recover(release, records), records, release.plan.loss, member=member)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_losses_are_log_ratios_of_densities_on_faces(kind, dimension):
    law = law_of(3, kind, dimension=dimension)
    rng = np.random.default_rng(4)
    for theta in points_on_faces(law, 6, rng):
        found = losses_at(law, theta, member=True).signed
        own = law.log_density(theta)
        for row in range(len(law.y)):
            assert found[row] == pytest.approx(own - law.without([row]).log_density(theta), abs=1e-10)
        # A record that is not in the table: the same pair of tables from the other side.
        fewer = law.without([0])
        release = Release(plan_of(law), theta, corners=law.corners)
        table, other = (
            encode_records(X, y, Declared.of(release.plan))
            for X, y in ((fewer.X, fewer.y), (law.X[:1], law.y[:1]))
        )
        outside = ex_post_terms(recover(release, table), other, release.plan.loss, member=False).signed
        assert outside[0] == pytest.approx(-found[0], abs=1e-10)


@pytest.mark.parametrize("count", [2, 3])
def test_losses_of_people_are_log_ratios_too(count):
    rows, rng = list(range(count)), np.random.default_rng(count)
    law = law_of(5, "mixed", dimension=3)
    weights = np.where(np.arange(len(law.y)) < count, 1.0 / count, 1.0)
    law = replace(law, weights=weights)
    for theta in points_on_faces(law, 6, rng):
        terms = losses_at(law, theta, member=True, rows=rows)
        place = list(terms.people).index(-1)
        wanted = law.log_density(theta) - law.without(rows).log_density(theta)
        assert terms.signed[place] == pytest.approx(wanted, abs=1e-9)


def test_some_leave_and_others_enter():
    law = law_of(6, "mixed", dimension=3)
    other = replace(law, X=np.vstack([law.X[2:], law.X[:1] / 2.0]), y=np.append(law.y[2:], 1.0))
    for theta in points_on_faces(law, 6, np.random.default_rng(0)):
        release = Release(plan_of(law), theta, corners=law.corners)
        table = encode_records(law.X, law.y, Declared.of(release.plan))
        # Two leave, and a third one enters.
        X, y = np.vstack([law.X[:2], law.X[:1] / 2.0]), np.append(law.y[:2], 1.0)
        family = encode_records(X, y, Declared.of(release.plan), groups=[1, 1, 1])
        terms = ex_post_terms(
            recover(release, table), family, release.plan.loss, member=np.array([True, True, False])
        )
        wanted = law.log_density(theta) - replace(other, weights=np.ones(len(other.y))).log_density(theta)
        assert terms.signed[0] == pytest.approx(wanted, abs=1e-9)


def stiff_density(law, theta, width):
    """The density of a smooth law with corners of this width, integrated over them: no formula of faces."""
    at = law.corners.active(theta)
    corners = law.corners
    axes = []
    for j in range(len(theta)):
        if not at[j]:
            axes.append((theta[j : j + 1], np.ones(1)))
        else:
            # A wall is a parabola beyond the bound, and an L1 penalty one in a strip around zero.
            points, weights = rule(theta[j] - 12.0 * width, theta[j] + 12.0 * width, 60)
            axes.append((points, weights))
    grids = np.meshgrid(*(points for points, _ in axes), indexing="ij")
    points = np.stack(grids, axis=-1).reshape(-1, len(theta))
    weights = np.prod(np.meshgrid(*(w for _, w in axes), indexing="ij"), axis=0).ravel()
    strip = np.clip(points / width, -1.0, 1.0)
    slope, bend = corners.l1 * strip, corners.l1 / width * (np.abs(points) < width)
    wall = 4.0 * law.sigma / width
    for end, sign in ((corners.low, -1.0), (corners.high, 1.0)):
        beyond = np.where(np.isfinite(end), np.maximum(sign * (points - end), 0.0), 0.0)
        slope = slope + sign * wall * beyond
        bend = bend + wall * (beyond > 0.0)
    noise = (law.gradient(points) + slope) / law.sigma
    hessian = law.hessian(points) + bend[..., None] * np.eye(len(theta))
    density = np.exp(-0.5 * np.sum(noise**2, axis=1)) * np.linalg.det(hessian)
    return weights @ density / (law.sigma * math.sqrt(2.0 * math.pi)) ** len(theta)


@pytest.mark.parametrize(
    ("kind", "dimension"), [("l1", 1), ("box", 1), ("mixed", 2), ("l1", 2), ("signs", 3)]
)
def test_losses_are_the_limit_of_stiff_penalties(kind, dimension):
    law = law_of(7, kind, dimension=dimension)
    theta = law.corners.inside(np.full(dimension, 0.11))
    kinks = np.array(law.corners.kinks)
    theta[0] = kinks[np.isfinite(kinks[:, 0]), 0][0]
    found = losses_at(law, theta, member=True).signed
    ratio = stiff_density(law, theta, 1e-6) / stiff_density(law.without([0]), theta, 1e-6)
    assert found[0] == pytest.approx(math.log(ratio), abs=2e-5)


def test_probabilities_of_intervals_keep_their_digits():
    low = np.array([-1.0, 5.0, 30.0, -0.3, -np.inf, 3.0])
    high = np.array([0.5, 6.0, np.inf, -0.3 + 1e-9, -20.0, 3.0 + 1e-4])
    wanted = [
        math.log(ndtr(0.5) - ndtr(-1.0)),
        math.log(ndtr(-5.0) - ndtr(-6.0)),
        -454.32124395634786,  # log ndtr(-30)
        math.log(high[3] - low[3]) - 0.5 * 0.3**2 - 0.5 * math.log(2.0 * math.pi),
        -203.9171553710973,
        math.log(1e-4) - 0.5 * (3.0 + 5e-5) ** 2 - 0.5 * math.log(2.0 * math.pi) + 8.0 * 1e-8 / 24.0,
    ]
    assert log_probability(low, high) == pytest.approx(np.array(wanted), rel=1e-9)


@pytest.mark.parametrize("largest", [0.01, 0.3, 1.5, 6.0])
def test_atoms_grow_as_their_probabilities_do(largest):
    """By polynomials where records are near, and by the probabilities where they are not, or none serves."""
    rng = np.random.default_rng(0)
    low = np.array([-np.inf, -0.5, -9.0, 2.0, 30.0, -8.0, -1e-3, 3.0])
    high = np.array([-1.0, 0.5, 4.0, np.inf, np.inf, -7.0, 1e-3, 3.5])
    moved = largest * rng.uniform(-1.0, 1.0, size=(300, 8))
    moved[:40] *= 3.0
    wider = rng.uniform(-1.0, 1.0, size=(300, 8)) * 10.0 ** rng.integers(-12, -4, size=(300, 1))
    there = log_probability(low - moved - wider, high - moved + wider)
    wanted = np.sum(there - log_probability(low, high), axis=1)
    atoms = Atoms(low, high, largest)
    found = atoms.growth(moved, wider)
    assert found == pytest.approx(wanted, abs=2e-11, rel=1e-13)
    # A record's figure does not depend on the others beside it, but for the order of sums.
    alone = [atoms.growth(moved[k : k + 1], wider[k : k + 1])[0] for k in range(0, 300, 7)]
    assert alone == pytest.approx(found[::7], rel=1e-12, abs=1e-15)
    none = Atoms(low[:0], high[:0], largest)
    assert np.array_equal(none.growth(moved[:, :0], wider[:, :0]), np.zeros(300))


def printed_mass(law, theta, place, noise, window):
    """The density of what is printed at an edge of two coefficients, integrated over all that leads there."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    kink, total = theta[place], 0.0
    for shift, weight in zip(noise * nodes, weights, strict=True):
        at = theta.copy()
        at[1 - place] -= shift
        total += weight * math.exp(law.log_density(at))
        below, above = law.corners.low[place], law.corners.high[place]
        for low, high in ((kink - window - 8 * noise, kink), (kink, kink + window + 8 * noise)):
            if low < below or high > above:
                continue
            u, w = rule(low, high, 6)
            points = np.tile(at, (len(u), 1))
            points[:, place] = u
            reached = ndtr((kink + window - u) / noise) - ndtr((kink - window - u) / noise)
            total += weight * (w @ (np.exp(law.log_density(points)) * reached))
    return total


def printed_errors(seeds):
    """How far losses are off with widened atoms, and with atoms alone, at as many rows as planned."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        law = law_of(seed, ("l1", "box")[seed % 2], rows=int(rng.integers(2, 12)), l2=rng.uniform(0.3, 2.0))
        noise = 2.0**-10 * law.sigma / (law.l2 + 0.25 * len(law.y))
        # The other coefficient is far from its kinks.
        theta = rng.uniform(0.05, 0.15, size=2) * rng.choice([-1.0, 1.0], size=2)
        place = int(rng.integers(2))
        kinks = [kink for kink in np.array(law.corners.kinks)[:, place] if np.isfinite(kink)]
        theta[place] = kinks[int(rng.integers(len(kinks)))]
        printed = [printed_mass(one, theta, place, noise, 16.0 * noise) for one in (law, law.without([0]))]
        face = Face.of(law.corners, theta, law.gradient(theta), law.hessian(theta), plan_of(law))
        p = 1.0 / (1.0 + np.exp(-law.X[0] @ theta))
        row = law.X[:1], np.array([p - law.y[0]]), np.array([p * (1.0 - p)])
        wide = replace(face, window=16.0 * noise)
        wanted = math.log(printed[0] / printed[1])
        yield tuple(float(sum(one.terms(*row, -np.ones((1, 1))))[0]) - wanted for one in (wide, face))


def test_printed_losses_have_widened_atoms():
    errors = np.abs(list(printed_errors(range(40))))
    assert errors[:, 0].max() <= 1e-4
    assert errors[:, 1].max() >= 1e-3  # the atom alone is not enough


@pytest.mark.slow
def test_printed_losses_have_widened_atoms_on_many_edges():
    errors = np.abs(list(printed_errors(range(400))))
    assert errors[:, 0].max() <= 1e-4
    assert errors[:, 1].max() <= 2e-2


def divergences(law, fewer, epsilon, panels):
    """The hockey-stick divergences of both directions, by quadrature over all faces."""
    found = np.zeros(2)
    for points, weights in law.faces(panels, reach=7.0):
        p, q = (np.exp(one.log_density(points)) for one in (law, fewer))
        excess = math.exp(epsilon)
        found += weights @ np.maximum(p - excess * q, 0.0), weights @ np.maximum(q - excess * p, 0.0)
    return found


def check_divergences(seeds, panels):
    worst = 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows, kind = 1 + seed % 3, KINDS[seed % 4]
        law = law_of(seed, kind, rows=rows + int(rng.integers(1, 4)), l2=rng.uniform(0.6, 2.0), people=True)
        plan = expost.calibrate(
            sigma=law.sigma, l2=law.l2, delta=1e-3, loss=LogisticLoss(), unit="row" if rows == 1 else "person"
        )
        for epsilon in (0.3, 0.8):
            bound = plan.delta_at(epsilon)
            found = divergences(law, law.without(range(rows)), epsilon, panels)
            assert found.max() <= bound + 1e-6, (seed, kind, epsilon)
            worst = max(worst, found.max() / bound)
    return worst


@pytest.mark.long
def test_no_divergence_exceeds_the_certificate():
    assert check_divergences(range(8), 10) > 0.1


@pytest.mark.slow
def test_no_divergence_of_many_tables_exceeds_the_certificate():
    assert 0.5 < check_divergences(range(204), 14) <= 1.0
