"""Write RESULTS.md: everything that was measured, on one page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from papers.redberg_wang_2021.experiment import Experiment, verdict
from papers.redberg_wang_2021.publications import OUR_L2

Document = dict[str, Any]
GLOSSARY = (
    "**Words and symbols.** A *loss* is how far the release moves the log-odds that a person was in the "
    "data; a *bound* is what she can be told about it from what is published, and *bound "
    "/ truth* is their ratio. ε and δ are the promise to everyone (ε₁ for the model, ε₂ and ε₃ for the "
    "statistics), ρ the chance that a bound fails; δ = ρ = 1e-6, per release in sections 1 to 8a as in the "
    "paper, in all in 8b and 9. σ is the noise in the model, λ its regularisation. The statistics are ĝ, "
    "the gradient of the objective with noise σ₂; Ĥ, its Hessian H with noise σ₃, whose largest eigenvalue "
    "has the law of the GOE, with quantile τ; and λ̂, the smallest eigenvalue of H with noise σ₄. A loss "
    "has three terms: the *leverage* (or determinant) term, from how much the record bends the objective (a "
    "is its curvature, μ its leverage, μ̄ the paper's bound on it); the size of the record's gradient (at "
    "most ξ) next to the noise; and the *inner product* of that gradient with the noise drawn (ḡ is the "
    "paper's bound on it). *Bound and report's cost*, or *total*, bounds the loss of everything published; "
    "model and statistics each take half of ρ in it, so it is more than their sum. Medians and bands (10% "
    "to 90%) are over draws of the noise, from seeds."
)


def render(experiments: Sequence[Experiment], documents: Sequence[Document]) -> str:
    """The page, from the files of numbers only."""
    parts = [_introduction(documents), _verdicts(experiments, documents)]
    parts += [
        _section(experiment, document) for experiment, document in zip(experiments, documents, strict=True)
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(documents: Sequence[Document]) -> str:
    found = {document["experiment"]: document["numbers"] for document in documents}
    lines = [
        "# Privately Publishable Per-instance Privacy: reproduced, corrected, compared",
        "",
        "R. Redberg and Y.-X. Wang (NeurIPS 2021) train a model with differential privacy by objective "
        "perturbation and publish, beside it, what every person needs to compute how much of her own "
        "privacy the model cost. This page repeats every experiment of the paper on real and synthetic "
        "data, checks its claims as numbers, and sets our reports beside the paper's. It is written by "
        "`make paper`; every number comes from the JSON files in `results`.",
    ]
    if any(document["effort"] == "quick" for document in documents):
        lines += ["", "**A quick run with few draws of the noise: look at the verdicts, not at the digits.**"]
    lines += ["", _reception(documents)]
    if {"02_regularization", "09_comparison"} <= set(found):
        lines += ["", _gains(found), "", _picture()]
    return "\n".join([*lines, "", GLOSSARY])


def _reception(documents: Sequence[Document]) -> str:
    claims = [claim for document in documents for claim in document["claims"]]
    paper = Counter(claim["holds"] for claim in claims if claim["whose"] == "paper")
    formulas = Counter(claim["whose"] for claim in claims if not claim["holds"])
    return (
        "**What the paper claims, and what we see.** Its main message stands: most losses after the fact "
        f"are far below the worst case, and can be published. Of its {paper.total()} claims checked here, "
        f"with its formulas corrected and limits in brackets that are ours, {paper[True]} hold, "
        f"{paper[None]} hold in part or under one reading of what the paper leaves open and not under "
        f"another, and {paper[False]} do not hold. {formulas['erratum']} of its formulas do not stand as "
        f"printed and {formulas['loose']} are looser than need be; the last section shows each by an "
        "experiment, and everything else here uses the corrected forms."
    )


def _gains(found: Mapping[str, Any]) -> str:
    numbers = found["09_comparison"]
    at = {
        name: {key: row["1"] for key, row in table.items() if isinstance(row, dict)}
        for name, table in numbers["tables"].items()
    }
    noise = [
        row["paper_sigma"] / row["ours_sigma"] for row in found["02_regularization"]["epsilons"].values()
    ]

    def pairs(one: str, other: str, key: str, digits: str) -> str:
        return ", ".join(
            f"{rows[one][key][1]:{digits}} for {rows[other][key][1]:{digits}} ({name})"
            for name, rows in at.items()
        )

    promised, accounting = (
        ", ".join(f"{row[kind]:.2g} ({name})" for name, row in numbers["promises"].items())
        for kind in ("independent", OUR_L2)
    )
    credit = at["credit"]
    readings, theirs = (
        ", ".join(
            f"{credit[f'{side} {kind}']['our_ratio'][1]:.1f} for "
            f"{credit[f'{side} {kind}']['paper_ratio'][1]:.1f} ({kind})"
            for kind in kinds
        )
        for side, kinds in (
            ("ours", ("independent", "leverage", "dependent", "adaptive")),
            ("paper", ("independent", "dependent", "adaptive")),
        )
    )
    largest = {
        side: [
            rows[key]["total_max"][1]
            for name, rows in at.items()
            if name != "kidney"
            for key in rows
            if key.startswith(side) and "," not in key
        ]
        for side in ("ours", "paper")
    }
    told = ", ".join(
        f"{row['independent']:.2g} ({name})" for name, row in numbers["savings"]["most exposed"].items()
    )
    return "\n".join(
        [
            "**What we do better, and by how much.**",
            "",
            "- *Less noise for the same promise*: for the model alone the paper's calibration adds "
            f"{min(noise):.1f} to {max(noise):.1f} times the noise of ours, and more where statistics are "
            "published beside it.",
            "- *Better models for the same promise* (1, 1e-6), both without statistics: AUC "
            + pairs("ours independent", "paper independent", "auc", ".3f")
            + ".",
            "- *A smaller promise for the same model*: as good a model as the paper's at ε = 1 costs ε = "
            f"{promised} with ours, and {accounting} where the paper's has our rule for λ too, so that only "
            "the accounting differs.",
            f"- *A sharper reading of the same file*: on credit the median bound over truth is {readings} "
            f"on our files, whose λ is below what its Algorithm 2 requires, and {theirs} on the paper's own.",
            "- *No condition on λ from the report, no budget to share by hand, intervals with a lower end.*",
            "",
            "**What the paper's does better, and what is not our doing.**",
            "",
            "- *Its data-dependent release is closer to the truth than our default*: median bound over truth "
            + pairs("paper dependent", "ours dependent", "ratio", ".1f")
            + ". It gives four fifths of the budget to the statistics, at a cost to the model: AUC "
            + pairs("paper dependent", "ours dependent", "auc", ".3f")
            + ". Ours comes close with `split=0.02`, and is then told a larger total (section 9).",
            "- *Ours spends the promise*: on credit and Adult our publications tell the most exposed "
            f"person {min(largest['ours']):.2g} to {max(largest['ours']):.2g} in all at ε = 1, which is "
            f"above ε (a bound at this confidence can be), the paper's {min(largest['paper']):.2g} to "
            f"{max(largest['paper']):.2g}.",
            "- *What a person is told for a model of the same quality is a matter of λ*, without "
            f"statistics, and not of accounting. Ours tells the most exposed one {told} times less than "
            "the paper's data-independent release, and as much as that release tells with our rule for λ.",
        ]
    )


def _picture() -> str:
    return (
        "![Loss told against the quality of the model, ours and the "
        "paper's](figures/09_comparison.png)\n\n*What a person is told (up) for a model of a given quality "
        "(across), on three tables: ours solid, the paper's dashed, the paper's with our rule for λ as "
        "open squares. Down and to the right is better; section 9 has the numbers.*"
    )


def _verdicts(experiments: Sequence[Experiment], documents: Sequence[Document]) -> str:
    lines = ["## All verdicts", "", "| | statement | verdict |", "|---|---|---|"]
    for experiment, document in zip(experiments, documents, strict=True):
        anchor = _anchor(f"{experiment.number}. {experiment.title}")
        for claim in document["claims"]:
            outcome = verdict(claim["holds"], claim["whose"])
            shown = outcome if claim["holds"] else f"**{outcome}**"
            lines.append(f"| [{experiment.number}](#{anchor}) | {_stated(claim)} | {shown} |")
    return "\n".join(lines)


def _section(experiment: Experiment, document: Document) -> str:
    name = experiment.name
    lines = [
        f"## {experiment.number}. {experiment.title}",
        "",
        experiment.text(document["numbers"]),
        "",
        f"![{experiment.title}](figures/{name}.png)",
        "",
        f"*{experiment.caption}* ([vector](figures/{name}.svg), [numbers](results/{name}.json))",
        "",
    ]
    for claim in document["claims"]:
        outcome = verdict(claim["holds"], claim["whose"]).capitalize()
        lines.append(f"- {_stated(claim)} **{outcome}**: {claim['measured']}.")
    return "\n".join(lines)


def _stated(claim: Document) -> str:
    mark = {"ours": "*(ours)* ", "extension": "*(beyond the paper)* "}.get(claim["whose"], "")
    return f"{mark}{claim['statement']}"


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -").replace(" ", "-")
