"""The passage about people with several rows, in docs/comparison.md."""

from docs.quoted.marks import Document, paragraph, passage, require, table, together

TITLES = {
    "person": "expost, to people",
    "one row": "expost, one row each",
    "strict rows": "expost, a stricter ε for a row",
    "free": "DP-GD by person, tuned on the test set",
    "fixed": "DP-GD by person, one setting",
}


def cell(scores: Document) -> str:
    """The AUC and the log-loss of a model."""
    return f"{scores['auc']:.3f} / {scores['log_loss']:.3f}"


@passage("people", "people")
def people(document: Document) -> str:
    """Ways to promise to people who have several rows, next to each other."""
    tables = document["tables"]
    described = together(
        [
            f"{name} ({one['people']:,} people with {one['rows']:,} rows, at most {one['most']} each, for "
            f"fitting; {one['columns']} columns)"
            for name, one in tables.items()
        ]
    )
    cells = [
        [name, epsilon, cell(one["plain"]), *(cell(found[model]) for model in TITLES)]
        for name, one in tables.items()
        for epsilon, found in one["found"].items()
    ]
    opening = (
        f"AUC / log-loss of {described}. Every person of the test half weighs the same. Medians over "
        f"{document['draws']} draws of the noise (`python -m bench.people`):"
    )
    header = " | ".join(["table", "ε", "no privacy", *TITLES.values()])
    return "\n\n".join([paragraph(opening), table(header, cells), paragraph(said(tables))])


def said(tables: Document) -> str:
    """What the table shows, in words that the numbers could contradict."""
    every = [found for one in tables.values() for found in one["found"].values()]
    least = [one["found"]["0.1"] for one in tables.values()]
    stricter = [found["person"]["auc"] - found["strict rows"]["auc"] for found in least]
    require(min(stricter) > 0.03, "a stricter promise to rows costs much at ε = 0.1")
    gained = [abs(found["person"]["auc"] - found["one row"]["auc"]) for found in every]
    require(max(gained) < 0.005, "one row of each person is as good on these tables")
    rows = together([f"{one['found']['1']['strict rows']['row']:.2f}" for one in tables.values()])
    behind = {
        epsilon: max(
            one["found"][epsilon]["free"]["auc"] - one["found"][epsilon]["person"]["auc"]
            for one in tables.values()
        )
        for epsilon in ("0.1", "1", "8")
    }
    fixed = [found["person"]["auc"] - found["fixed"]["auc"] for found in every]
    loss = max(found["person"]["log_loss"] - found["free"]["log_loss"] for found in every)
    return (
        f"To promise ε = 1 to a person by a promise to rows, a row may have ε = {rows} only. At ε = 0.1 such "
        f"a promise costs {min(stricter):.3f} to {max(stricter):.3f} of the AUC against the promise to "
        f"people. One row of each person is within {max(gained):.4f} of it: on these tables further rows of "
        "the same people add little. The promise to people cuts nobody's rows off and asks for no largest "
        f"number. The AUC of DP-GD tuned on the test set is ahead of ours by at most {behind['0.1']:.3f} at "
        f"ε = 0.1, {behind['1']:.3f} at ε = 1 and {behind['8']:.3f} at ε = 8, and its log-loss by at most "
        f"{loss:.3f}; with one setting its AUC is between {max(-min(fixed), 0.0):.3f} ahead and "
        f"{max(fixed):.3f} behind."
    )
