"""Passages about models of ordered classes and of times to an event, in docs/comparison.md."""

from statistics import median

from docs.quoted.marks import Document, paragraph, passage, require, table, together

EPSILONS = (0.1, 1.0, 8.0)
SMALL = 1_000
FIGURES = {"accuracy": "accuracy", "mae": "mean absolute error"}
PEERS = {
    "constant": "no features",
    "plain": "no privacy",
    "ours": "expost",
    "clipped": "DP-GD, clipped, tuned",
}


def _name(row: Document) -> str:
    return str(row["table"].split(": ")[1])


def _size(row: Document) -> str:
    return f"{row['rows']:,} × {row['columns']}"


def _of(document: Document, kind: str, **wanted: object) -> list[Document]:
    """The rows of a kind for which all this is so."""
    return [
        row
        for row in document["rows"]
        if row["kind"] == kind and all(row[name] == value for name, value in wanted.items())
    ]


@passage("rows-tables", "rows")
def rows_tables(document: Document) -> str:
    """The tables' sizes and the number of draws."""
    said = []
    for kind, opening, places in (("ordered", "Ordered classes", 1), ("times", "Times", 0)):
        rows = _of(document, kind, epsilon=1.0)
        named = "classes" if kind == "ordered" else "periods"
        sizes = [f"{_name(row)} ({_size(row)}, {row['places'] + places} {named})" for row in rows]
        said.append(f"{opening}: {together(sizes)}.")
    held = _of(document, "ordered", epsilon=1.0, chosen_on=False)
    require(len(held) >= 4, "four tables of ordered classes are held out")
    draws = together([f"{count}" for count in sorted({row["draws"] for row in document["rows"]})])
    return paragraph(
        f"{' '.join(said)} In brackets are rows for fitting, of which at most 4,000 are taken, and features. "
        f"Figures are medians over {draws} draws of the noise; tables of fewer than 1,000 rows have more."
    )


def _shown(row: Document, figure: str) -> list[str]:
    """A figure of every model that has it; the better of the private ones in bold."""
    found = {peer: row[peer][figure] for peer in PEERS if peer in row}
    private = [found["ours"], found["clipped"]]
    best = min(private) if figure == "mae" else max(private)
    return [
        f"**{value:.3f}**"
        if peer in ("ours", "clipped") and f"{value:.3f}" == f"{best:.3f}"
        else f"{value:.3f}"
        for peer, value in found.items()
    ]


def _ordered_table(document: Document, figure: str) -> str:
    rows = sorted(_of(document, "ordered"), key=lambda row: row["chosen_on"])
    cells = [
        [
            _name(row),
            "for choosing" if row["chosen_on"] else "",
            f"{row['epsilon']:g}",
            *_shown(row, figure),
        ]
        for row in rows
    ]
    return table(f"{FIGURES[figure]} |  | ε | {' | '.join(PEERS.values())}", cells, left=2)


@passage("rows-accuracy", "rows")
def rows_accuracy(document: Document) -> str:
    """The share of classes predicted exactly, first of the tables held out."""
    return _ordered_table(document, "accuracy")


@passage("rows-mae", "rows")
def rows_mae(document: Document) -> str:
    """By how many classes predictions are wrong in the mean."""
    return _ordered_table(document, "mae")


@passage("rows-seen", "rows")
def rows_seen(document: Document) -> str:
    """Where ours stands on the tables held out, in words."""
    said = []
    for epsilon in EPSILONS:
        rows = _of(document, "ordered", epsilon=epsilon, chosen_on=False)
        gaps = [row["clipped"]["accuracy"] - row["ours"]["accuracy"] for row in rows]
        errors = [row["ours"]["mae"] - row["clipped"]["mae"] for row in rows]
        lost = [row["plain"]["accuracy"] - row["ours"]["accuracy"] for row in rows]
        behind, ahead = sum(gap > 0.01 for gap in gaps), sum(gap < -0.01 for gap in gaps)
        useless = sum(row["ours"]["mae"] >= row["constant"]["mae"] for row in rows)
        require(max(gaps) > 0.0 and max(errors) > 0.0, "tuned gradient descent is ahead somewhere")
        said.append(
            f"At ε = {epsilon:g} tuned gradient descent is more accurate by more than 0.01 on {behind} of "
            f"{len(rows)} tables, at most by {max(gaps):.3f}, and ours on {ahead}; its mean absolute error "
            f"is smaller by {max(errors):.3f} at most. The price of privacy is {median(lost):.3f} of the "
            f"accuracy in the median and {max(lost):.3f} at most. On {useless or 'none'} of the tables the "
            "median class without features has as small an error as ours."
        )
    rows = _of(document, "ordered", epsilon=8.0)
    beaten = [_name(row) for row in rows if row["constant"]["accuracy"] > row["plain"]["accuracy"]]
    better = sum(row["clipped"]["mae"] < row["plain"]["mae"] for row in rows)
    require(beaten == ["marriage"] and better > 0, "the best on the test rows is no model to be had")
    said.append(
        "Of all eight tables, marriage is predicted more accurately by its most common class, without "
        "features, than by the model without privacy, which predicts the median. "
        f"On {better} of them gradient descent at ε = 8 has a smaller error than the model without privacy: "
        "it was tuned on the test rows, and nobody could have it."
    )
    return paragraph(" ".join(said))


@passage("rows-times", "rows")
def rows_times(document: Document) -> str:
    """Concordance, first of real tables."""
    cells = [
        [
            _name(row),
            f"{row['rows']:,}",
            f"{row['test_rows']:,}",
            f"{row['epsilon']:g}",
            *_shown(row, "concordance"),
        ]
        for row in _of(document, "times")
    ]
    peers = [name for peer, name in PEERS.items() if peer != "constant"]
    header = f"concordance | rows | for testing | ε | {' | '.join(peers)}"
    return "\n\n".join([table(header, cells), paragraph(_larger_times(document)), _small_times(document)])


def _larger_times(document: Document) -> str:
    """Where ours stands on the tables from which a model can be had."""
    spans = []
    for epsilon in EPSILONS:
        rows = [row for row in _of(document, "times", epsilon=epsilon) if row["rows"] >= SMALL]
        gaps = [row["clipped"]["concordance"] - row["ours"]["concordance"] for row in rows]
        require(min(gaps) > 0.0, "tuned gradient descent is ahead on every larger table")
        worst = max(rows, key=lambda row: row["clipped"]["concordance"] - row["ours"]["concordance"])
        require(_name(worst) == "late payment", "it is ahead most on late payment")
        spans.append(f"{min(gaps):.3f} to {max(gaps):.3f} at ε = {epsilon:g}")
    strict = _of(document, "times", table="times: late payment", epsilon=0.1)[0]
    require(strict["ours"]["concordance"] < 0.5, "ours is no model of late payment at ε = 0.1")
    return (
        f"On the tables of 1,000 people or more tuned gradient descent is ahead by {together(spans)}, most "
        "on late payment, where ours tells nothing at ε = 0.1."
    )


def _small_times(document: Document) -> str:
    """What small tables do not tell."""
    heart = {row["epsilon"]: row for row in _of(document, "times", table="times: heart")}
    few = [row for row in _of(document, "times", epsilon=0.1) if row["rows"] < SMALL]
    require(heart[8.0]["ours"]["concordance"] < 0.5, "most draws on heart have the wrong sign")
    require(all(row["ours"]["concordance"] < 0.6 for row in few), "small tables give no model at ε = 0.1")
    chance = [heart[epsilon]["clipped"]["concordance"] for epsilon in (0.1, 8.0)]
    require(chance[0] > 0.5 > chance[1], "gradient descent on heart has the right sign by chance")
    return paragraph(
        "With the one feature of heart and of strikes the concordance tells nothing but the sign of its "
        "coefficient. On heart most draws of ours have the wrong one even at ε = 8: that is no model. Nor is "
        "any of ours at ε = 0.1 of fewer than 1,000 people. Gradient descent has the right sign on heart at "
        "ε = 0.1 and the wrong one at ε = 8: all its settings see the same draws, whose signs decide."
    )
