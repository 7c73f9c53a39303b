"""Passages about what a pass costs, and what many workers would take, in docs/scale.md."""

from docs.quoted.marks import Document, paragraph, passage, require, table, together

PASSES = ("gradient", "Hessian", "losses", "bounds", "certificate", "whole fit")
# The table of the projection, its workers, the rows of a task, and how often a large fit makes each pass.
ROWS, COLUMNS, WORKERS, TASK = 10**9, 100, 100, 1 << 17
FIT = {"first reading": 1, "gradient": 3, "Hessian": 2, "certificate": 1}
NUMBER, HESSIAN = "a task with one number", "a task with a Hessian of 100 columns"
SLOW = "a task of 5 ms, one in 50 takes 100 ms"


def size(one: Document) -> str:
    """The rows and columns of a table, and its classes where there are more than two."""
    classes = "" if one["classes"] == 2 else f", {one['classes']} classes"
    return f"{one['rows']:,} × {one['columns']}{classes}"


@passage("scale-passes", "scale")
def passes(document: Document) -> str:
    """Nanoseconds per row of each pass, in memory, and of reading a file."""
    measured = document["passes"]
    cells = [[name, *(f"{one['ns'][name]:,.0f}" for one in measured)] for name in PASSES]
    read = document["parquet"]

    def each(kind: str) -> str:
        return together([f"{one[kind]:,.0f}" for one in read.values()])

    told = (
        f"To read a row from Parquet takes {each('every pass')} ns at {together([*read])} columns, in every "
        f"pass; the first pass over a file, which checks it and holds what is small, takes "
        f"{each('first reading')} ns with the reading."
    )
    header = " | ".join(["pass", *(size(one) for one in measured)])
    return "\n\n".join([table(header, cells), paragraph(told)])


def projected(document: Document, name: str) -> tuple[float, float]:
    """Seconds of each worker and of the driver for one pass of the projected table."""
    (here,) = (one["ns"] for one in document["passes"] if (one["columns"], one["classes"]) == (COLUMNS, 2))
    read = document["parquet"][f"{COLUMNS}"]
    each = read[name] if name in read else here[name] + read["every pass"]
    task = NUMBER if name in ("first reading", "gradient") else HESSIAN
    return each * 1e-9 * ROWS / WORKERS, document["overhead"][task] * ROWS / TASK


@passage("scale-projection", "scale")
def projection(document: Document) -> str:
    """What a fit of a very large table would take on many workers."""
    found = {name: projected(document, name) for name in FIT}
    cells = [
        [name, f"{FIT[name]}", f"{worker:.0f} s", f"{driver:.0f} s"]
        for name, (worker, driver) in found.items()
    ]
    whole = sum(FIT[name] * max(both) for name, both in found.items())
    single, hessian, slow = (1e3 * document["overhead"][name] for name in (NUMBER, HESSIAN, SLOW))
    require(abs(hessian - single) < single, "a Hessian costs the driver about what a number does")
    losses, bounds = (projected(document, name)[0] for name in ("losses", "bounds"))
    told = (
        f"{whole / 60:.1f} minutes for the fit, {losses:.0f} s for everyone's exact loss and {bounds:.0f} s "
        f"for bounds. The driver spends {single:.0f} ms on a "
        f"task that does nothing and {hessian:.0f} ms on one that returns a Hessian of 100 columns, with "
        "scheduler and workers on the same two cores; files with large row groups have fewer tasks. Tasks of "
        f"5 ms of which one in fifty takes 100 ms took {slow:.1f} ms each on two workers, where 3.5 ms would "
        "be the least."
    )
    header = "pass | times | work of each worker | work of the driver"
    return "\n\n".join([table(header, cells), paragraph(told)])
