"""Passages about the noise of the statistics, in docs/calibration.md, and about what plans cost together."""

import math
from collections.abc import Callable

from docs.quoted.marks import Document, paragraph, passage, require, short, table

GROUPS = ("chosen_on", "others")


def _pairs(document: Document) -> dict[tuple[str, str, float, str], tuple[Document, Document, Document]]:
    """By group, table, epsilon and report: the figures before and now, and those of the model alone."""
    found = {}
    for group in GROUPS:
        rows = {(row["table"], row["epsilon"], row["report"], row["split"]): row for row in document[group]}
        for (name, epsilon, kind, split), before in rows.items():
            if split is not None:
                now, alone = rows[name, epsilon, kind, None], rows[name, epsilon, "independent", None]
                found[group, name, epsilon, kind] = before, now, alone
    return found


def _ratios(document: Document, group: str) -> str:
    """How the totals have changed, over all tables of a group, kinds of report and epsilons."""
    ratios = [
        now["total"] / before["total"]
        for key, (before, now, _) in _pairs(document).items()
        if key[0] == group
    ]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _table(document: Document) -> str:
    cells = []
    for (_, name, epsilon, kind), (before, now, alone) in _pairs(document).items():
        if epsilon == 1.0:
            label = f"{name}, {now['rows']:,} rows" if kind == "leverage" else ""
            totals = [f"{before['total']:.3f}", f"**{now['total']:.3f}**"]
            bounds = [f"{before['upper']:.3f}", f"{now['upper']:.3f}"]
            cells.append([label, f"`{kind}`", *totals, *bounds, f"{alone['total']:.3f}"])
    header = "table | report | total before | total | bound before | bound | model alone"
    return table(header, cells, left=2)


def by_epsilon(rows: list[Document], cell: Callable[[Document], str]) -> str:
    """One table: a line for each data set, a column for each ε."""
    epsilons = sorted({row["epsilon"] for row in rows})
    found = {(row["table"], row["epsilon"]): row for row in rows}
    names = dict.fromkeys(row["table"] for row in rows)
    header = "table | " + " | ".join(f"ε = {epsilon:g}" for epsilon in epsilons)
    return table(header, [[name, *(cell(found[name, at]) for at in epsilons)] for name in names])


@passage("rule", "reports")
def rule(document: Document) -> str:
    """Totals and bounds by default and with the split that was the default before."""
    opening = (
        f"Medians over members and over {document['draws']} draws of the noise, at ε = 1, δ = "
        f"{short(document['delta'])} and confidence {document['confidence']:.0%} "
        "(`python -m bench.reports`). *Before* is split=0.98 for `leverage` and 0.5 for the others, read by "
        "the same reader; *bound* is for the model. Gradients are capped, as is the default:"
    )
    closing = (
        f"Over ε = 0.1, 1 and 8 the totals are {_ratios(document, 'chosen_on')} of what they were on the "
        f"first three tables and {_ratios(document, 'others')} of it on the others. A cap leaves the "
        "Hessian little for nothing, so that a split has a noisy one too."
    )
    return f"{paragraph(opening)}\n\n{_table(document)}\n\n{paragraph(closing)}"


@passage("rule-plain", "reports, plain")
def rule_plain(document: Document) -> str:
    """The same without a cap."""
    pairs = _pairs(document)
    require(
        all(now["total"] < before["total"] for before, now, _ in pairs.values()),
        "without a cap the rule has a smaller total on every table and at every epsilon",
    )
    opening = (
        "Without a cap (`python -m bench.reports --plain`), where the Hessian is almost free and a split "
        f"spends all that is left on it, the totals are {_ratios(document, 'chosen_on')} of what they were "
        f"on the first three tables and {_ratios(document, 'others')} of it on the others, and "
        "smaller everywhere:"
    )
    return f"{paragraph(opening)}\n\n{_table(document)}"


@passage("more-regularisation", "more regularisation")
def more_regularisation(document: Document) -> str:
    """Regressions with more than the default regularisation."""
    rows, times = document["rows"], document["times"]
    worst = min(rows, key=lambda row: row["gained"])
    lost = [row for row in rows if row["gained"] + 2.0 * row["error"] < -0.003]
    require(len(lost) > 0, "some table loses more than 0.003 with more regularisation")
    saved = [1.0 - after / before for before, after in (row["sigmas"] for row in rows)]
    opening = (
        f"Differences of R² between {times:g} times the default λ and the default: means over "
        f"{document['draws']} draws, the same seeds for both (`python -m bench.more_regularisation`):"
    )
    cells = by_epsilon(rows, lambda row: f"{row['gained']:+.4f} ± {2.0 * row['error']:.4f}")
    closing = (
        f"The noise falls by {min(saved):.1%} to {max(saved):.1%}. {len(lost)} of {len(rows)} cases lose "
        f"more than 0.003, {worst['table']} at ε = {worst['epsilon']:g} {-worst['gained']:.3f}. So the "
        "default stays as it is."
    )
    return f"{paragraph(opening)}\n\n{cells}\n\n{paragraph(closing)}"


@passage("moments", "recalibrated regression")
def moments(document: Document) -> str:
    """Regressions with and without five moments."""
    rows = document["rows"]
    lost = max(row["plain"] - row["recalibrated"] for row in rows)
    require(lost < 0.005, "no table loses more than 0.005 by recalibration")
    opening = (
        f"R² of rows that were not fitted, by default → with `recalibrate=True`, medians of "
        f"{document['draws']} draws (`python -m bench.recalibrated_regression`):"
    )
    cells = by_epsilon(rows, lambda row: f"{row['plain']:.3f} → {row['recalibrated']:.3f}")
    closing = f"Where there is nothing to correct it costs up to {lost:.3f}."
    return f"{paragraph(opening)}\n\n{cells}\n\n{paragraph(closing)}"


def _up(number: float) -> str:
    """Three digits, rounded up: what is certified is an upper bound."""
    return f"{math.ceil(1000 * number) / 1000:.3f}"


@passage("compositions", "calibration")
def compositions(document: Document) -> str:
    """Epsilons of several plans together, rounded up."""
    counts, budget = document["counts"], document["budget"]
    cells = [["added up", *(f"{count * budget['epsilon']:g}" for count in counts)]]
    cells += [[row["loss"], *(_up(one) for one in row["epsilons"])] for row in document["rows"]]
    return table(" | " + " | ".join(map(str, counts)), cells)


@passage("several-outcomes", "calibration")
def several_outcomes(document: Document) -> str:
    """The noise of each of several outcomes as models with one budget, and as rows of one person."""
    found = document["several_outcomes"]
    require(
        all(
            one < rows for row in found["rows"] for one, rows in zip(row["models"], row["rows"], strict=True)
        ),
        "models of their own are less noisy than rows of one person",
    )
    header = " | ".join(f"{count} {way}" for way in ("models", "as rows") for count in found["counts"])
    cells = [
        [f"ε = {row['epsilon']:g}", *(f"{one:.2f}" for one in row["models"] + row["rows"])]
        for row in found["rows"]
    ]
    return table(f" | {header}", cells)


@passage("ten-models", "calibration")
def ten_models(document: Document) -> str:
    """What ten models by default cost together."""
    (row,) = (row for row in document["rows"] if row["loss"].startswith("logistic, capped"))
    budget, ten = document["budget"], row["epsilons"][document["counts"].index(10)]
    require(ten < 0.4 * 10 * budget["epsilon"], "ten models cost far less than their sum")
    return (
        f"Ten logistic models of ({budget['epsilon']:g}, {short(budget['delta'])}) cost ε = {_up(ten)} at "
        f"{short(document['delta'])} together, certified, not {10 * budget['epsilon']:g}"
    )
