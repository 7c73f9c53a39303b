"""RESULTS.md: everything that was measured, as one page that reads well on its own."""

from collections.abc import Sequence
from typing import Any

from papers.redberg_wang_2021.experiment import Experiment
from papers.redberg_wang_2021.publications import savings

Document = dict[str, Any]
WORDS = {True: "holds", False: "does **not** hold"}


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
    claims = [claim for document in documents for claim in document["claims"]]
    paper = [claim for claim in claims if claim["whose"] == "paper"]
    errata = [claim for claim in claims if claim["whose"] == "erratum"]
    quick = any(document["effort"] == "quick" for document in documents)
    lines = [
        "# Privately Publishable Per-instance Privacy, reproduced and surpassed",
        "",
        "R. Redberg and Y.-X. Wang (NeurIPS 2021) train a model with differential privacy by objective "
        "perturbation and publish, beside it, what every person needs to compute how much of her own "
        "privacy the model cost. This page repeats every experiment of the paper on real and synthetic "
        "data, checks its claims as numbers, and sets our reports beside the paper's. It is written by "
        "`make paper`; every number comes from the JSON files in [results](results).",
    ]
    if quick:
        lines += ["", "**A quick run with few draws of the noise: look at the verdicts, not at the digits.**"]
    lines += [
        "",
        "**What the paper claims, and what we see.** Its main message stands: losses after the fact are "
        f"far below the worst case, and can be published. Of its {len(paper)} claims checked here, "
        f"{sum(claim['holds'] for claim in paper)} hold; the {len(errata)} slips in its formulas (the last "
        "section) are each shown by an experiment, and everything else here uses the corrected forms.",
    ]
    if "09_comparison" in found and "02_regularization" in found:
        lines += ["", _headline(found)]
    return "\n".join(lines)


def _headline(found: dict[str, Any]) -> str:
    tables = found["09_comparison"]["tables"]
    median = {name: savings(tables[name], "total") for name in ("credit", "adult")}
    exposed = {name: savings(table, "total_max") for name, table in tables.items()}
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
            f"{_range(exposed)} times less. On the small kidney table the median patient is the exception, "
            "and section 10 says why.",
            "- *No conditions*: no lower limit on λ, no budgets to share by hand, intervals with a lower "
            "end, sound for one record, for many, and for all at once.",
        ]
    )


def _verdicts(experiments: Sequence[Experiment], documents: Sequence[Document]) -> str:
    lines = ["## All verdicts", "", "| | statement | verdict |", "|---|---|---|"]
    for number, (experiment, document) in enumerate(zip(experiments, documents, strict=True), 1):
        for claim in document["claims"]:
            mark = {"paper": "", "ours": "*(ours)* ", "erratum": ""}[claim["whose"]]
            lines.append(
                f"| [{number}](#{_anchor(number, experiment)}) | {mark}{claim['statement']} | "
                f"{WORDS[claim['holds']]} |"
            )
    return "\n".join(lines)


def _section(number: int, experiment: Experiment, document: Document) -> str:
    lines = [
        f"## {number}. {experiment.title}",
        "",
        experiment.text(document["numbers"]),
        "",
        f"![{experiment.title}](figures/{experiment.name}.png)",
        "",
        f"*{experiment.caption}* ([vector](figures/{experiment.name}.svg), "
        f"[numbers](results/{experiment.name}.json))",
        "",
    ]
    for claim in document["claims"]:
        who = "*(ours)* " if claim["whose"] == "ours" else ""
        lines.append(
            f"- {who}{claim['statement']} **{'Holds' if claim['holds'] else 'Does not hold'}**: "
            f"{claim['measured']}."
        )
    return "\n".join(lines)


def _anchor(number: int, experiment: Experiment) -> str:
    """As GitHub makes one of a heading."""
    kept = (sign for sign in f"{number}. {experiment.title}".lower() if sign.isalnum() or sign in " -")
    return "".join(kept).replace(" ", "-")


def _range(factors: dict[str, dict[str, float]]) -> str:
    return ", ".join(
        f"{min(row.values()):.2g} to {max(row.values()):.2g} ({name})" for name, row in factors.items()
    )
