"""What the third round of attacks found, item by item; each test is one line of the list.

Figures:    4 a limit on the number of rows
Doors:      7 workers that never check their arithmetic
Experts:    11 budgets that memory burns
Constants:  16 numbers that no test noticed: the formulas are asserted beside what they are about,
            in tests/reports/test_vector_reports.py, tests/inference/test_estimate.py and others
"""

import importlib
import os
import subprocess
import sys
import tracemalloc
from contextlib import nullcontext

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client, LocalCluster
from grids import grid
from problems import design_of, rows_in_ball
from ward import refused, run, ward

import expost
from expost._common import kernels, machine
from expost._common.machine import limit_blas_threads
from expost.exceptions import ResourceError
from expost.fitting import private_fit
from expost.fitting.certified import certify, residual
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise, SeededNoise
from expost.fitting.statistics import measure
from expost.privacy.precision import statistic_grid

minimizer = importlib.import_module("expost.fitting.solvers")  # its function has the same name

# A limit on the number of rows


@pytest.mark.parametrize("report", ["leverage", "dependent", "adaptive"])
def test_04a_neighbours_are_not_told_apart_by_their_number(report):
    """Eight times `rows_at_most` was released, and one more refused."""
    X, y = rows_in_ball(np.random.default_rng(0), 81, 3), np.arange(81.0) % 2
    plan = expost.calibrate(report=report, rows_at_most=10)
    for n in (80, 81):
        release, _ = perturb(plan, design_of(X[:n]).labelled(y[:n]), noise=SeededNoise(0))
        assert release.hessian is not None


@pytest.mark.long
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
    release, _ = perturb(plan, design_of(X).labelled(y), noise=Told())
    with mp.workdps(60):
        tilt = [mp.fsum(parts) for parts in zip(*(part.tolist() for part in drawn[0].parts), strict=True)]
        truth = logistic_hessian(X, y, tilt, plan.l2, release.coefficients)
        grid = mp.mpf(statistic_grid(sigma))
        a, b, c = (count * grid for count in measured["hessian"])
        error = sigma * plan.rounding.error("hessian", sigma)
        assert mp.mnorm(truth - mp.matrix([[a, b], [b, c]]), "f") <= error
        smallest = min(mp.eigsy(truth, eigvals_only=True))
        assert abs(smallest - measured["eigenvalue"][0] * grid) <= error


def logistic_hessian(X, y, tilt, l2, start):
    """Of the objective at its minimiser, by Newton's method in as many digits as are set."""
    rows = [mp.matrix(row.tolist()) for row in X]
    theta, step = mp.matrix(start.tolist()), mp.inf
    while step > mp.mpf(10) ** (10 - mp.mp.dps):
        gradient, hessian = mp.matrix(tilt) + l2 * theta, l2 * mp.eye(X.shape[1])
        for x, label in zip(rows, y.tolist(), strict=True):
            p = 1 / (1 + mp.exp(-(x.T * theta)[0]))
            gradient += (p - label) * x
            hessian += p * (1 - p) * x * x.T
        move = mp.lu_solve(hessian, gradient)
        theta, step = theta - move, mp.norm(move)
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
    kernels.library = lambda: None
    residual.exact_in = lambda _: False


@pytest.mark.long
@pytest.mark.parametrize(
    ("processes", "classes"),
    grid(
        [True, False], [("no", "yes"), ("no", "some", "yes")], together=1, slow=lambda processes, _: processes
    ),
)
def test_07_a_worker_whose_products_are_not_exact_makes_the_driver_take_decimals(
    processes, classes, tmp_path, monkeypatch, remembered
):
    """The check runs where the pass runs; the bits are those of a driver that does not trust its own."""
    table = folder_of_people(tmp_path / "people", classes)
    domain = DECLARED.model_copy(update={"label": expost.ClassLabel(name="ill", classes=classes)})
    usual = published(table, domain, "adaptive")
    with monkeypatch.context() as driver:
        driver.setattr(certify, "exact_in", lambda _: False)
        driver.setattr(kernels, "library", lambda: None)
        exact = published(table, domain, "adaptive")
    ran = []
    certified = certify.certify_in_decimals
    monkeypatch.setattr(
        certify, "certify_in_decimals", lambda *args, **named: ran.append(1) or certified(*args, **named)
    )
    monkeypatch.setattr(residual, "exact_in", residual.exact_in)  # put back at the end
    monkeypatch.setattr(kernels, "library", kernels.library)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=processes, dashboard_address=":0") as here,
        Client(here, set_as_default=False) as client,
    ):
        lazy = expost.scan(table, client=client)
        assert published(lazy, domain, "adaptive") == usual
        assert not ran
        client.run(fail_the_check)
        assert published(lazy, domain, "adaptive") == exact
        assert ran


# Budgets that memory burns


@pytest.fixture
def no_draws(monkeypatch):
    """Fail where noise is drawn."""
    for kind in (ExactNoise, SeededNoise):
        for draw in ("tilt", "integers"):
            monkeypatch.setattr(kind, draw, lambda *_, **__: pytest.fail("noise was drawn"))


def machine_of(monkeypatch, size):
    monkeypatch.setattr(machine, "machine_memory", lambda: size)


@pytest.mark.long
def test_11a_sixty_thousand_columns_are_refused_before_noise_and_not_counted(
    monkeypatch, no_draws, tmp_path, remembered
):
    """It was a MemoryError for one matrix of 26.8 GiB after the noise, and an unfinished entry."""
    machine_of(monkeypatch, 64 * 2**30)
    monkeypatch.setattr("expost._common.machine.threads", lambda: 1)
    account = expost.Ledger(tmp_path / "ledger.json").account("people", epsilon=3.0, delta=1e-5)
    X = scipy.sparse.random(300, 30_000, density=1e-4, format="csr", random_state=0)
    model = expost.LogisticRegression(classes=[0, 1, 2], norm=1.0)  # two classes need no such matrix
    with pytest.raises(
        ResourceError, match=r"up to \d+\.\d GiB of memory, and this machine has 64\.0 GiB\. Use few"
    ):
        model.fit(X, np.arange(300) % 3, account=account)
    assert not account.entries
    assert issubclass(ResourceError, MemoryError)


ESTIMATORS = {
    "logistic": lambda: (expost.LogisticRegression(classes=[0, 1], norm=1.0), 40),
    "several classes": lambda: (expost.LogisticRegression(classes=[0, 1, 2], norm=1.0), 20),
    "report": lambda: (expost.LogisticRegression(classes=[0, 1], norm=1.0, report="adaptive"), 40),
    "linear": lambda: (expost.LinearRegression(norm=1.0), 40),
    "hinge": lambda: (expost.SmoothedHingeClassifier(classes=[0, 1], norm=1.0), 40),
    "glm": lambda: (expost.GeneralizedLinearModel(loss=expost.PseudoHuber(), norm=1.0), 40),
    "convex": lambda: (expost.ConvexModel(loss=expost.SmoothedNorm(1)), 1),
}


@pytest.mark.filterwarnings("ignore::expost.exceptions.ExpostWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_11b_every_estimator_refuses_what_memory_cannot_hold_before_noise(
    kind, monkeypatch, no_draws, remembered
):
    model, columns = ESTIMATORS[kind]()
    machine_of(monkeypatch, 10_000)
    rows = np.full((6, columns), 0.01)
    labels = None if kind == "convex" else np.arange(6.0) % 2
    with pytest.raises(ResourceError, match="this fit takes up to"):
        model.fit(rows, labels)


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--ledger", "l.json", "--account", "people")])
def test_11c_the_command_line_refuses_it_in_a_sentence(options, monkeypatch, no_draws, tmp_path):
    domain, table = ward(tmp_path)
    book = expost.Ledger(tmp_path / "l.json").account("people", epsilon=3.0, delta=1e-5)
    monkeypatch.chdir(tmp_path)
    machine_of(monkeypatch, 10_000)
    monkeypatch.setattr(machine, "threads", lambda: 1)
    fitted = run("fit", domain, table, "-o", tmp_path / "p.json", *options)
    assert refused(
        fitted, "this fit takes up to 12.0 MiB of memory, and this machine has 0.0 MiB. Use fewer columns"
    )
    assert not (tmp_path / "p.json").exists()
    assert not book.entries


def test_11d_exact_losses_are_refused_before_they_fail_halfway(monkeypatch, tmp_path):
    domain, table = ward(tmp_path)
    assert run("fit", domain, table, "-o", tmp_path / "p.json").exit_code == 0
    machine_of(monkeypatch, 10_000)
    assert refused(run("losses", tmp_path / "p.json", table), "MiB of memory")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::expost.exceptions.ExpostWarning")
@pytest.mark.parametrize(
    ("kind", "dense"),
    [
        *grid(["logistic", "several classes", "cornered", "report"], [True, False], together=1),
        ("convex", True),  # it has Hessians alone
    ],
)
def test_11e_a_fit_and_its_losses_take_no_more_than_was_asked_for(kind, dense, monkeypatch, remembered):
    """Measured, with conjugate gradients and with Hessians, for more rows than one group of a sum."""
    monkeypatch.setattr(minimizer, "LARGEST_DENSE_DIMENSION", 10**6 if dense else 0)
    columns = {"several classes": 350, "report": 150, "convex": 50}.get(kind, 700)
    model = ESTIMATORS.get(kind, ESTIMATORS["logistic"])()[0]
    if kind == "convex":
        model.set_params(loss=expost.SmoothedNorm(columns))
    if kind == "cornered":
        model.set_params(l1=1.0)
    asked = []

    def note(needed, _):
        asked.append((needed, tracemalloc.get_traced_memory()[0]))
        tracemalloc.reset_peak()

    monkeypatch.setattr(private_fit, "check_memory", note)
    random = np.random.default_rng(0)
    table = random.normal(size=(8400, columns)) / np.sqrt(columns)
    labels = () if kind == "convex" else (random.integers(0, 3 if kind == "several classes" else 2, 8400),)
    tracemalloc.start()
    try:
        model.fit(table, *labels)
        model.ex_post_losses(table[:600], *(some[:600] for some in labels))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    ((needed, before),) = asked
    # What compiled kernels hold for some rows at a time is not traced: NumPy's blocks are asked for.
    assert peak - before <= needed <= 7 * (peak - before)


def test_11f_very_large_matrices_are_factored_in_one_thread():
    for size, alone in ((999, True), (1_000, False), (8_000, False), (8_001, True), (60_000, True)):
        assert isinstance(limit_blas_threads(size), nullcontext) is not alone


@pytest.mark.slow
def test_11g_a_factorisation_that_crashed_threads_runs_through():
    """SciPy's threaded OpenBLAS ended in a segmentation fault here, in most runs."""
    lines = (
        "import numpy as np",
        "from expost._common.machine import limit_blas_threads",
        "from scipy.linalg import cho_factor",
        "matrix = np.full((16_400, 16_400), 1e-6, order='F')",
        "matrix.flat[::16_401] += 1.0",
        "with limit_blas_threads(len(matrix)):",
        "    cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)",
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment, check=True, timeout=900)


def test_11h_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    whole = machine.machine_memory()
    assert 2**28 < whole < 2**50
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("123456789\n")
    monkeypatch.setattr(machine, "_GROUPS", tmp_path)
    assert machine.machine_memory() == 123456789
    (tmp_path / "memory.max").write_text("1000000\n")
    assert machine.machine_memory() == 1000000
