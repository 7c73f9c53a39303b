"""Passages about the noise of the statistics, in docs/calibration.md."""

from docs.quoted.marks import Document, paragraph, passage, require, short, table


@passage("rule", "reports")
def rule(document: Document) -> str:
    """Totals and bounds by default and with the split that was the default before."""
    figures = {
        (row["table"], row["epsilon"], row["report"], row["split"] is None): row
        for group in ("chosen_on", "others")
        for row in document[group]
    }
    cells, saved = [], {}
    for group in ("chosen_on", "others"):
        for name in dict.fromkeys(row["table"] for row in document[group]):
            for kind in ("leverage", "dependent", "adaptive"):
                now, before = (figures[name, 1.0, kind, default] for default in (True, False))
                alone = figures[name, 1.0, "independent", True]
                label = f"{name}, {now['rows']:,} rows" if kind == "leverage" else ""
                totals = [f"{before['total']:.3f}", f"**{now['total']:.3f}**"]
                bounds = [f"{before['upper']:.3f}", f"{now['upper']:.3f}"]
                cells.append([label, f"`{kind}`", *totals, *bounds, f"{alone['total']:.3f}"])
        saved[group] = [
            now["total"] / figures[name, epsilon, kind, False]["total"]
            for (name, epsilon, kind, default), now in figures.items()
            if default and kind != "independent" and now in document[group]
        ]
    for ratios in saved.values():
        require(max(ratios) < 1.0, "the default has a smaller total on every table and at every epsilon")
    opening = (
        f"Medians over members and over {document['draws']} draws of the noise, at ε = 1, δ = "
        f"{short(document['delta'])} and confidence {document['confidence']:.0%} "
        "(`python -m bench.reports`). *Before* is split=0.98 for `leverage` and 0.5 for the others, read by "
        "the same reader:"
    )
    header = (
        "table | report | total before | total | bound for the model before | bound for the model | "
        "model alone"
    )
    first, last = (f"{min(saved[group]):.2f} to {max(saved[group]):.2f}" for group in ("chosen_on", "others"))
    closing = (
        f"Over ε = 0.1, 1 and 8 and all kinds of report the total is {first} of what it was on the tables "
        f"that the rule was chosen on, and {last} of it on the others."
    )
    return f"{paragraph(opening)}\n\n{table(header, cells, left=2)}\n\n{paragraph(closing)}"
