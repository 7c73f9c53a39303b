"""What the tests remember of accounting is what a profile answers, and not every test may use it."""

from dataclasses import replace

import pytest
from remembered import MEMORY, exactly

from expost import LogisticLoss, PseudoHuber, SoftmaxLoss, calibrate
from expost.losses.base import DerivativeCurve


def bent(at):
    """A curve whose function holds a number."""
    return DerivativeCurve(1.0, lambda slope: at * slope * (1.0 - slope), peak=0.5, sign_fixed=True)


def test_a_question_is_asked_once_and_answered_as_the_profile_does():
    asked = []

    def delta(profile, epsilon, *, rtol=None):
        asked.append(epsilon)
        return type(profile).delta.__wrapped__(profile, epsilon, rtol=rtol)

    remembered, plan = MEMORY.of(delta), calibrate(epsilon=1.0, l2=5.0)
    one, same = plan.profile, replace(plan).profile
    assert one is not same
    assert remembered(one, 1.0) == remembered(same, 1.0) == delta(one, 1.0)
    assert len(asked) == 2  # by the memory and here
    remembered(one, 1.1)
    remembered(one, 1.0, rtol=0.1)
    remembered(replace(one, first=replace(one.first, l2=6.0)), 1.0)
    assert len(asked) == 5


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (LogisticLoss().curve, LogisticLoss().curve, True),
        (LogisticLoss().curve.scaled(2.0), LogisticLoss().curve.scaled(2.0), True),
        (LogisticLoss().curve.scaled(2.0), LogisticLoss().curve.scaled(3.0), False),
        (PseudoHuber(1.0).curve, PseudoHuber(0.5).curve, False),
        (SoftmaxLoss(3).curve, SoftmaxLoss(3).curve, True),
        (SoftmaxLoss(3).curve, SoftmaxLoss(4).curve, False),
        (bent(1.0), bent(1.0), True),
        (bent(1.0), bent(0.9), False),
        (1, 1.0, False),
        (lambda slope: slope, lambda slope: 2.0 * slope, False),
        (lambda slope, by=1.0: by * slope, lambda slope, by=2.0: by * slope, False),
    ],
)
def test_only_what_computes_the_same_is_one_question(one, other, same):
    assert (exactly(one) == exactly(other)) is same
    assert len({exactly(one), exactly(other)}) == 2 - same


def test_plans_are_the_same_with_and_without():
    budget = {"epsilon": 0.7, "report": "adaptive", "l2": 3.0}
    first, second = calibrate(**budget), calibrate(**budget)
    MEMORY.in_use = False
    assert first == second == calibrate(**budget)


def test_a_test_that_replaces_something_asks_the_profile_itself(monkeypatch):
    assert not MEMORY.in_use


def test_one_that_replaces_something_else_does_not(monkeypatch, remembered, request):
    assert MEMORY.in_use
    assert MEMORY.serves(request.node)


def test_one_that_says_so_does(unremembered, request):
    assert not MEMORY.in_use
    assert not MEMORY.serves(request.node)


def test_others_and_modules_do_not(request):
    assert MEMORY.in_use
    assert MEMORY.serves(request.node)
    assert MEMORY.serves(request.node.getparent(pytest.Module))


@pytest.mark.parametrize("budget", [{"epsilon": -1.0}, {"l2": 1e-9}])
def test_refusals_are_not_remembered(budget):
    for _ in range(2):
        with pytest.raises(ValueError, match=r"epsilon|l2"):
            calibrate(**budget)
