"""What the tests remember of calibration is what the search answers, and not every test may use it."""

import pytest
from remembered import MEMORY, PRIVACY

from expost import calibrate
from expost.losses import as_loss
from expost.privacy import calibration
from expost.privacy.recipes import Target


def test_a_question_is_asked_once_and_answered_as_the_search_does():
    asked = []

    def search(target, l2, split):
        asked.append(target)
        return calibration.CALIBRATIONS["tight"].__wrapped__(target, l2, split)

    target = Target(1.0, 1e-6, as_loss("logistic"), 1.0, "dependent")
    remembered = MEMORY.of(search)
    assert remembered(target, 5.0, None) == remembered(target, 5.0, None) == search(target, 5.0, None)
    assert len(asked) == 2  # by the memory and here
    assert remembered(target, 5.0, 0.5) != remembered(target, 6.0, 0.5)
    assert len(asked) == 4


def test_plans_are_the_same_with_and_without():
    budget = {"epsilon": 0.7, "report": "adaptive", "l2": 3.0}
    first, second = calibrate(**budget), calibrate(**budget)
    MEMORY.in_use = False
    assert first == second == calibrate(**budget)


def test_a_test_that_replaces_something_asks_the_search_itself(monkeypatch):
    assert not MEMORY.in_use


def test_so_do_the_tests_of_privacy(request):
    class Item:
        path, fixturenames = PRIVACY / "test_calibration.py", []

    assert MEMORY.in_use
    assert not MEMORY.serves(Item)
    assert MEMORY.serves(request.node)


@pytest.mark.parametrize("budget", [{"epsilon": -1.0}, {"l2": 1e-9}])
def test_refusals_are_not_remembered(budget):
    for _ in range(2):
        with pytest.raises(ValueError, match=r"epsilon|l2"):
            calibrate(**budget)
