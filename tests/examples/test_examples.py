"""The examples run, and the documents show what they print."""

import math
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from expost.audit import hockey_stick

ROOT = Path(__file__).parents[2]


def load(name):
    spec = spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exposed_loss, variants = load("exposed_loss"), load("variants")


def test_one_exposed_loss_reveals_the_count(capsys):
    exposed_loss.main()
    assert "The count is 317.\n" in capsys.readouterr().out


@pytest.mark.parametrize("sigma", [0.3, 4.0, 50.0])
def test_the_count_is_recovered_whatever_the_noise(sigma):
    """A wrong answer needs 2o within rounding of a whole number: probability below 1e-8 for all draws."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(0, 1000))
        output, loss = exposed_loss.release_count(count, sigma=sigma, rng=rng)
        assert exposed_loss.recover_count(output, loss, sigma=sigma) == count


def test_the_document_shows_what_the_script_computes(capsys):
    variants.main()
    setting, *rows = capsys.readouterr().out.splitlines()
    assert setting == "noise 4.2247, l2 = 2, seed 2021; the person: x = 0.514, y = 1"
    lines = (ROOT / "docs" / "variants.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("|---|---|---|---|") + 1
    assert lines[start : start + len(rows) + 1] == [*rows, ""]


def test_a_finer_notion_has_a_smaller_number():
    assert variants.per_instance() < variants.personalised() < variants.approximate() <= 1.0
    assert variants.data_dependent() < variants.renyi()


def test_the_renyi_bound_lies_just_above_the_gaussian_mechanism():
    """At slope 1 the loss is that mechanism's, of divergence order/2σ²; finer cells lower the bound."""
    coarse, fine = variants.renyi(2000), variants.renyi(16_000)
    assert variants.ORDER / (2 * variants.PLAN.sigma**2) < fine <= coarse < 1.01 * fine


def test_the_data_dependent_number_agrees_with_adaptive_quadrature():
    X, y = variants.make_table()
    sigma, l2, order = variants.PLAN.sigma, variants.PLAN.l2, variants.ORDER

    def log_density(theta, rows, labels):
        p = expit(theta * rows)
        gradient = np.sum((p - labels) * rows) + l2 * theta
        hessian = np.sum(p * (1 - p) * rows**2) + l2
        return math.log(hessian / (sigma * math.sqrt(2 * math.pi))) - gradient**2 / (2 * sigma**2)

    def divergence(x, label):
        more = np.append(X[:, 0], x), np.append(y, label)

        def moment(theta):
            return math.exp(order * log_density(theta, X[:, 0], y) - (order - 1) * log_density(theta, *more))

        return math.log(quad(moment, -25.0, 25.0, limit=500)[0]) / (order - 1)

    # The worst neighbour has one more record, of full norm.
    worst = max(divergence(x, label) for x in (-1.0, 1.0) for label in (0.0, 1.0))
    assert variants.data_dependent() == pytest.approx(worst, rel=1e-6)


def test_the_per_instance_number_is_where_the_divergence_is_delta():
    X, y = variants.make_table()
    plan = variants.PLAN
    scales = {"sigma": plan.sigma, "l2": plan.l2}
    found = hockey_stick(plan.loss, X[1:], y[1:], X[0], y[0], epsilon=variants.per_instance(), **scales)
    assert max(found.add, found.remove) == pytest.approx(plan.delta, rel=1e-3)
