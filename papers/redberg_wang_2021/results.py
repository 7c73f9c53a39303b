"""RESULTS.md: everything that was measured, as one page that reads well on its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from papers.redberg_wang_2021.experiment import Experiment

Document = dict[str, Any]
AGAINST = {
    "paper": "does not hold",
    "ours": "does not hold",
    "erratum": "wrong as printed",
    "loose": "looser than need be",
}


def render(experiments: Sequence[Experiment], documents: Sequence[Document]) -> str:
    """The page, from the files of numbers alone."""
    parts = [_introduction(documents), _verdicts(experiments, documents)]
    parts += [
        _section(number, experiment, document)
        for number, (experiment, document) in enumerate(zip(experiments, documents, strict=True), 1)
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(documents: Sequence[Document]) -> str:
    found = {document["experiment"]: document["numbers"] for document in documents}
    lines = [
        "# Privately Publishable Per-instance Privacy, reproduced and surpassed",
        "",
        "R. Redberg and Y.-X. Wang (NeurIPS 2021) train a model with differential privacy by objective "
        "perturbation and publish, beside it, what every person needs to compute how much of her own "
        "privacy the model cost. This page repeats every experiment of the paper on real and synthetic "
        "data, checks its claims as numbers, and sets our reports beside the paper's. It is written by "
        "`make paper`; every number comes from the JSON files in [results](results).",
    ]
    if any(document["effort"] == "quick" for document in documents):
        lines += ["", "**A quick run with few draws of the noise: look at the verdicts, not at the digits.**"]
    lines += ["", _reception(documents)]
    if {"02_regularization", "09_comparison"} <= set(found):
        lines += ["", _gains(found), "", _picture()]
    lines += [
        "",
        "A loss is the log-odds by which the release speaks for or against a person having been in the "
        "data; a bound is what she can be told about it from what is published. δ = ρ = 1e-6 throughout, "
        "as in the paper: each bound may fail once in a million. Bands and medians are over draws of the "
        "noise, from seeds.",
    ]
    return "\n".join(lines)


def _reception(documents: Sequence[Document]) -> str:
    claims = [claim for document in documents for claim in document["claims"]]
    paper = [claim for claim in claims if claim["whose"] == "paper"]
    wrong = sum(claim["whose"] == "erratum" and not claim["holds"] for claim in claims)
    loose = sum(claim["whose"] == "loose" and not claim["holds"] for claim in claims)
    return (
        "**What the paper claims, and what we see.** Its main message stands: losses after the fact are far "
        f"below the worst case, and can be published. Of its {len(paper)} claims checked here, "
        f"{sum(claim['holds'] for claim in paper)} hold. {wrong} of its formulas are wrong as printed and "
        f"{loose} are looser than need be; the last section shows each by an experiment, and everything else "
        "here uses the corrected forms."
    )


def _gains(found: Mapping[str, Any]) -> str:
    tables = found["09_comparison"]["tables"]
    saved = found["09_comparison"]["savings"]
    median = {name: saved["median"][name] for name in ("credit", "adult")}
    noise = [
        row["paper_sigma"] / row["ours_sigma"] for row in found["02_regularization"]["epsilons"].values()
    ]
    scores = {
        name: (table["ours independent"]["1"]["auc"][1], table["paper independent"]["1"]["auc"][1])
        for name, table in tables.items()
    }
    return "\n".join(
        [
            "**What we do better, and by how much.**",
            "",
            f"- *Less noise for the same promise*: the paper's calibration adds {min(noise):.1f} to "
            f"{max(noise):.1f} times the noise of ours to the model alone, and more where statistics are "
            "published beside it.",
            "- *Better models at the same (ε, δ) = (1, 1e-6)*: AUC "
            + ", ".join(f"{ours:.3f} for {theirs:.3f} ({name})" for name, (ours, theirs) in scores.items())
            + ", both without statistics.",
            "- *Smaller figures for the same model*: at the quality that the paper's publications have at "
            f"ε = 1, the median person is told {_range(median)} times less, and the most exposed one "
            f"{_range(saved['most exposed'])} times less. On the small kidney table the median patient is "
            "the exception; section 10 says why.",
            "- *No conditions*: no lower limit on λ, no budgets to share by hand, intervals with a lower "
            "end, sound for one record, for many, and for all at once.",
        ]
    )


def _picture() -> str:
    return (
        "![Loss told against the quality of the model, ours and the "
        "paper's](figures/09_comparison.png)\n\n*What a person is told (up) for a model of a given quality "
        "(across), on three tables: ours in solid blue and green, the paper's dashed. Down and to the right "
        "is better; section 10 has the numbers.*"
    )


def _range(factors: Mapping[str, Mapping[str, float]]) -> str:
    return ", ".join(
        f"{min(row.values()):.2g} to {max(row.values()):.2g} ({name})" for name, row in factors.items()
    )


def _verdicts(experiments: Sequence[Experiment], documents: Sequence[Document]) -> str:
    lines = ["## All verdicts", "", "| | statement | verdict |", "|---|---|---|"]
    for number, (experiment, document) in enumerate(zip(experiments, documents, strict=True), 1):
        anchor = _anchor(f"{number}. {experiment.title}")
        for claim in document["claims"]:
            verdict = "holds" if claim["holds"] else f"**{AGAINST[claim['whose']]}**"
            lines.append(f"| [{number}](#{anchor}) | {_stated(claim)} | {verdict} |")
    return "\n".join(lines)


def _section(number: int, experiment: Experiment, document: Document) -> str:
    name = experiment.name
    lines = [
        f"## {number}. {experiment.title}",
        "",
        experiment.text(document["numbers"]),
        "",
        f"![{experiment.title}](figures/{name}.png)",
        "",
        f"*{experiment.caption}* ([vector](figures/{name}.svg), [numbers](results/{name}.json))",
        "",
    ]
    for claim in document["claims"]:
        verdict = "holds" if claim["holds"] else AGAINST[claim["whose"]]
        lines.append(f"- {_stated(claim)} **{verdict.capitalize()}**: {claim['measured']}.")
    return "\n".join(lines)


def _stated(claim: Document) -> str:
    return f"*(ours)* {claim['statement']}" if claim["whose"] == "ours" else str(claim["statement"])


def _anchor(heading: str) -> str:
    """As GitHub makes one of a heading."""
    return "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -").replace(" ", "-")
