"""The passage about ranges that are chosen privately, in docs/domain.md."""

from docs.quoted.marks import Document, passage, require, table

EPSILON = 0.1
TABLES = ("incomes", "blood pressures")


@passage("ranges", "ranges")
def ranges(document: Document) -> str:
    """How far chosen ends are from the best candidates, by the number of rows."""
    found = {(one["table"], one["rows"]): one for one in document if one["epsilon"] == EPSILON}
    counts = sorted({rows for _, rows in found})
    for one in found.values():
        require(one["rank"] <= one["pinball"], "ranks are the better score")
    require(found["incomes", counts[0]]["too_wide"] > 0.1, "few rows give ranges that are too wide")
    cells = []
    for rows in counts:
        here = [found[name, rows] for name in TABLES]
        by_rank = [text for one in here for text in (f"{one['rank']:.2f}", f"{one['too_wide']:.0%}")]
        pinball = " and ".join(f"{one['pinball']:.1f}" for one in here)
        cells.append([f"{rows:,}", *by_rank, pinball])
    header = "rows | incomes | too wide | blood pressures | too wide | by the pinball loss"
    return table(header, cells, left=0)
