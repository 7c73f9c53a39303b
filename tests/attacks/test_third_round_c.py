"""What the third round of attacks found, item by item; each test is one line of the list.

Figures:    4 a limit on the number of rows
Doors:      7 workers that never check their arithmetic
Experts:    11 budgets that memory burns
Constants:  16 numbers that no test noticed
"""

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from problems import design_of, rows_in_ball

import expost
from expost.fitting.certified import certify, residual
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise, SeededNoise
from expost.fitting.statistics import measure
from expost.privacy.precision import statistic_grid

# A limit on the number of rows


@pytest.mark.parametrize("report", ["leverage", "dependent", "adaptive"])
def test_04a_neighbours_are_not_told_apart_by_their_number(report):
    """Eight times `rows_at_most` was released, and one more refused."""
    X, y = rows_in_ball(np.random.default_rng(0), 81, 3), np.arange(81.0) % 2
    plan = expost.calibrate(report=report, rows_at_most=10)
    for n in (80, 81):
        release, _ = perturb(plan, design_of(X[:n]).labelled(y[:n]), noise=SeededNoise(0))
        assert release.hessian is not None


@pytest.mark.parametrize("sigma", [1.0, 1e-15])
def test_04b_statistics_of_any_number_of_rows_have_their_stated_error(sigma, monkeypatch):
    """2,000 times `rows_at_most`, where a double is too short, against 60 digits at the exact minimiser."""
    n = 2000
    X, y = 0.9 * rows_in_ball(np.random.default_rng(1), n, 2), np.arange(float(n)) % 2
    plan = expost.calibrate(
        report="adaptive",
        sigma=3.0,
        l2=0.5,
        sigma_gradient=1.0,
        sigma_hessian=sigma,
        sigma_eigenvalue=sigma,
        rows_at_most=1,
    )
    measured, drawn = {}, []

    def measure_and_tell(*arguments, **keywords):
        measured.update(measure(*arguments, **keywords))
        return measured

    class Told(ExactNoise):
        def tilt(self, *arguments, **keywords):
            drawn.append(super().tilt(*arguments, **keywords))
            return drawn[0]

    monkeypatch.setattr("expost.fitting.mechanism.measure", measure_and_tell)
    perturb(plan, design_of(X).labelled(y), noise=Told())
    with mp.workdps(60):
        tilt = [mp.fsum(parts) for parts in zip(*(part.tolist() for part in drawn[0].parts), strict=True)]
        truth = logistic_hessian(X, y, tilt, plan.l2)
        grid = mp.mpf(statistic_grid(sigma))
        a, b, c = (count * grid for count in measured["hessian"])
        error = sigma * plan.rounding.error("hessian", sigma)
        assert mp.mnorm(truth - mp.matrix([[a, b], [b, c]]), "f") <= error
        smallest = min(mp.eigsy(truth, eigvals_only=True))
        assert abs(smallest - measured["eigenvalue"][0] * grid) <= error


def logistic_hessian(X, y, tilt, l2):
    """Of the objective at its minimiser, by Newton's method in as many digits as are set."""
    rows = [mp.matrix(row.tolist()) for row in X]
    theta = mp.zeros(X.shape[1], 1)
    for _ in range(12):
        gradient, hessian = mp.matrix(tilt) + l2 * theta, l2 * mp.eye(X.shape[1])
        for x, label in zip(rows, y.tolist(), strict=True):
            p = 1 / (1 + mp.exp(-(x.T * theta)[0]))
            gradient += (p - label) * x
            hessian += p * (1 - p) * x * x.T
        theta -= mp.lu_solve(hessian, gradient)
    return hessian


# Workers that never check their arithmetic

DECLARED = expost.Domain(
    features=(expost.Number(name="age", low=0.0, high=100.0), expost.YesNo(name="smokes")),
    label=expost.ClassLabel(name="ill", classes=("no", "yes")),
)


def folder_of_people(path, classes):
    random = np.random.default_rng(0)
    path.mkdir()
    for k in range(3):
        frame = pd.DataFrame(
            {
                "age": random.integers(0, 100, 12).astype(float),
                "smokes": random.choice(["yes", "no"], 12),
                "ill": random.choice(classes, 12),
            }
        )
        frame.to_parquet(path / f"{k}.parquet", index=False)
    return path


def published(table, domain, report):
    model = expost.LogisticRegression(domain=domain, report=report, random_state=0).fit(table)
    return model.publication_.to_json(), model._private.hessian.tobytes()


def fail_the_check():
    residual.slices_are_exact = lambda: False


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("classes", [("no", "yes"), ("no", "some", "yes")])
def test_07_a_worker_whose_products_are_not_exact_makes_the_driver_take_decimals(
    processes, classes, tmp_path, monkeypatch
):
    """The check runs where the pass runs; the bits are those of a driver that does not trust its own."""
    table = folder_of_people(tmp_path / "people", classes)
    domain = DECLARED.model_copy(update={"label": expost.ClassLabel(name="ill", classes=classes)})
    usual = published(table, domain, "adaptive")
    with monkeypatch.context() as driver:
        for module in ("certify", "hessian"):
            driver.setattr(f"expost.fitting.certified.{module}.slices_are_exact", lambda: False)
        exact = published(table, domain, "adaptive")
    ran = []
    certified = certify.certify_in_decimals
    monkeypatch.setattr(
        certify, "certify_in_decimals", lambda *args, **named: ran.append(1) or certified(*args, **named)
    )
    monkeypatch.setattr(residual, "slices_are_exact", residual.slices_are_exact)  # put back at the end
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=processes, dashboard_address=None) as here,
        Client(here, set_as_default=False) as client,
    ):
        lazy = expost.scan(table, client=client)
        assert published(lazy, domain, "adaptive") == usual
        assert not ran
        client.run(fail_the_check)
        assert published(lazy, domain, "adaptive") == exact
        assert ran
