"""Passages about the certificate, in docs/auditing.md and docs/mathematics.md."""

from docs.quoted.marks import Document, paragraph, passage, require, share, short, table

BESIDE = {
    "independent": "nothing",
    "leverage": "Hessian",
    "dependent": "gradient and Hessian",
    "adaptive": "gradient, Hessian and eigenvalue",
}
LOSSES = {
    "LogisticLoss(soft=False)": "logistic",
    "LogisticLoss(soft=True)": "soft logistic",
    "SmoothedHinge(scale=0.5)": "smoothed hinge",
    "PseudoHuber(threshold=1.0)": "pseudo-Huber",
}


def strong_and_weak(document: Document) -> tuple[list[Document], Document]:
    """The audits with l2 = 5/ε, and the one with less."""
    rows = document["regularisations"]
    strong = [row for row in rows if row["l2"] * row["epsilon"] >= 5.0]
    (weak,) = (row for row in rows if row not in strong)
    return strong, weak


def saved_noise(row: Document) -> str:
    """How much less noise would be enough for the worst data found."""
    return f"{1.0 - row['attaining_sigma'] / row['sigma']:.0%}"


@passage("audit-regularisations", "audit")
def audit_regularisations(document: Document) -> str:
    """Audited and certified δ of the logistic loss."""
    rows = document["regularisations"]
    (trials,) = {row["trials"] for row in rows}
    opening = (
        f"Logistic loss, rows of norm 1, δ = {short(document['delta'])}, the noise that `calibrate` chooses; "
        f"one coefficient, seed {document['seed']}, {trials} random pairs after the structured ones (`python "
        "-m bench.audit`)."
    )
    cells = [
        [f"{row['epsilon']:g}", f"{row['l2']:g}", f"{row['sigma']:.4f}", share(row["share"])] for row in rows
    ]
    return f"{paragraph(opening)}\n\n{table('ε | l2 | noise σ | audited δ / certified δ', cells, left=0)}"


@passage("audit-gap", "audit")
def audit_gap(document: Document) -> str:
    """Where the certificate is sharp, and how large the gap is elsewhere."""
    strong, weak = strong_and_weak(document)
    require(min(row["share"] for row in strong) > 0.999, "there is no gap with l2 = 5/ε")
    sharp = (
        "With l2 = 5/ε there is no gap: the two differ only by the tolerance of the calibration. In the "
        "worst data sets many other rows pull against the record and hold the coefficients where its slope "
        "is largest. The publication is then a Gaussian mechanism that releases this slope."
    )
    gap = (
        f"At l2 = {weak['l2']:g} and ε = {weak['epsilon']:g} the worst data found attain "
        f"{weak['share']:.2f} of the certified δ. In terms of noise: with σ = "
        f"{weak['attaining_sigma']:.2f} instead of {weak['sigma']:.2f}, {saved_noise(weak)} less, "
        f"they would reach {short(document['delta'])}. The "
        "certificate is for every convex regulariser, and other rows cannot bend the objective as sharply as "
        "the worst of these can. Part of the gap are the cells that it is computed on."
    )
    return f"{paragraph(sharp)}\n\n{paragraph(gap)}"


@passage("audit-others", "audit")
def audit_others(document: Document) -> str:
    """Other losses, and what is published with the model."""
    rows = document["others"]
    ((epsilon, l2, trials),) = {(row["epsilon"], row["l2"], row["trials"]) for row in rows}
    opening = f"Other plans at ε = {epsilon:g} and l2 = {l2:g}, with {trials} random pairs:"
    cells = [[LOSSES[row["loss"]], BESIDE[row["report"]], share(row["share"])] for row in rows]
    require(min(row["share"] for row in rows) > 0.99, "no certificate leaves a gap at l2 = 5")
    closing = (
        "There is no gap to speak of. Where the label does not fix the sign of the slope, the sign could "
        "follow the noise, and both of its tails would count; with this l2 the slope has no room for that, "
        "and the certificate knows."
    )
    header = "loss | published with the model | audited δ / certified δ"
    return f"{opening}\n\n{table(header, cells, left=2)}\n\n{paragraph(closing)}"


@passage("audit-classes", "audit")
def audit_classes(document: Document) -> str:
    """Three classes: what real tables attain, and the noise that they need."""
    rows = document["three_classes"]
    opening = (
        f"Plain softmax, three classes, one feature, ε = 1, δ = {short(document['delta'])}, the noise that "
        "`calibrate` chooses; many short rows of the record's own class, on the other side of zero:"
    )
    cells = [
        [f"{row['l2']:g}", f"{row['sigma']:.3f}", f"{row['attaining_sigma']:.3f}", share(row["share"], 3)]
        for row in rows
    ]
    header = "l2 | noise σ | σ at which they attain δ | audited δ / certified δ"
    gaps = [1.0 - row["attaining_sigma"] / row["sigma"] for row in rows]
    require(gaps == sorted(gaps, reverse=True), "the gap in noise falls as l2 grows")
    closing = (
        f"No valid accounting could do with less noise than the second σ: at l2 = {rows[-1]['l2']:g} that is "
        f"{gaps[-1]:.0%} below the certificate's, at l2 = {rows[0]['l2']:g} {gaps[0]:.0%}."
    )
    return f"{paragraph(opening)}\n\n{table(header, cells, left=0)}\n\n{paragraph(closing)}"


@passage("audit-sharp", "audit")
def audit_sharp(document: Document) -> str:
    """The least share with strong regularisation."""
    return share(min(row["share"] for row in strong_and_weak(document)[0]), digits=3)


@passage("audit-weak", "audit")
def audit_weak(document: Document) -> str:
    """The share with weak regularisation, and the gap in terms of noise."""
    _, weak = strong_and_weak(document)
    return (
        rf"At $\varepsilon = {weak['epsilon']:g}$, $\lambda = {weak['l2']:g}$ the worst pair found reaches "
        rf"{weak['share']:.2f} of section 16's, a gap of {saved_noise(weak)} in $\sigma$"
    )
