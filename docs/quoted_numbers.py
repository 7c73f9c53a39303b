"""Write every measured figure of the README and the documents: ``python docs/quoted_numbers.py``.

The figures come from the files of numbers that benchmarks and experiments leave behind, by way of marks that
a reader does not see: ``<!-- numbers: NAME -->`` and ``<!-- /numbers -->`` on lines of their own around a
table or a paragraph, ``<!-- n:NAME -->`` and ``<!-- /n -->`` around a few words. Each name is a function
below, from one file to the text between its marks. Words that the numbers could refute are checked before
they are written; if they are no longer true, nothing is written and somebody has to find better words.
"""

import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from expost.calibration import DEFAULT_SPLIT

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Where each kind of number is, and the command that measures it.
SOURCES = {
    "utility": ("bench/results/utility.json", "python -m bench.utility"),
    "reports": ("bench/results/reports.json", "python -m bench.reports"),
    "audit": ("bench/results/audit.json", "python -m bench.audit"),
    "goe": ("bench/results/goe.json", "python -m bench.goe"),
    "regularization": (
        "papers/redberg_wang_2021/results/02_regularization.json",
        "python -m papers.redberg_wang_2021 --only 02",
    ),
    "comparison": (
        "papers/redberg_wang_2021/results/09_comparison.json",
        "python -m papers.redberg_wang_2021 --only 09",
    ),
    "errata": (
        "papers/redberg_wang_2021/results/10_errata.json",
        "python -m papers.redberg_wang_2021 --only 10",
    ),
}
BLOCK = re.compile(r"(<!-- numbers: ([\w-]+) -->\n)(.*?)(<!-- /numbers -->)", re.DOTALL)
INLINE = re.compile(r"(<!-- n:([\w-]+) -->)(.*?)(<!-- /n -->)", re.DOTALL)
# The pages have no other comments, so one that is misspelt is found too.
ANY_MARK = re.compile(r"<!--.*?-->", re.DOTALL)

Document = dict[str, Any]
PASSAGES: dict[str, tuple[str, Callable[[Document], str]]] = {}


class NumbersError(Exception):
    """Why the documents cannot be filled, in one sentence."""


def passage(name: str, source: str) -> Callable[[Callable[[Document], str]], Callable[[Document], str]]:
    """Register the function that writes what stands between the marks of this name."""

    def register(write: Callable[[Document], str]) -> Callable[[Document], str]:
        PASSAGES[name] = (source, write)
        return write

    return register


def require(true: bool, statement: str) -> None:
    """Refuse to write words that the numbers do not bear out."""
    if not true:
        raise NumbersError(f"The numbers no longer say that {statement}: find other words for it.")


def load(source: str, root: Path = ROOT) -> Document:
    """A file of numbers."""
    path, command = SOURCES[source]
    try:
        document: Document = json.loads((root / path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NumbersError(f"{path} is missing; `{command}` writes it.") from None
    return document


def names(text: str) -> list[str]:
    """The names of the marks on a page."""
    return [match[2] for pattern in (BLOCK, INLINE) for match in pattern.finditer(text)]


def fill(text: str, root: Path = ROOT) -> str:
    """A page with everything between its marks written anew."""

    def written(match: re.Match[str]) -> str:
        before, name, old, after = match.groups()
        if name not in PASSAGES:
            raise NumbersError(f"There is no passage called {name!r}.")
        if stray := ANY_MARK.search(old):
            raise NumbersError(f"The passage {name!r} does not end before {stray[0]}.")
        source, write = PASSAGES[name]
        line = "\n" if before.endswith("\n") else ""
        return before + write(load(source, root)) + line + after

    rest = INLINE.sub("", BLOCK.sub("", text))
    filled = INLINE.sub(written, BLOCK.sub(written, text))
    if stray := ANY_MARK.search(rest):
        raise NumbersError(f"The mark {stray[0]} has no partner.")
    return filled


def table(header: str, rows: list[list[str]], left: int = 1) -> str:
    """A table in Markdown; the first columns are words and the others numbers."""
    columns = header.count("|") + 1
    rule = "|".join(["---"] * left + ["---:"] * (columns - left))
    return "\n".join([f"| {header} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


def paragraph(text: str) -> str:
    """Prose in lines of the documents' length."""
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def together(items: list[str]) -> str:
    """Several things in one sentence."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def short(value: float) -> str:
    """A setting as a person writes it: 1e-6, not 1e-06."""
    return re.sub(r"e-0+", "e-", f"{value:g}")


def share(value: float, digits: int = 4) -> str:
    """A share of the whole; one that is nearly 1 must not be shown as 1."""
    return f"{min(value, 1.0 - 10.0**-digits):.{digits}f}"


# What a budget buys: docs/calibration.md and README.md.


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
        "table | ε | no privacy | expost, untuned | best λ, peeking | classical | DP-SGD, tuned for free",
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
        f"The peeking column takes the best of {factors} times the rule. The default falls short of it by "
        f"{worst:.3f} at most ({name} at ε = {epsilon:g}), and elsewhere by {elsewhere:.3f} at most. It was "
        "settled on these same tables, so they are no independent test of it. Neither the dimension nor the "
        "number of rows is in the rule, so there is no `n_hint`; rules that use them were not tried."
    )


@passage("utility-encodings", "utility")
def utility_encodings(document: Document) -> str:
    """How far the comparison with DP-SGD goes."""
    plain = {row["table"]: row["plain"] for row in document["rows"]}
    given = document["dpsgd_plain"]
    require(0.0 < plain["credit"] - given["credit"] < 0.02, "the credit encoding is a little in our favour")
    require(abs(plain["adult"] - given["adult"]) < 0.001, "the comparison on Adult is like for like")
    return paragraph(
        "The figures of DP-SGD are given, not measured by the benchmark. The credit bounds count the delay "
        "codes of zero and below as no delay. That lifts the model without privacy to "
        f"{plain['credit']:.3f}, where the figures of DP-SGD come from an encoding with "
        f"{given['credit']:.3f}: on credit the comparison is a little in our favour. On Adult it is like for "
        f"like, at {plain['adult']:.3f}."
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


@passage("splits", "reports")
def splits(document: Document) -> str:
    """Model and bound as functions of the split."""
    leverage, dependent = document["splits"]["leverage"], document["splits"]["dependent"]
    smaller = 1.0 - dependent["0.5"]["upper"] / dependent["0.9"]["upper"]
    require(smaller > 0.2, "a split of 0.5 has a much smaller bound than one of 0.9")
    require(dependent["0.9"]["auc"] - dependent["0.5"]["auc"] < 0.005, "its model is hardly worse")
    require(leverage["0.8"]["ratio"] > 0.95 * leverage["0.98"]["ratio"], "less than 0.98 hardly sharpens")
    cells = [
        [f"`{kind}`", f"**{split}**" if float(split) == DEFAULT_SPLIT[kind] else split, f"{row['auc']:.4f}"]
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


# The certificate: docs/auditing.md and docs/mathematics.md.

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
    """How much less noise the worst data found would do with."""
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
    """Where the certificate is sharp, and what is missing where it is not."""
    strong, weak = strong_and_weak(document)
    require(min(row["share"] for row in strong) > 0.999, "there is no gap with l2 = 5/ε")
    sharp = (
        "With l2 = 5/ε there is no gap: what separates the two is the tolerance of the calibration. A crowd "
        "of rows that lean the other way holds the coefficients where the record is steepest, and the "
        "publication is then a Gaussian mechanism of its slope."
    )
    gap = (
        f"At l2 = {weak['l2']:g} and ε = {weak['epsilon']:g} the worst data found stay a factor of "
        f"{1.0 / weak['share']:.1f} below the certified δ. In noise that is little: with σ = "
        f"{weak['attaining_sigma']:.2f} instead of {weak['sigma']:.2f}, {saved_noise(weak)} less, the worst "
        f"data found would reach {short(document['delta'])}. The certificate lets a record choose its slope "
        "anew for every noise; a real data set fixes one curve along which slope and noise move together."
    )
    return f"{paragraph(sharp)}\n\n{paragraph(gap)}"


@passage("audit-others", "audit")
def audit_others(document: Document) -> str:
    """Other losses, and what is published beside the model."""
    rows = document["others"]
    ((epsilon, l2, trials),) = {(row["epsilon"], row["l2"], row["trials"]) for row in rows}
    opening = f"Other plans at ε = {epsilon:g} and l2 = {l2:g}, with {trials} random pairs:"
    cells = [[LOSSES[row["loss"]], BESIDE[row["report"]], share(row["share"])] for row in rows]
    free = [row for row in rows if LOSSES[row["loss"]] in ("soft logistic", "pseudo-Huber")]
    require(all(abs(row["share"] - 0.5) < 0.005 for row in free), "a free sign costs a factor of 2")
    (saved,) = {saved_noise(row) for row in free}
    closing = (
        "Where the label does not fix the sign of the slope, the certificate allows the sign to follow the "
        f"noise, which counts both of its tails; the data found use one. That factor of 2 in δ is {saved} in "
        "σ."
    )
    header = "loss | published beside the model | audited δ / certified δ"
    return f"{opening}\n\n{table(header, cells, left=2)}\n\n{paragraph(closing)}"


@passage("audit-sharp", "audit")
def audit_sharp(document: Document) -> str:
    """The least share with strong regularisation."""
    return share(min(row["share"] for row in strong_and_weak(document)[0]), digits=3)


@passage("audit-weak", "audit")
def audit_weak(document: Document) -> str:
    """The share with weak regularisation, and what it is in noise."""
    _, weak = strong_and_weak(document)
    return (
        f"At ε = {weak['epsilon']:g}, λ = {weak['l2']:g} the worst pair found reaches {weak['share']:.2f} of "
        f"it, which is {saved_noise(weak)} in σ"
    )


# The largest eigenvalue: docs/goe.md.


@passage("tracy-widom", "goe")
def tracy_widom(document: Document) -> str:
    """The error of the asymptotic law."""
    rows = document["tracy_widom"]
    require(
        all(row["tracy_widom_far"] > row["far"] for row in rows),
        "Tracy–Widom errs on the private side far out",
    )
    cells = [
        [f"{row['d']}", f"{row['error']:.3f}"]
        + [f"{row[key]:.3f}" for key in ("near", "tracy_widom_near", "far", "tracy_widom_far")]
        + [f"{row['sf_at_tracy_widom_far']:.1e}"]
        for row in rows
    ]
    header = (
        "d | largest error of the cdf | 0.995-quantile, exact | T–W | (1 − 5e-7)-quantile, exact | T–W | "
        "true sf there"
    )
    closing = (
        "In the upper tail it errs on the private side at every dimension tried, at the price of a wider "
        "margin. `python -m bench.goe` prints this table and draws the error."
    )
    return f"{table(header, cells, left=0)}\n\n{paragraph(closing)}"


@passage("smallest-cdf", "goe")
def smallest_cdf(document: Document) -> str:
    """Where the distribution function is returned as zero."""
    return together([f"{value:.0e} for d = {d}" for d, value in document["smallest_cdf"].items()])


# The paper: README.md, docs/mathematics.md and docs/reports.md.


@passage("classical-noise", "regularization")
def classical_noise(document: Document) -> str:
    """How much more noise the classical theorem needs, and for which ε that was computed."""
    rows = document["numbers"]["epsilons"]
    factors = [row["paper_sigma"] / row["ours_sigma"] for row in rows.values()]
    epsilons = sorted(float(epsilon) for epsilon in rows)
    return (
        f"{min(factors):.1f} to {max(factors):.1f} times the noise for ε between {epsilons[0]:g} and "
        f"{epsilons[-1]:g}"
    )


@passage("printed-fails", "errata")
def printed_fails(document: Document) -> str:
    """How often the paper's bound on the inner product fails as printed."""
    product = document["numbers"]["inner_product"]
    return f"fails for {product['printed']:.0%} of the records where {product['level']:.0%} are allowed"


@passage("true-quantile", "errata")
def true_quantile(document: Document) -> str:
    """The quantile that the paper calls 12."""
    return f"{document['numbers']['quantile']['true_quantile']:.2f}"


@passage("smaller-promise", "comparison")
def smaller_promise(document: Document) -> str:
    """What a model as good as the paper's costs with ours."""
    promised = {name: row["independent"] for name, row in document["numbers"]["promises"].items()}
    require(all(epsilon < 0.75 for epsilon in promised.values()), "ours promises clearly less")
    titles = {"credit": "the credit data", "adult": "Adult", "kidney": "the kidney data"}
    return ", ".join(f"ε = {promised[name]:.2g} on {title}" for name, title in titles.items())


@passage("comparison", "comparison")
def comparison(document: Document) -> str:
    """Our reports and the paper's on the credit data, and what is to be seen."""
    numbers = document["numbers"]
    found = numbers["tables"]["credit"]
    ours, theirs = (
        {
            key.partition(" ")[2]: curve["1"]
            for key, curve in found.items()
            # Mixtures of the two recipes have a comma, and are for the page of results.
            if key.startswith(f"{side} ") and "," not in key
        }
        for side in ("ours", "paper")
    )
    check_comparison(ours, theirs)
    opening = (
        f"On the credit data ({found['rows']:,} rows, {found['columns']} columns) at a total of ε = "
        f"{numbers['epsilon']:g}, δ = {short(numbers['delta'])}, for members, confidence 1 − 1e-6, medians "
        f"over people and over {found['draws']} draws of the noise:"
    )
    header = (
        "report | test AUC | true loss | bound | 95% of bounds below | bound / truth, read our way | read "
        "the paper's way | total"
    )
    cells = [
        [f"{kind}, {whose}", f"{row['auc'][1]:.3f}"]
        + [f"{row[key][1]:#.2g}" for key in ("truth", "upper", "upper_95")]
        + [f"{row['our_ratio'][1]:.1f}", f"{row['paper_ratio'][1]:.1f}", f"{row['total'][1]:#.2g}"]
        for whose, rows in (("ours", ours), ("the paper's recipe", theirs))
        for kind, row in rows.items()
    ]
    factors = [row["sigma"] / ours[kind]["sigma"] for kind, row in theirs.items()]
    seen = (
        "Reading the same file, our bound is never above the paper's. On this table, and without "
        "statistics, it is also closer to the truth of its own model than the paper's is. At the same "
        f"promise the paper's recipe adds {min(factors):.1f} to {max(factors):.1f} times our noise to the "
        "model, so its people lose less and its models are worse. Its dependent report is closer to the "
        "truth than ours, because it spends four fifths of the budget on statistics and leaves the model "
        "one fifth. [RESULTS.md](../papers/redberg_wang_2021/RESULTS.md) has the other tables, and what a "
        "person is told by models of the same quality."
    )
    return f"{paragraph(opening)}\n\n{table(header, cells)}\n\n{paragraph(seen)}"


def check_comparison(ours: Document, theirs: Document) -> None:
    """What is said below the table."""
    pairs = [(ours[kind], row) for kind, row in theirs.items()]
    require(
        all(our["most_above_paper"] == 0.0 for our in ours.values()), "our bound is never above the paper's"
    )
    require(all(our["sigma"] < their["sigma"] for our, their in pairs), "the paper's recipe adds more noise")
    require(all(our["truth"][1] > their["truth"][1] for our, their in pairs), "its people lose less")
    require(all(our["auc"][1] > their["auc"][1] for our, their in pairs), "its models are worse")
    free, paid = (ours[kind]["ratio"][1] / theirs[kind]["ratio"][1] for kind in ("independent", "dependent"))
    require(free < 0.95, "without statistics our bound is closer to the truth")
    require(paid > 1.05, "the paper's dependent report is closer to the truth")


def main() -> None:
    """Fill every page, or none."""
    filled = {}
    for page in PAGES:
        try:
            filled[page] = fill(page.read_text(encoding="utf-8"))
        except NumbersError as error:
            sys.exit(f"{page.relative_to(ROOT)}: {error}")
    for page, text in filled.items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
