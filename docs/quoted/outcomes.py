"""Passages about models of counts, amounts and quantiles, in docs/calibration.md and docs/comparison.md."""

from docs.quoted.marks import Document, paragraph, passage, require, short, table, together

KINDS = ("counts", "amounts", "quantiles")
EPSILONS = (0.1, 1.0, 8.0)


def shortfall(document: Document, kind: str, epsilon: float, width: float) -> float:
    """How far D² is below that without privacy, in the mean over tables, with the width's own ridge."""
    rows = [
        min(row["below"], document["worst"])
        for row in document["rows"]
        if (row["kind"], row["epsilon"], row["width"], row["ridge"]) == (kind, epsilon, width, 1.0)
    ]
    return float(sum(rows) / len(rows))


@passage("outcome-rules", "outcome rules")
def outcome_rules(document: Document) -> str:
    """Widths that were tried, and those that were chosen."""
    widths = sorted({row["width"] for row in document["rows"]})
    cells = []
    for kind in KINDS:
        for epsilon in EPSILONS:
            found = {width: shortfall(document, kind, epsilon, width) for width in widths}
            best = min(found.values())
            shown = [f"**{value:.3f}**" if value == best else f"{value:.3f}" for value in found.values()]
            cells.append([kind, f"{epsilon:g}", *shown])
    names = {row["table"].split(": ")[1] for row in document["rows"]}
    opening = (
        f"Other widths were tried on {len(names)} tables ({together(sorted(names))}), of which four are of "
        "each kind. How far D² lies below that of the model without privacy, in the mean over tables, for "
        f"multiples of the defaults, with the λ that follows, δ = {short(document['delta'])}, "
        f"{document['draws']} draws (`python -m bench.outcome_rules`); the best in bold:"
    )
    closing = (
        "Counts seem to gain by twice the width, but on four other tables they lose by it ([comparison.md]"
        "(comparison.md)), so that it stayed. Half the width of amounts is better at ε = 1 on tables of 300 "
        "rows, and worse on larger ones, where it moves the mean further down: it stayed too."
    )
    header = " | ".join(["", "ε", *(f"× {width:g}" for width in widths)])
    return "\n\n".join([paragraph(opening), table(header, cells), paragraph(closing)])


PEERS = {"plain": "no privacy", "ours": "expost", "clipped": "DP-GD, clipped, tuned"}


def _case(row: Document) -> str:
    level = f", level {row['level']:g}" if "level" in row else ""
    return f"{row['table'].split(': ')[1]}{level}"


def _held(document: Document, **wanted: object) -> list[Document]:
    """The rows of tables that were held out."""
    return [
        row
        for row in document["rows"]
        if not row["chosen_on"] and all(row[name] == value for name, value in wanted.items())
    ]


@passage("outcomes-tables", "outcomes")
def outcomes_tables(document: Document) -> str:
    """The tables' sizes and the number of draws."""
    said = []
    for kind in KINDS:
        of_kind = {row["table"].split(": ")[1]: row for row in document["rows"] if row["kind"] == kind}
        require(
            sum(not row["chosen_on"] for row in of_kind.values()) >= 4,
            "four tables of each kind are not for choosing",
        )
        sizes = [f"{name} ({row['rows']:,} × {row['columns']})" for name, row in of_kind.items()]
        said.append(f"{kind.capitalize()}: {together(sizes)}.")
    draws = together([f"{count}" for count in sorted({row["draws"] for row in document["rows"]})])
    return paragraph(
        f"{' '.join(said)} In brackets are rows for fitting and columns; other widths were tried on the "
        f"first four of each kind. Figures are medians over {draws} draws of the noise; larger tables have "
        "fewer."
    )


@passage("outcomes-d2", "outcomes")
def outcomes_d2(document: Document) -> str:
    """D² on test rows, first of the tables held out."""
    cells = []
    for row in sorted(document["rows"], key=lambda one: (KINDS.index(one["kind"]), one["chosen_on"])):
        best = max(row[peer]["d2"] for peer in ("ours", "clipped"))
        shown = [
            f"**{row[peer]['d2']:.3f}**"
            if peer != "plain" and f"{row[peer]['d2']:.3f}" == f"{best:.3f}"
            else f"{row[peer]['d2']:.3f}"
            for peer in PEERS
        ]
        used = "for choosing" if row["chosen_on"] else ""
        cells.append([row["kind"], _case(row), used, f"{row['epsilon']:g}", *shown])
    return table(f"| table |  | ε | {' | '.join(PEERS.values())}", cells, left=3)


@passage("outcomes-seen", "outcomes")
def outcomes_seen(document: Document) -> str:
    """Where ours stands on the tables held out, in words."""
    said = []
    for epsilon in EPSILONS:
        rows = _held(document, epsilon=epsilon)
        gaps = sorted((row["clipped"]["d2"] - row["ours"]["d2"], _case(row), row["kind"]) for row in rows)
        behind = sum(gap > 0.01 for gap, *_ in gaps)
        ahead = sum(gap < -0.01 for gap, *_ in gaps)
        lost = sorted(row["plain"]["d2"] - row["ours"]["d2"] for row in rows)
        said.append(
            f"At ε = {epsilon:g} tuned gradient descent is ahead by more than 0.01 in {behind} of "
            f"{len(gaps)} cases, at most by {gaps[-1][0]:.3f} ({gaps[-1][2]}, {gaps[-1][1]}), and ours in "
            f"{ahead}; the price of privacy is {lost[len(lost) // 2]:.3f} in the median and "
            f"{lost[-1]:.3f} at most."
        )
    small = [row for row in _held(document, epsilon=0.1) if row["rows"] < 1000]
    require(
        all(row["ours"]["d2"] < 0.3 for row in small),
        "at ε = 0.1 tables of less than 1,000 rows give little",
    )
    changes = {
        chosen: [
            row["wider"]["d2"] - row["ours"]["d2"]
            for row in document["rows"]
            if "wider" in row and row["chosen_on"] == chosen
        ]
        for chosen in (True, False)
    }
    means = {chosen: sum(found) / len(found) for chosen, found in changes.items()}
    require(means[False] < 0.0 < means[True], "twice the width of counts helps only where it was chosen")
    said.append(
        "At ε = 0.1 tables of less than 1,000 rows give hardly a model. Twice the width of counts, the best "
        f"on the tables for choosing ({means[True]:+.3f} in the mean), is worse here ({means[False]:+.3f}, "
        f"from {min(changes[False]):+.3f} to {max(changes[False]):+.3f}), so that the default stayed."
    )
    return paragraph(" ".join(said))
