"""Real people with several rows never exceed the certificate of a plan for people, and come close to it."""

import numpy as np
import pytest
from grids import grid
from rich.console import Console

import expost
from expost import LogisticLoss, PseudoHuber, SoftmaxLoss
from expost.audit import audit_plan, hockey_stick
from expost.audit.search import _random_pair
from expost.exceptions import DomainError, ParameterError
from expost.privacy.plan import accounting_of
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import capped_logistic

LOSSES = {
    "logistic": LogisticLoss(),
    "capped": LogisticLoss(cap=0.65, corner=0.8),
    "huber": PseudoHuber(0.8),
}
# epsilon, l2 and the noise of everything that is published.
SETTINGS = [
    (1.0, 0.5, {"sigma": 3.0}),
    (1.0, 0.3, {"sigma": 2.0}),
    (0.3, 5.0, {"sigma": 6.0}),
    (3.0, 1.0, {"sigma": 0.9}),
    (1.0, 0.5, {"sigma": 3.0, "sigma_hessian": 0.6}),
    (2.0, 0.3, {"sigma": 2.0, "sigma_gradient": 2.5, "sigma_hessian": 0.5, "sigma_eigenvalue": 0.9}),
]


def certificates(loss, epsilon, l2, scales, norm=1.0):
    """Bounds on the divergences that :class:`expost.audit.Audit` calls ``remove`` and ``add``."""
    profile = PrivacyProfile(loss.curve, norm, l2, NoiseScales(**scales), unit="person")
    return profile.adding(epsilon, 1e-3).upper, profile.removing(epsilon, 1e-3).upper


def draw_person(rng, name, norm, sigma):
    """One to four rows of one feature, of mixed labels and lengths, with weights that sum to 1 or less."""
    rows = int(rng.integers(1, 5))
    record = (
        norm * rng.choice([-1.0, 1.0], (rows, 1)) * rng.random((rows, 1)) ** rng.integers(2, size=(rows, 1))
    )
    label = rng.choice([0.0, 1.0], rows)
    if name == "huber":
        label = rng.standard_normal(rows) * 10.0 ** rng.uniform(-1.0, 2.0, rows)
    weights = rng.dirichlet(np.ones(rows)) if rng.random() < 0.5 else np.full(rows, 1.0 / rows)
    crowd = np.ceil(rng.uniform(0.0, 8.0) * sigma / (5e-3 * norm))
    return {
        "X": [[1e-2 * norm * rng.choice([-1.0, 1.0])]],
        "y": [1.0],
        "counts": [max(crowd, 1.0)],
        "record": record,
        "label": label,
        "weights": weights * rng.random() ** rng.integers(2),
    }


@pytest.mark.parametrize(("name", "setting"), grid(LOSSES, range(len(SETTINGS)), together=1))
def test_no_person_of_one_feature_exceeds_the_certificate(name, setting):
    epsilon, l2, scales = SETTINGS[setting]
    rng = np.random.default_rng([setting, list(LOSSES).index(name), 30])
    adding, removing = certificates(LOSSES[name], epsilon, l2, scales)
    for _ in range(20):
        person = draw_person(rng, name, 1.0, scales["sigma"])
        found = hockey_stick(LOSSES[name], **person, epsilon=epsilon, l2=l2, **scales)
        assert found.remove - found.error <= adding
        assert found.add - found.error <= removing


ANGLES = np.linspace(0.0, np.pi, 6)
TWO = [
    pytest.param(name, place, shared, seen, marks=() if place in quick else pytest.mark.slow)
    for (name, shared, seen, quick) in (
        ("logistic", (0.5, 0.5), {}, ()),
        ("logistic", (0.3, 0.4), {}, ()),
        ("logistic", (0.5, 0.5), {"sigma_hessian": 0.6}, (1,)),
        ("huber", (0.5, 0.5), {"sigma_hessian": 0.9}, ()),
        ("capped", (0.7, 0.2), {"sigma_hessian": 0.6}, ()),
    )
    for place in range(len(ANGLES))
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "place", "shared", "seen"), TWO)
def test_two_rows_at_an_angle_stay_below_the_certificate(name, place, shared, seen):
    """Two features: the second row leaves the first one's direction, and later its label."""
    angle, scales = ANGLES[place], {"sigma": 1.5} | seen
    rows = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    sign = 1.0 if angle < 1.6 else -1.0
    push = -1e-3 * (rows[0] + sign * rows[1]) / np.linalg.norm(rows[0] + sign * rows[1])
    adding, removing = certificates(LOSSES[name], 1.0, 0.8, scales)
    found = hockey_stick(
        LOSSES[name], [push], [1.0], rows, [1.0, 1.0 if sign > 0.0 else 0.0], counts=[9000.0], weights=shared,
        epsilon=1.0, l2=0.8, **scales,
    )  # fmt: skip
    assert found.remove - found.error <= adding
    assert found.add - found.error <= removing


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_real_people_nearly_attain_the_certificate(epsilon):
    """Rows alike make a person one row, who needs almost as much noise; opposite ones of other labels too."""
    plan = expost.calibrate(loss=capped_logistic(epsilon, 1e-6), epsilon=epsilon, unit="person")
    crowd = {
        "X": [[-0.1]],
        "y": [0.0],
        "counts": [1e6],
        "epsilon": epsilon,
        "sigma": plan.sigma,
        "l2": plan.l2,
    }
    one = hockey_stick(plan.loss, record=[1.0], label=0.0, **crowd)
    assert 0.88 * plan.delta < one.delta <= plan.delta_at(epsilon)
    for record, label, weights in (
        ([[1.0], [1.0], [1.0]], [0.0, 0.0, 0.0], None),
        ([[1.0], [-1.0]], [0.0, 1.0], [0.25, 0.75]),
    ):
        several = hockey_stick(plan.loss, record=record, label=label, weights=weights, **crowd)
        assert several.delta == pytest.approx(one.delta, rel=1e-6)
    # Rows whose weights sum to two are two people.
    family = {"record": [[1.0], [1.0]], "label": [0.0, 0.0], "weights": [1.0, 1.0]}
    at = plan.epsilon_for(2)
    both = hockey_stick(plan.loss, **crowd | family | {"epsilon": at})
    assert 0.6e-6 < both.delta <= 1e-6


@pytest.mark.slow
def test_three_classes_of_people_stay_below_the_certificate():
    loss, rng = SoftmaxLoss(3), np.random.default_rng(11)
    scales = NoiseScales(2.0, sigma_hessian=0.9)
    for reduced, place in ((False, 0), (True, 1)):
        profile = accounting_of(loss.curve, 1.0, reduced=reduced, unit="person").profile(1.0, scales)
        found = hockey_stick(
            loss, [[-0.01]], [float(place)], [[1.0], [rng.uniform(-1.0, 1.0)]], [0.0, float(place)],
            counts=[300.0], weights=rng.dirichlet(np.ones(2)), epsilon=1.0, l2=1.0, sigma=2.0,
            sigma_hessian=0.9, reduced=reduced,
        )  # fmt: skip
        assert 0.0 < found.delta <= profile.delta(1.0).upper


@pytest.mark.long
def test_the_audit_of_a_plan_for_people_tries_people(capsys, every_fifth):
    plan = expost.calibrate(loss="logistic", epsilon=1.0, l2=5.0, unit="person")
    found = audit_plan(plan, trials=4, random_state=0)
    assert 0.95 < found.ratio <= 1.0
    rng = np.random.default_rng(0)
    people = [_random_pair(rng, (0.0, 1.0), 1.0, 2, people=True) for _ in range(30)]
    assert {len(person.record) for person in people} == {1, 2, 3}
    assert all(np.sum(person.weights) == pytest.approx(1.0) for person in people)
    assert all(np.linalg.norm(person.record, axis=1).max() <= 1.0 + 1e-12 for person in people)
    Console(width=300).print(str(people[0]))
    assert capsys.readouterr().out.startswith("person with ")


def test_what_does_not_describe_a_person_is_refused():
    given = {"epsilon": 1.0, "sigma": 1.0, "l2": 1.0}
    for label, weights in (([1.0], None), ([1.0, 0.0], [1.0]), ([1.0, 0.0], [1.0, -0.5])):
        with pytest.raises(DomainError, match="one number for each row of `record`"):
            hockey_stick(
                LogisticLoss(), np.empty((0, 1)), [], [[1.0], [0.5]], label, weights=weights, **given
            )
    with pytest.raises(ParameterError, match="`record` must be a vector of length 1 or 2"):
        hockey_stick(LogisticLoss(), np.empty((0, 3)), [], [1.0, 0.0, 0.0], 1.0, **given)
