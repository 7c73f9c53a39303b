"""A gradient pass over one table in the layouts of several libraries, compared with a C matrix."""

import time

import numpy as np
import pandas as pd
import polars as pl
from rich.table import Table

import expost
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.sources import ArraySource
from expost.data.tables import open_table
from expost.fitting.objective import Objective

GOAL = 1.5
PLAIN = "a C matrix"


def _columns(X):
    return {f"c{place}": np.ascontiguousarray(column) for place, column in enumerate(X.T)}


LAYOUTS = {
    "a Fortran matrix": np.asfortranarray,
    "a float32 matrix": lambda X: X.astype(np.float32),
    "pandas": lambda X: pd.DataFrame(_columns(X)),
    "pandas, from a matrix": lambda X: pd.DataFrame(X, copy=False),
    "polars": lambda X: pl.DataFrame(_columns(X)),
    "arrow": lambda X: pl.DataFrame(_columns(X)).to_arrow(),
}


def _objective(table, y):
    rows = open_table(table)
    records = Encoded(ArraySource(rows), Design(rows.n_features, 1.0, True)).labelled(y)
    return Objective(records, expost.LogisticLoss(), l2=1.0)


def compare_layouts(X, y, repeats):
    """For each layout the best times of a gradient pass, and those of a C matrix in between."""
    y, theta = y.astype(float), np.random.default_rng(2).normal(size=X.shape[1] + 1)
    plain, found = _objective(X, y), {}
    for name, make in LAYOUTS.items():
        other = _objective(make(X), y)
        times = []
        for _ in range(max(repeats, 5)):
            start = time.perf_counter()
            plain.evaluate(theta)
            middle = time.perf_counter()
            other.evaluate(theta)
            times.append((middle - start, time.perf_counter() - middle))
        found[name] = np.min(times, axis=0).tolist()
    return found


def show_layouts(found, console):
    table = Table(title=f"A gradient pass, beside {PLAIN} (goal {GOAL:g})", title_justify="left")
    for column in ("layout", "seconds", f"{PLAIN}, seconds", "ratio"):
        table.add_column(column, justify="left" if column == "layout" else "right")
    for name, (plain, other) in found.items():
        table.add_row(name, f"{other:.4f}", f"{plain:.4f}", f"{other / plain:.2f}")
    console.print(table)
