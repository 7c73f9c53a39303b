"""Passages about the quality of the models, in docs/calibration.md and README.md."""

from docs.quoted.marks import Document, paragraph, passage, require, short, table, together
from expost.privacy.statistics import REPORT_KINDS


@passage("utility", "utility")
def utility(document: Document) -> str:
    """The table of test AUC."""
    rows = [
        [row["table"], f"{row['epsilon']:g}"]
        + [f"{row[key]:.3f}" for key in ("plain", "default", "best", "classical")]
        + ["" if row["dpsgd"] is None else f"{row['dpsgd']:.3f}"]
        for row in document["rows"]
    ]
    return table(
        "table | ε | no privacy | expost, untuned | best λ on the test set | classical | DP-SGD, tuned "
        "outside the budget",
        rows,
    )


@passage("utility-draws", "utility")
def utility_draws(document: Document) -> str:
    """How many draws the medians are over."""
    return f"{document['draws']}"


@passage("utility-peeking", "utility")
def utility_peeking(document: Document) -> str:
    """How far the default is from the best λ of the grid."""
    short = {(row["table"], row["epsilon"]): row["best"] - row["default"] for row in document["rows"]}
    (name, epsilon), worst = max(short.items(), key=lambda item: item[1])
    elsewhere = max(gap for case, gap in short.items() if case != (name, epsilon))
    factors = together([f"{factor:g}" for factor in document["factors"]])
    return paragraph(
        f"The best λ is chosen among {factors} times the default. The AUC of the default is lower by at most "
        f"{worst:.3f} ({name} at ε = {epsilon:g}), and elsewhere by at most {elsewhere:.3f}. The default "
        "rule was chosen on these same tables, so they are not an independent test of it. The rule uses "
        "neither the dimension nor the number of rows; rules that use them were not tried."
    )


@passage("utility-encodings", "utility")
def utility_encodings(document: Document) -> str:
    """How far the comparison with DP-SGD goes."""
    plain = {row["table"]: row["plain"] for row in document["rows"]}
    given = document["dpsgd_plain"]
    require(0.0 < plain["credit"] - given["credit"] < 0.02, "the credit encoding is slightly in our favour")
    require(abs(plain["adult"] - given["adult"]) < 0.001, "the two encodings of Adult agree")
    return paragraph(
        "The figures of DP-SGD are given, not measured by the benchmark. The credit bounds count the delay "
        "codes of zero and below as no delay. This raises the AUC of the model without privacy to "
        f"{plain['credit']:.3f}. The figures of DP-SGD come from an encoding with {given['credit']:.3f}, so "
        "the comparison on credit is slightly in our favour. On Adult the two encodings agree, at "
        f"{plain['adult']:.3f}."
    )


@passage("above-dpsgd", "utility")
def above_dpsgd(document: Document) -> str:
    """The ε at which the default beats DP-SGD on both tables."""
    rows = [row for row in document["rows"] if row["dpsgd"] is not None]
    require(
        {row["table"] for row in rows} == {"credit", "adult"}, "credit and Adult are compared with DP-SGD"
    )
    require(all(row["default"] > row["dpsgd"] for row in rows), "the default beats DP-SGD at every ε")
    return together([f"{epsilon:g}" for epsilon in sorted({row["epsilon"] for row in rows})])


# The split: docs/calibration.md.


def _emphasised(split: str, *, default: float) -> str:
    return f"**{split}**" if float(split) == default else split


@passage("splits", "reports")
def splits(document: Document) -> str:
    """Model and bound as functions of the split."""
    leverage, dependent = document["splits"]["leverage"], document["splits"]["dependent"]
    smaller = 1.0 - dependent["0.5"]["upper"] / dependent["0.9"]["upper"]
    require(smaller > 0.2, "a split of 0.5 has a much smaller bound than one of 0.9")
    require(dependent["0.9"]["auc"] - dependent["0.5"]["auc"] < 0.005, "its model is hardly worse")
    require(
        leverage["0.8"]["ratio"] > 0.95 * leverage["0.98"]["ratio"],
        "a split below 0.98 hardly improves the bound",
    )
    cells = [
        [f"`{kind}`", _emphasised(split, default=REPORT_KINDS[kind].model_share), f"{row['auc']:.4f}"]
        + [f"{row[key]:.3f}" for key in ("truth", "upper", "upper95")]
        + [f"{row['ratio']:.1f}", f"{row['total']:.3f}"]
        for kind, rows in document["splits"].items()
        for split, row in rows.items()
    ]
    opening = (
        f"The {document['table']} data at a total of ε = {document['epsilon']:g}, δ = "
        f"{short(document['delta'])}, for members, confidence {document['confidence']:.0%}, medians over "
        f"people and over {document['draws']} draws of the noise (`python -m bench.reports`); the defaults "
        "in bold:"
    )
    header = "report | split | test AUC | true loss | bound | 95% of bounds below | bound / truth | total"
    return f"{paragraph(opening)}\n\n{table(header, cells)}"
