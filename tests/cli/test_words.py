"""What the command line promises in plain words is what the guarantee implies."""

import json

import numpy as np
import pytest
from ward import run, ward

import expost
from expost.cli.words import REPORTS, right_at_most
from expost.privacy.scales import REPORT_KINDS


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-2)])
def test_no_test_between_two_laws_that_meet_the_promise_is_right_more_often(epsilon, delta):
    """The laws of [KOV15]_ that attain the guarantee: 0, 1, 2, 3 with these chances, and the other way round.

    References
    ----------
    .. [KOV15] P. Kairouz, S. Oh and P. Viswanath. The composition theorem for differential privacy. 2015.
    """
    likely = (1.0 - delta) * np.exp(epsilon) / (1.0 + np.exp(epsilon))
    first = np.array([delta, likely, 1.0 - delta - likely, 0.0])
    second = first[::-1]
    assert np.maximum(first - np.exp(epsilon) * second, 0.0).sum() <= delta * (1 + 1e-12)
    best = np.maximum(first, second).sum() / 2.0  # the likelier of the two is guessed
    assert 0.0 <= right_at_most(epsilon, delta) / 100.0 - best <= 0.001


def test_every_report_is_explained():
    assert set(REPORTS) == set(REPORT_KINDS)


@pytest.mark.long
def test_models_that_share_a_budget_are_told_both_budgets(tmp_path):
    domain, _ = ward(tmp_path)
    shown = " ".join(run("plan", domain, "--models", 2).output.split())
    plan = json.loads(run("plan", domain, "--models", 2, "--json").output)
    assert "together spend at most ε = 1 at δ = 1e-06, if all are of this kind." in shown
    assert f"ε = {plan['epsilon']:g} at δ = 5e-07" in shown
    model = expost.LogisticRegression(domain=expost.Domain.load(domain), models=2, random_state=0)
    planned = model.fit({"age": [20.0], "ward": ["north"], "smoker": ["yes"]}, ["no"]).plan_
    assert planned.sigma == plan["sigma"]
    assert expost.compose([planned] * 2).epsilon_at(1e-6) <= 1.0
    assert "together" not in run("plan", domain).output
