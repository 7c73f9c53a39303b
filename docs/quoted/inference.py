"""Passages about confidence intervals, in docs/inference.md."""

from docs.quoted.marks import Document, paragraph, passage, require, short, table


def _rows(found: Document) -> list[list[str]]:
    return [
        [
            name,
            f"{row['tables']}",
            short(row["epsilon"]),
            "" if row["coefficients"] is None else f"{row['coefficients']:.1%}",
            "" if row["probabilities"] is None else f"{row['probabilities']:.1%}",
            f"{row['undetermined']:.1%}",
        ]
        for name, row in found.items()
    ]


_HEADER = "{} | tables | ε | coefficients | probabilities | not determined"


@passage("inference-coverage", "inference")
def coverage(document: Document) -> str:
    """The settings in which intervals must hold."""
    found = document["settings"]
    for row in found.values():
        rates = (row["coefficients"], row["probabilities"])
        require(all(0.93 <= rate <= 0.97 for rate in rates), "coverage is between 93% and 97%")
        require(row["tables"] >= 400, "coverage is measured over 400 tables")
        require(row["undetermined"] < 0.01, "nearly every coefficient is determined")
    opening = (
        "How many intervals of 95% cover the truth over simulated tables, with `split=0.98` and `cap=1.0` "
        "(`python -m bench.inference`):"
    )
    return f"{paragraph(opening)}\n\n{table(_HEADER.format('table'), _rows(found), left=1)}"


@passage("inference-others", "inference")
def others(document: Document) -> str:
    """Other losses and reports."""
    found = document["others"]
    require(found["plain labels, capped"]["coefficients"] < 0.7, "a capped loss misses the log-odds")
    kept = [row["coefficients"] for name, row in found.items() if name != "plain labels, capped"]
    require(min(kept) >= 0.93, "other models cover as often as they say")
    opening = (
        "Other models, of 5,000 to 20,000 rows. A capped loss covers the coefficients of its own model, and "
        "misses log-odds if labels follow the plain one:"
    )
    return f"{paragraph(opening)}\n\n{table(_HEADER.format('model'), _rows(found), left=1)}"


@passage("inference-breaks", "inference")
def breaks(document: Document) -> str:
    """Tables that are too small, or too steep for their size."""
    found = document["breaks"]
    small = found["200 rows, ε = 1"]
    require(small["undetermined"] > 0.1, "200 rows leave coefficients undetermined")
    require(small["coefficients"] > 0.95, "the others have intervals that are too wide")
    steep = found["10,000 rows, ε = 1, log-odds up to 12"]
    require(steep["coefficients"] < 0.9, "large effects break it")
    closing = (
        "Small tables break it at ε = 1: coefficients are not determined, and the others have intervals that "
        "are too wide, because they count what is not. At ε = 8 the noise is small, and 200 rows "
        "of 3 features suffice. The default split needs some ten times as many rows. Log-odds that "
        "are large for the table break it as well: one step does not undo what the penalty did, intervals "
        "are too narrow, and a note says so."
    )
    return f"{table(_HEADER.format('table'), _rows(found), left=1)}\n\n{paragraph(closing)}"


@passage("inference-widths", "inference")
def widths(document: Document) -> str:
    """Widths against those without privacy."""
    parts = []
    for name, title in (("credit", "Credit"), ("adult", "Adult")):
        found = document[name]
        ratios = [
            row["private_error"] / row["error"] for row in found["terms"] if row["private_error"] is not None
        ]
        require(min(ratios) > 1.0, "private intervals are wider")
        opening = (
            f"{title}, {found['rows']:,} rows, ε = {short(found['epsilon'])}: standard errors of `Logit` of "
            f"statsmodels on the same clipped features without privacy, and ours (medians of {found['fits']} "
            "fits). The "
            "distance is that between the two coefficients, in private standard errors."
        )
        cells = [
            [
                f"`{row['term']}`",
                f"{row['estimate']:.3g}",
                f"{row['error']:.2g}",
                "not determined" if row["private_error"] is None else f"{row['private_error']:.2g}",
                "" if row["private_error"] is None else f"{row['private_error'] / row['error']:.2f}",
                "" if row["distance"] is None else f"{row['distance']:.2f}",
                f"{row['determined']:.0%}",
            ]
            for row in found["terms"]
        ]
        header = "coefficient | without privacy | its error | private error | ratio | distance | determined"
        closing = (
            f"With all features of the domain, {found['whole_determined']:.0f} of {found['whole_terms']} "
            "coefficients are determined."
        )
        parts.append(f"{paragraph(opening)}\n\n{table(header, cells, left=1)}\n\n{closing}")
    return "\n\n".join(parts)
