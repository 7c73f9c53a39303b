"""Passages about the largest eigenvalue, in docs/goe.md."""

from docs.quoted.marks import Document, paragraph, passage, require, table, together


@passage("tracy-widom", "goe")
def tracy_widom(document: Document) -> str:
    """The error of the asymptotic law."""
    rows = document["tracy_widom"]
    require(
        all(row["tracy_widom_far"] > row["far"] for row in rows),
        "the Tracy–Widom quantile is too large in the upper tail",
    )
    cells = [
        [f"{row['d']}", f"{row['error']:.3f}"]
        + [f"{row[key]:.3f}" for key in ("near", "tracy_widom_near", "far", "tracy_widom_far")]
        + [f"{row['sf_at_tracy_widom_far']:.1e}"]
        for row in rows
    ]
    header = (
        "$d$ | largest error of the cdf | 0.995-quantile, exact | T–W | (1 − 5e-7)-quantile, exact | T–W | "
        "true sf there"
    )
    closing = (
        "In the upper tail the Tracy–Widom quantile is too large at every dimension tried. That is safe for "
        "privacy, but the margin is wider than needed. `python -m bench.goe` prints this table and draws the "
        "error."
    )
    return f"{table(header, cells, left=0)}\n\n{paragraph(closing)}"


@passage("smallest-cdf", "goe")
def smallest_cdf(document: Document) -> str:
    """Where the distribution function is returned as zero."""
    found = document["smallest_cdf"]
    return f"{together([f'{value:.0e}' for value in found.values()])} in dimensions {together(list(found))}"
