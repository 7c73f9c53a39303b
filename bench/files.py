"""Time and measure fits of tables in files: a large CSV file, and Parquet larger than the memory allowed.

    python -m bench.files [--rows 1000000] [--parquet-rows 3000000] [--skip-csv] [--skip-parquet]

Each measurement runs in a process of its own. Resident memory is the most that the process ever had. The
Parquet files are read under a limit of the address space: what the process had when everything was imported,
and 0.35 GB. The same rows in memory, fitted in another process, are what it is compared with.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv, parquet
from rich.console import Console
from rich.table import Table

# Seconds and megabytes for the CSV file; ratio and megabytes for Parquet.
GOALS = {"csv seconds": 3.0, "csv megabytes": 350, "parquet ratio": 3.0, "parquet growth": 150}
_ROOM = 350_000_000
_NUMBERS, _WARDS = 8, ("north", "south", "east", "west")

_HEAD = """
import json, os, resource, sys, time
def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024
"""
_CSV = """
sys.argv = ["expost", "fit", "domain.toml", "table.csv", "-o", "p.json", "--losses", "private.csv", "--force"]
start = time.perf_counter()
from expost.__main__ import main
try:
    main()
except SystemExit as end:
    assert not end.code
used = time.perf_counter() - start
cpu = time.process_time()
print(json.dumps({"seconds": used, "cpu": cpu, "resident": status("VmHWM")}), file=sys.stderr)
"""
_PARQUET = """
import numpy as np, expost
import expost.fitting.mechanism, sklearn.linear_model, pyarrow.parquet, expost.data.lazy_source
from expost.data.tables import scan
from expost.fitting.ex_post import streamed_terms
from expost.publication.readings import encoded_records
kind = sys.argv[1]
def model():
    return expost.LogisticRegression(norm=1.0, classes=[0, 1], report="leverage", random_state=0)
model().fit(np.eye(60)[:, :50], np.arange(60) % 2)
if kind == "memory":
    table = pyarrow.parquet.read_table("table.parquet")
    X = np.column_stack([table.column(name).to_numpy() for name in table.column_names[:-1]])
    y = table.column("y").to_numpy()
    del table
    records = (X, y)
else:
    records = ("table.parquet",)
    limit = status("VmSize") + int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = status("VmRSS")
start, cpu = time.perf_counter(), time.process_time()
fitted = model().fit(*records)
fit, fit_cpu = time.perf_counter() - start, time.process_time() - cpu
growth = status("VmHWM") - before
start, cpu = time.perf_counter(), time.process_time()
if kind == "memory":
    largest = float(np.max(fitted.ex_post_losses(X, y)))
else:
    lazy = encoded_records(fitted.publication_, scan("table.parquet"))
    parts = streamed_terms(fitted._private, lazy, fitted.plan_.loss, member=True)
    largest = max(float(np.max(part.loss)) for part in parts)
losses, losses_cpu = time.perf_counter() - start, time.process_time() - cpu
print(json.dumps({"fit": fit, "fit_cpu": fit_cpu, "growth": growth, "losses": losses,
    "losses_cpu": losses_cpu, "losses_growth": status("VmHWM") - before, "largest": largest,
    "theta": [*fitted.coef_.ravel().tolist(), *np.ravel(fitted.intercept_).tolist()]}), file=sys.stderr)
"""


def run(folder, code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", _HEAD + code, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stderr.strip().splitlines()[-1])


def write_csv(folder, rows):
    """Numbers, texts and an outcome: eleven columns, about 71 MB for a million rows."""
    rng = np.random.default_rng(0)
    columns = {f"x{k}": np.round(100.0 * rng.random(rows), 3) for k in range(_NUMBERS)}
    columns["ward"] = rng.choice(_WARDS, rows)
    columns["smoker"] = rng.choice(["yes", "no"], rows)
    columns["ill"] = np.where(columns["x0"] + 40.0 * rng.normal(size=rows) > 50.0, "yes", "no")
    arrow_csv.write_csv(pa.table(columns), folder / "table.csv")
    features = [
        f'[[features]]\nname = "x{k}"\nkind = "number"\nlow = 0.0\nhigh = 100.0\n' for k in range(_NUMBERS)
    ]
    wards = json.dumps(_WARDS)
    features += [f'[[features]]\nname = "ward"\nkind = "category"\ncategories = {wards}\n']
    features += ['[[features]]\nname = "smoker"\nkind = "yes_no"\n']
    label = '[label]\nname = "ill"\nkind = "classes"\nclasses = ["no", "yes"]\n'
    (folder / "domain.toml").write_text("\n".join([*features, label]), encoding="utf-8")


def write_parquet(folder, rows, features=50, run=250_000):
    """Numbers that do not compress, in row groups, and a column of labels."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=features)
    names = [*(f"x{k}" for k in range(features)), "y"]
    fields = [*((name, pa.float64()) for name in names[:-1]), ("y", pa.int64())]
    with parquet.ParquetWriter(folder / "table.parquet", pa.schema(fields), compression="none") as writer:
        for start in range(0, rows, run):
            X = rng.normal(size=(min(run, rows - start), features)) / features**0.5
            y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ truth))).astype(np.int64)
            writer.write_table(pa.table([*X.T.copy(), y], names=names))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parquet-rows", type=int, default=3_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip-csv", action="store_true")
    parser.add_argument("--skip-parquet", action="store_true")
    chosen = parser.parse_args()
    table = Table(title="Tables in files", title_justify="left")
    for heading in ("what", "seconds", "CPU seconds", "MB", "against memory", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not chosen.skip_csv:
            write_csv(folder, chosen.rows)
            size = (folder / "table.csv").stat().st_size / 1e6
            found = [run(folder, _CSV) for _ in range(chosen.repeats)]
            best = min(found, key=lambda one: one["seconds"])
            table.add_row(
                f"expost fit --losses, {chosen.rows:,} × 11 CSV ({size:.0f} MB)",
                f"{best['seconds']:.2f}",
                f"{best['cpu']:.2f}",
                f"{best['resident'] / 1e6:.0f}",
                "",
                f"{GOALS['csv seconds']:g} s, {GOALS['csv megabytes']} MB",
            )
        if not chosen.skip_parquet:
            write_parquet(folder, chosen.parquet_rows)
            memory = run(folder, _PARQUET, "memory")
            file = run(folder, _PARQUET, "file", _ROOM)
            apart = np.max(np.abs(np.array(file["theta"]) - memory["theta"]))
            goal = f"ratio {GOALS['parquet ratio']:g}, {GOALS['parquet growth']} MB"
            for what, growth in (("fit", "growth"), ("losses", "losses_growth")):
                table.add_row(
                    f"{what}, {chosen.parquet_rows:,} × 50 Parquet, 0.35 GB allowed",
                    f"{file[what]:.2f}",
                    f"{file[what + '_cpu']:.2f}",
                    f"{file[growth] / 1e6:.0f}",
                    f"{file[what] / memory[what]:.2f} (of {memory[what]:.2f} s)",
                    goal,
                )
            table.add_row("largest difference of coefficients", "", "", "", f"{apart:.1e}", "1e-12")
            table.add_row(
                "largest loss, from the files and in memory",
                "",
                "",
                "",
                f"{file['largest']:.9f} {memory['largest']:.9f}",
                "",
            )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
