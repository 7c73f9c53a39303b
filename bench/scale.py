"""Measure what one machine does per second, how cost grows, and what a task costs beside its work.

    python -m bench.scale [--rows 400000] [--tasks 2000] [--json FILE]
    python -m bench.scale --people    # what people take beside rows, and 3,000,000 rows of 400,000 people in
                                      # Parquet, here and on a cluster; nothing else

From these figures docs/scale.md projects what many workers would do. Rates are for one thread, as a worker of
a cluster often has: CPU seconds are what is counted, the least of some repeats.
"""

import argparse
import resource
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

import expost
from bench.saving import RESULTS, save
from expost._common import machine
from expost.data.encoding import encode_records
from expost.data.tables import scan
from expost.data.weights import Declared
from expost.engines.cluster import DaskEngine
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.fitting.objective import Objective
from expost.reports import evaluate

# The columns of the tables of two classes, and those of a Hessian that a task returns.
WIDTHS, COLUMNS = (10, 50, 100), 100


@dataclass(frozen=True)
class Idle:
    """A part with nothing in it, which takes a while for one of the workers."""

    delay: float = 0.0

    def blocks(self, length):
        """One number, after a while."""
        time.sleep(self.delay)
        yield 1


def cpu(work, repeats=3):
    """The least CPU seconds of several runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def rows_of(rows, columns, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) / columns**0.5
    return X, rng.integers(0, classes, rows)


def model_of(classes):
    return expost.LogisticRegression(
        norm=1.0, classes=list(range(classes)), report="leverage", random_state=0
    )


def costs(rows, columns, classes=2):
    """CPU nanoseconds per row of each pass over rows in memory."""
    X, y = rows_of(rows, columns, classes)
    model = model_of(classes).fit(X, y)
    plan, release = model.plan_, model.publication_.release
    records = encode_records(X, y, Declared.of(plan, classes=range(classes)))
    objective = Objective(records, plan.loss, l2=plan.l2)
    theta = np.ravel(release.coefficients)
    timed = {
        "gradient": lambda: objective.evaluate(theta),
        "Hessian": lambda: objective.evaluate(theta, hessian=np.float32),
        "losses": lambda: ex_post_terms(model._private, records, plan.loss, member=True),
        "bounds": lambda: evaluate(release, records, member=True),
    }
    found = {name: 1e9 * cpu(work) / rows for name, work in timed.items()}
    whole, steps = cpu_of_steps(lambda step: perturb(plan, records, noise=noise_source(0), step=step))
    return {
        **found,
        "certificate": 1e9 * steps["Certifying the minimiser"] / rows,
        "whole fit": 1e9 * whole / rows,
    }


def cpu_of_steps(work):
    """CPU seconds of a fit and of each of its steps."""
    times = []
    start = time.process_time()
    work(lambda name: times.append((name, time.process_time())))
    end = time.process_time()
    ends = [at for _, at in times[1:]] + [end]
    return end - start, {name: after - at for (name, at), after in zip(times, ends, strict=True)}


def reading(rows, columns):
    """CPU nanoseconds per row of a Parquet file: in a pass that does nothing else, and in the first."""
    X, y = rows_of(rows, columns)
    plan = expost.calibrate(norm=1.0, fit_intercept=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        names = [*(f"x{k}" for k in range(columns)), "y"]
        parquet.write_table(pa.table([*X.T.copy(), y], names=names), path, compression="none")

        def opened():
            return encode_records(scan(path), "y", Declared.of(plan, classes=[0, 1]))

        records = opened()

        def read():
            for _ in records.sweep(len_of_blocks, products=True):
                pass

        first = cpu(lambda: opened().checked_for(plan.loss, 1.0))
        return {"every pass": 1e9 * cpu(read) / rows, "first reading": 1e9 * first / rows}


def len_of_blocks(blocks):
    """The number of rows of a part."""
    return sum(len(block.X) for block in blocks)


def people(rows=3_000_000, count=400_000, columns=10, files=3):
    """Seconds to fit people in Parquet files and to find everyone's exact loss, here and on a Dask cluster.

    With the GiB of memory that a process had at most, and whether both have the same bits.
    """
    rng = np.random.default_rng(30)
    with tempfile.TemporaryDirectory() as folder:
        for part in range(files):
            X = rng.uniform(-1.0, 1.0, (rows // files, columns))
            y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(X[:, 1] - X[:, 0]))).astype(int)
            held = {"person": rng.integers(0, count, len(X)), **{f"x{k}": X[:, k] for k in range(columns)}}
            parquet.write_table(pa.table({**held, "y": y}), Path(folder) / f"{part}.parquet")
            del X, y, held
        alone = fit_of_people(folder)
        with local_cluster() as client:
            together = fit_of_people(scan(folder, client=client))
            workers = client.run(memory_at_most)
    names = ("fit", "losses", "people")
    return {
        **{name: alone[name] for name in names},
        **{f"{name} on two workers": together[name] for name in names[:2]},
        "GiB of the process": memory_at_most(),
        "GiB of a worker": max(workers.values()),
        "same bits": all(np.array_equal(alone[name], together[name]) for name in ("coefficients", "figures")),
    }


def fit_of_people(table):
    """Seconds of a fit and of exact losses, and what they found."""
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=0)
    start = time.perf_counter()
    model.fit(table, "y", groups="person")
    fitted = time.perf_counter()
    figures = model.ex_post_losses(table, "y", groups="person")
    ended = time.perf_counter()
    coefficients = np.append(model.coef_, model.intercept_)
    seconds = {"fit": fitted - start, "losses": ended - fitted}
    return seconds | {"people": len(figures), "figures": figures, "coefficients": coefficients}


def memory_at_most():
    """GiB that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def people_beside_rows(rows=200_000, count=40_000, columns=50, repeats=30):
    """CPU milliseconds of everyone's exact loss, for rows and for people, and the ratio."""
    X, y = rows_of(rows, columns)
    ids = np.random.default_rng(1).integers(0, count, rows)
    found = {}
    for name, given in (("rows", {}), ("people", {"groups": ids})):
        unit = "person" if given else "row"
        model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit=unit, random_state=0)
        model.fit(X, y, **given)
        found[name] = partial(model.ex_post_losses, X, y, **given)
    # In turns, so that what else the machine does falls on both alike.
    times = np.array([[cpu(work, 1) for work in found.values()] for _ in range(repeats)])
    least = dict(zip(found, (1e3 * times.min(axis=0)).tolist(), strict=True))
    return least | {"ratio": least["people"] / least["rows"]}


@contextmanager
def local_cluster():
    """A client of two workers on this machine."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def overhead(tasks):
    """Seconds per task of a cluster: without work, with a large result, and with some that are slow."""
    with local_cluster() as client:
        engine = DaskEngine(client)
        list(engine.map(sum, [Idle()] * 64, 1))
        found = {}
        for name, work, parts in (
            ("a task with one number", sum, [Idle()] * tasks),
            ("a task with a Hessian of 100 columns", hessian_of, [Idle()] * tasks),
            (
                "a task of 5 ms, one in 50 takes 100 ms",
                sum,
                [Idle(0.1 if k % 50 == 0 else 0.005) for k in range(tasks // 4)],
            ),
        ):
            start = time.perf_counter()
            for _ in engine.map(work, parts, 1):
                pass
            found[name] = (time.perf_counter() - start) / len(parts)
    return found


def hessian_of(blocks):
    """A matrix of the size of a Hessian."""
    return np.zeros((COLUMNS, COLUMNS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--people", action="store_true")
    parser.add_argument("--json", default=RESULTS / "scale.json")
    chosen = parser.parse_args()
    machine.threads = lambda: 1
    console = Console(width=150)
    if chosen.people:
        console.print(people_beside_rows())
        console.print(people())
        return
    sizes = [(*size, 2) for size in ((chosen.rows // 4, 50), *((chosen.rows, d) for d in WIDTHS))]
    sizes += [(chosen.rows // 4, 50, classes) for classes in (3, 10)]
    document = {
        "passes": [{"rows": n, "columns": d, "classes": k, "ns": costs(n, d, k)} for n, d, k in sizes],
        "parquet": {columns: reading(chosen.rows, columns) for columns in WIDTHS},
        "overhead": overhead(chosen.tasks),
    }
    save(chosen.json, document)
    table = Table(title="CPU nanoseconds per row, in memory, one thread", title_justify="left")
    table.add_column("pass")
    for n, d, k in sizes:
        table.add_column(f"{n:,} × {d}, {k} classes", justify="right")
    for name in document["passes"][0]["ns"]:
        table.add_row(name, *(f"{one['ns'][name]:.0f}" for one in document["passes"]))
    console.print(table)
    console.print("Reading Parquet, CPU ns per row:", document["parquet"])
    for name, seconds in document["overhead"].items():
        console.print(f"{name}: {1e3 * seconds:.2f} ms each on two workers")


if __name__ == "__main__":
    main()
