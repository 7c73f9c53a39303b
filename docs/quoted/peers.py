"""Passages about other private models, in docs/comparison.md and README.md."""

from statistics import fmean, median

from docs.quoted.marks import Document, paragraph, passage, require, table, together

Row = dict[str, Document]
TITLES = {
    "plain": "no privacy",
    "ours": "expost",
    "recalibrated": "recalibrated",
    "unclipped": "DP-GD",
    "clipped": "DP-GD, clipped",
    "fixed": "one setting",
    "private": "tuned privately",
    "newton": "DP-Newton",
    "adassp": "AdaSSP",
    "ssp": "SSP",
    "kifer": "Kifer et al.",
}
FIGURES = {"auc": "AUC", "r2": "R²", "log_loss": "log-loss", "calibration": "calibration error"}
CLASSES = ("plain", "ours", "recalibrated", "unclipped", "clipped", "fixed", "private", "newton", "kifer")
NUMBERS = ("plain", "ours", "clipped", "fixed", "private", "adassp", "ssp", "kifer")
# What clipped gradient descent is, by how its setting was found.
KINDS = {
    "clipped": "DP-GD, tuned on the test set",
    "fixed": "DP-GD, one setting",
    "private": "DP-GD, tuned privately",
}
# Differences below this are not called better or worse.
LEVEL = 0.01


def chosen(document: Document, figure: str) -> list[Row]:
    """The rows that have a figure; there are enough draws behind each."""
    require(document["draws"] >= 20, "every median is over at least 20 draws")
    return [row for row in document["rows"] if figure in row["ours"]]


def cell(row: Row, peer: str, figure: str, *, largest: bool) -> str:
    """A figure, in bold where no private model has a better one."""
    values = [row[other][figure] for other in TITLES if other in row and other != "plain"]
    best = max(values) if largest else min(values)
    text = f"{row[peer][figure]:.3f}"
    return f"**{text}**" if peer != "plain" and text == f"{best:.3f}" else text


def case(row: Row) -> str:
    """A table and its ε, in words."""
    return f"{row['table']} at ε = {row['epsilon']:g}"


def figures(document: Document, figure: str, peers: tuple[str, ...], *, largest: bool) -> str:
    """One table: a line for each data set and ε; † marks what was held out."""
    names = [f"{name} †" if name in document["held_out"] else name for name in ordered(document)]
    shown = dict(zip(ordered(document), names, strict=True))
    cells = [
        [shown[str(row["table"])], f"{row['epsilon']:g}"]
        + [cell(row, peer, figure, largest=largest) for peer in peers]
        for row in chosen(document, figure)
    ]
    return table(f"table | ε | {' | '.join(TITLES[peer] for peer in peers)}", cells)


def ordered(document: Document) -> list[str]:
    """The tables in their order."""
    return list(dict.fromkeys(row["table"] for row in document["rows"]))


def behind(document: Document, peer: str, figure: str) -> list[tuple[float, Row]]:
    """How far ours is behind a peer, the largest first; negative where ours is better."""
    sign = -1.0 if figure in ("log_loss", "calibration") else 1.0
    rows = [row for row in chosen(document, figure) if peer in row]
    gaps = [(sign * (row[peer][figure] - row["ours"][figure]), row) for row in rows]
    return sorted(gaps, key=lambda pair: -pair[0])


def standing(document: Document, peer: str, figure: str) -> list[str]:
    """In how many cases ours is better and worse than a peer, and the case in which it is furthest behind."""
    gaps = behind(document, peer, figure)
    better, worse = sum(gap < -LEVEL for gap, _ in gaps), sum(gap > LEVEL for gap, _ in gaps)
    largest, row = gaps[0]
    furthest = f"{largest:.3f}, {case(row)}" if largest > 0.0 else "never behind"
    return [KINDS.get(peer, TITLES[peer]), FIGURES[figure], f"{len(gaps)}", f"{better}", f"{worse}", furthest]


@passage("peers-tables", "peers")
def peers_tables(document: Document) -> str:
    """The tables' sizes and the number of draws."""
    sizes = {row["table"]: row for row in document["rows"]}
    told = together(
        [
            f"{name} ({row['rows']:,} rows, {row['test_rows']:,} for testing, {row['columns']} columns)"
            for name, row in sizes.items()
        ]
    )
    counts = together([f"{count}" for count in sorted({row["draws"] for row in document["rows"]})])
    return paragraph(
        f"The tables are {told}. Columns are counted with the constant. Figures are medians over {counts} "
        "draws of the noise; the large tables have the smaller number."
    )


@passage("peers-auc", "peers")
def peers_auc(document: Document) -> str:
    """AUC on test rows."""
    return figures(document, "auc", CLASSES, largest=True)


@passage("peers-r2", "peers")
def peers_r2(document: Document) -> str:
    """R² on test rows."""
    return figures(document, "r2", NUMBERS, largest=True)


@passage("peers-log-loss", "peers")
def peers_log_loss(document: Document) -> str:
    """Log-loss on test rows."""
    return figures(document, "log_loss", CLASSES, largest=False)


@passage("peers-calibration", "peers")
def peers_calibration(document: Document) -> str:
    """Calibration error on test rows."""
    return figures(document, "calibration", CLASSES, largest=False)


@passage("peers-seen", "peers")
def peers_seen(document: Document) -> str:
    """Where ours is better and where it is worse, counted."""
    cells = [
        standing(document, peer, figure)
        for figure, peers in (
            ("auc", CLASSES[3:]),
            ("log_loss", CLASSES[3:]),
            ("calibration", CLASSES[3:]),
            ("r2", NUMBERS[2:]),
        )
        for peer in peers
    ]
    header = (
        f"against | in | cases | ours better by more than {LEVEL:g} | worse by more than {LEVEL:g} | "
        "furthest behind"
    )
    clips = sorted(
        row["clipped"]["auc_setting"]["clip"] for row in chosen(document, "auc") if row["epsilon"] < 1.0
    )
    closing = (
        "Differences are taken before rounding. A clip has to be chosen, and the best one differs from table "
        "to table: at ε = 0.1 it is between "
        f"{clips[0]:g} and {clips[-1]:g} of R for the AUC."
    )
    return f"{table(header, cells, left=2)}\n\n{paragraph(closing)}"


@passage("peers-kinds", "peers")
def peers_kinds(document: Document) -> str:
    """Means or medians over tables of ours and of three kinds of gradient descent, by ε."""

    def middle(rows: list[Row], peer: str, *figures: str) -> str:
        # One table on which a rate is too large would decide the mean of R², which has no lower limit.
        over = median if figures == ("r2",) else fmean
        return " / ".join(f"{over(row[peer][figure] for row in rows):.3f}" for figure in figures)

    def lines(figures: tuple[str, ...], peers: list[str], *, held_out: bool) -> list[list[str]]:
        rows = [
            row
            for row in chosen(document, figures[0])
            if not held_out or row["table"] in document["held_out"]
        ]
        tables = len({row["table"] for row in rows})
        epsilons = sorted({row["epsilon"] for row in rows})
        what = f"{tables} {'held out' if held_out else 'tables'}"
        parts = {epsilon: [row for row in rows if row["epsilon"] == epsilon] for epsilon in epsilons}
        return [
            [what, f"{epsilon:g}", *(middle(parts[epsilon], peer, *figures) for peer in peers)]
            for epsilon in epsilons
        ]

    classes, numbers = ["ours", "recalibrated", *KINDS], ["ours", *KINDS]
    first = [line for held in (False, True) for line in lines(("auc", "log_loss"), classes, held_out=held)]
    second = [line for held in (False, True) for line in lines(("r2",), numbers, held_out=held)]
    titles = TITLES | KINDS
    header = "over | ε | {}"
    lost = min((row for row in chosen(document, "r2")), key=lambda row: float(row["fixed"]["r2"]))
    require(lost["fixed"]["r2"] < -1.0, "one setting for all regressions fails on one of them")
    closing = (
        f"One setting for all regressions fails on {case(lost)}: its rate, chosen on other tables, is too "
        f"large there (R² {lost['fixed']['r2']:.1f})."
    )
    return "\n\n".join(
        [
            "AUC / log-loss, two classes, means:",
            table(header.format(" | ".join(titles[peer] for peer in classes)), first),
            "R², regressions, medians:",
            table(header.format(" | ".join(titles[peer] for peer in numbers)), second),
            paragraph(closing),
        ]
    )


@passage("fixed-settings", "settings")
def fixed_settings(document: Document) -> str:
    """The one setting for all tables, of each kind and ε."""
    kinds = ("two classes", "regression", "several classes")
    names = ("steps", "clip", "rate", "momentum")
    cells = [
        [kind, epsilon, *(f"{found['']['fixed'][name]:g}" for name in names)]
        for kind in kinds
        for epsilon, found in document[kind].items()
    ]
    opening = (
        f"The one setting, where the table that is judged is none of those of choice ({document['draws']} "
        "draws of each of 300 settings). The clip is a share of R, the rate what a mean gradient of the "
        "clip's length moves the coefficients by, times R:"
    )
    return f"{paragraph(opening)}\n\n{table('tables | ε | ' + ' | '.join(names), cells)}"


# How far below DP-GD tuned on the test set the AUC should be at most, and the log-loss at ε = 1.
GOALS, GOAL_LOG_LOSS, SMALL = {0.1: 0.015, 1.0: 0.002}, 0.25, 1000


@passage("peers-goals", "peers")
def peers_goals(document: Document) -> str:
    """What was hoped for on small tables, and what of it is met."""
    rows = [row for row in chosen(document, "auc") if int(str(row["rows"])) < SMALL]
    names = list(dict.fromkeys(str(row["table"]) for row in rows))

    def mean(epsilon: float, peer: str, figure: str) -> float:
        return fmean(row[peer][figure] for row in rows if row["epsilon"] == epsilon)

    lines = []
    for model, name in (("ours", "The default"), ("recalibrated", "Recalibrated")):
        said = []
        for epsilon, goal in GOALS.items():
            gap = mean(epsilon, "clipped", "auc") - mean(epsilon, model, "auc")
            said.append(
                f"AUC at ε = {epsilon:g} at most {goal:g} below DP-GD tuned on the test set: "
                f"{'met' if gap <= goal else 'not met'} ({gap:.4f})"
            )
        reached = mean(1.0, model, "log_loss")
        met = "met" if reached <= GOAL_LOG_LOSS else "not met"
        said.append(f"log-loss at ε = 1 at most {GOAL_LOG_LOSS:g}: {met} ({reached:.3f})")
        gaps = [mean(epsilon, "fixed", "auc") - mean(epsilon, model, "auc") for epsilon in (0.1, 1.0, 8.0)]
        met = "met" if max(gaps) <= 0.0 else "not met"
        told = together([f"{gap:+.4f}".replace("-", "−") for gap in gaps])
        said.append(
            f"AUC nowhere below DP-GD with one setting: {met} (that is ahead by {told} at ε = 0.1, 1 and 8)"
        )
        lines.append(paragraph(f"- *{name}*: {'; '.join(said)}.").replace("\n", "\n  "))
    opening = (
        f"What was hoped for, in the mean of the {len(names)} tables of less than {SMALL:,} rows "
        f"({together(names)}):"
    )
    return paragraph(opening) + "\n\n" + "\n".join(lines)


@passage("peers-short", "peers")
def peers_short(document: Document) -> str:
    """The comparison with tuned DP-GD in a line, for the README."""

    def ahead(epsilon: float) -> str:
        gaps = [pair for peer in ("unclipped", "clipped") for pair in behind(document, peer, "auc")]
        return f"{max(gap for gap, row in gaps if row['epsilon'] == epsilon):.3f}"

    def better(figure: str) -> str:
        gaps = behind(document, "clipped", figure)
        return f"{sum(gap > LEVEL for gap, _ in gaps)} of {len(gaps)} cases"

    tables = len({row["table"] for row in chosen(document, "auc")})
    return (
        f"on {tables} tables its AUC exceeds ours by at most {ahead(1.0)} at ε = 1 and {ahead(0.1)} at "
        f"ε = 0.1, its log-loss is better by more than {LEVEL:g} in {better('log_loss')} and its R² in "
        f"{better('r2')}"
    )


RULES = {
    "likelihood": "no cap",
    "slopes": "on slopes",
    "gradients": "on gradients (the default)",
    "recalibrated": "recalibrated",
}


@passage("told", "told")
def told(document: Document) -> str:
    """What people are told that a model cost them, beside how good it is: three caps, and recalibrated."""
    rows = [row for row in document["rows"] if row["epsilon"] in (0.3, 1.0, 3.0)]
    found = {(row["table"], row["epsilon"], row["rule"]): row for row in rows}
    require(len(document["equal"]) >= 5, "five tables or more were at hand")
    opening = (
        f"AUC on the test rows, and what half and 95% of the members are told at most, means over "
        f"{document['draws']} draws (`python -m bench.told`):"
    )
    cells = [
        [
            name,
            f"{epsilon:g}",
            *("{auc:.3f}: {median:.3f}, {most:.3f}".format(**found[name, epsilon, rule]) for rule in RULES),
        ]
        for name, epsilon in dict.fromkeys((row["table"], row["epsilon"]) for row in rows)
    ]
    second = [
        [
            row["table"],
            f"{row['auc']:.3f}",
            *("-" if row[rule] is None else "{:.2f}: {:.3f}".format(*row[rule]) for rule in RULES),
        ]
        for row in document["equal"]
    ]
    shares, changes = _at_equal_quality(document, "gradients", "likelihood")
    # docs/budget.md says so.
    require(len(shares) == len(document["equal"]), "plain logistic regression reaches every AUC")
    require(max(shares) < 0.65, "the default needs about half of the ε of plain logistic regression")
    require(max(changes) < 0.01, "the default tells half of the members about the same, or less")
    closing = (
        f"At the same AUC the default promises {min(shares):.2f} to {max(shares):.2f} of the ε that plain "
        f"logistic regression needs, and what half of the members are told at most changes by "
        f"{_signed(min(changes))} to {_signed(max(changes))}. "
    )
    shares, changes = _at_equal_quality(document, "recalibrated", "gradients")
    require(len(shares) == len(document["equal"]), "a recalibrated model reaches every AUC")
    require(min(changes) > 0.0, "recalibrated models tell more at the same AUC on every table")
    closing += (
        f"Recalibrated it promises {min(shares):.2f} to {max(shares):.2f} of the ε that the default needs, "
        f"and half of the members are told {_signed(min(changes))} to {_signed(max(changes))}: the smaller "
        "cap uses more of the budget for everybody. For small figures on the page take the default."
    )
    return "\n\n".join(
        [
            paragraph(opening),
            table("table | ε | " + " | ".join(RULES.values()), cells),
            paragraph("The ε, and what half are told, at the AUC that a cap on slopes has at ε = 1:"),
            table("table | AUC | " + " | ".join(RULES.values()), second),
            paragraph(closing),
        ]
    )


def _at_equal_quality(document: Document, rule: str, other: str) -> tuple[list[float], list[float]]:
    """The ε as a share of another rule's at the same AUC, and how what half are told changes."""
    both = [row for row in document["equal"] if row[rule] and row[other]]
    shares = [row[rule][0] / row[other][0] for row in both]
    return shares, [row[rule][1] / row[other][1] - 1.0 for row in both]


def _signed(change: float) -> str:
    return f"{100.0 * change:+.0f}%".replace("-", "−")


@passage("corners", "corners")
def corners(document: Document) -> str:
    """How much longer a fit with an L1 penalty takes."""
    texts = []
    for one in document["tables"]:
        plain, *others = one["fits"]
        ratio = max(line["fit"] for line in others) / plain["fit"]
        require(ratio < 3.0, "no fit with a penalty takes three times as long")
        size = f"{one['rows']:,} rows and {one['features']} columns"
        size += f", {one['useless']} of them useless," if one["useless"] else ""
        losses = max(line["losses"] for line in others)
        texts.append(
            f"on {size} at most {ratio:.2f} times as long as without, and exact losses {losses:.2g} s in the "
            f"place of {plain['losses']:.2g}"
        )
    measured = "(`python -m bench.fit --corners`, processor time)"
    return paragraph(f"A fit with an L1 penalty takes {'; '.join(texts)} {measured}.")


SPARSE = {"none": "0", "half": "σ/2", "whole": "σ"}


@passage("sparse", "sparse")
def sparse(document: Document) -> str:
    """An L1 penalty of half and all of the noise: scores, and how many coefficients are used."""
    rows = document["rows"]

    def gained(figure: str) -> dict[str, list[float]]:
        found = [(case(row), row) for row in rows if figure in row["none"]]
        return {name: [row[share][figure] - row["none"][figure] for share in SPARSE] for name, row in found}

    auc, r2, loss = map(gained, ("auc", "r2", "log_loss"))
    best, worst = (choose(auc, key=lambda name: auc[name][2]) for choose in (max, min))
    lost = min(r2, key=lambda name: r2[name][2])
    require(auc[best][2] > LEVEL, "some AUC rises by more than 0.01")
    require(r2[lost][2] < -LEVEL, "some R² falls by more than 0.01")
    require(sum(parts[1] > 0.0 for parts in loss.values()) > len(loss) / 2, "log-loss is worse in most cases")
    closing = (
        f"Medians over {document['draws']} draws of large tables and five times as many of small ones "
        f"(`python -m bench.sparse`). With l1 = σ the AUC changes by {auc[worst][2]:+.3f} ({worst}) to "
        f"{auc[best][2]:+.3f} ({best}) and R² by up to {r2[lost][2]:+.3f} ({lost}); the log-loss is worse "
        "in most cases, because coefficients that are used are pulled towards zero too. So it is an option, "
        "for a model that says which columns it uses and for many useless columns, and no default."
    )
    cells = []
    for row in rows:
        figure = "auc" if "auc" in row["none"] else "r2"
        scores = [f"{row[share][figure]:.3f}" for share in SPARSE]
        used = [f"{row[share]['used']:.0f}" for share in SPARSE]
        losses = [f"{row[share]['log_loss']:.3f}" if figure == "auc" else "–" for share in SPARSE]
        cells.append(
            [row["table"], f"{row['epsilon']:g}", *(" / ".join(part) for part in (scores, losses, used))]
        )
    header = "table | ε | AUC or R² at l1 = 0 / σ/2 / σ | log-loss | coefficients used"
    return f"{table(header, cells)}\n\n{paragraph(closing)}"
