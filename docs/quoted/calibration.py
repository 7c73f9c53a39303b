"""Passages about the split, in docs/calibration.md."""

from docs.quoted.marks import Document, paragraph, passage, require, short, table
from expost.privacy.statistics import REPORT_KINDS


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
