"""Passages about a noisy count that the rules of a fit could follow, in docs/comparison.md."""

from docs.quoted.marks import Document, paragraph, passage, require, table

PARTS = {"tuning": "tables of choice", "hold-out": "hold-out", "second hold-out": "second hold-out"}
EPSILONS = ("0.1", "1", "8")


def _worst(found: list[object]) -> str:
    name, epsilon, change = found
    return f"{change:+.4f} ({name}, {epsilon:g})"


@passage("counted", "counted")
def counted(document: Document) -> str:
    """What rules by a noisy count change against the default, on the tables of choice and on the others."""
    auc, loss = document["limits"]
    best = document["rules"]["within the limits"]
    require(best["tuning"]["beyond_auc"] + best["tuning"]["beyond_log_loss"] == 0, "a rule keeps the limits")
    last = best["second hold-out"]
    require(last["beyond_auc"] + last["beyond_log_loss"] > 0, "no rule by a count keeps the limits elsewhere")
    opening = (
        f"Changes of AUC / log-loss against the default, medians over {document['draws']} draws, one split "
        "(`python -m bench.counted`). C and λ are the default's, a count is over the noise σ₁ of a Gaussian "
        "mechanism of sensitivity 1:"
    )
    cells = []
    for title, rule in document["rules"].items():
        for part, name in PARTS.items():
            found = rule[part]
            means = [f"{found['auc'][at]:+.4f} / {found['log_loss'][at]:+.4f}" for at in EPSILONS]
            worst = [_worst(found["worst_auc"]), _worst(found["worst_log_loss"])]
            beyond = f"{found['beyond_auc']}, {found['beyond_log_loss']} of {found['cases']}"
            label = (
                (title if title.startswith("always") else f"{title}: {rule['rule']}")
                if part == "tuning"
                else ""
            )
            cells.append([label, name, *means, *worst, beyond])
    header = (
        "rule | tables | ε = 0.1 | ε = 1 | ε = 8 | worst AUC | worst log-loss | "
        f"beyond {auc:g} of AUC, {loss:g} of log-loss"
    )
    return f"{paragraph(opening)}\n\n{table(header, cells, left=2)}"
