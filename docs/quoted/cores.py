"""Passages about threads, in docs/scale.md, docs/gpu.md and README.md."""

from docs.quoted.marks import Document, paragraph, passage, require, table, together

TITLES = {
    "gradient": "gradient",
    "with Hessian": "with Hessian",
    "certificate": "certificate",
    "losses": "exact losses",
    "fit": "whole fit",
}
# What `python -m bench.gpu` measured on the device beside these cores, seconds for 10^8 rows of 50 doubles.
DEVICE = {"fit": 0.62, "losses": 0.16}


def lines(document: Document) -> dict[int, Document]:
    """What was measured for each number of threads."""
    return {int(threads): line for threads, line in document["compiled"].items()}


def ends(document: Document) -> tuple[int, Document, Document]:
    """The largest number of threads, and what was measured for one and for so many."""
    found = lines(document)
    require(min(found) == 1, "one thread was measured")
    return max(found), found[1]["times"], found[max(found)]["times"]


def whole(number: int) -> str:
    """A number of rows, as text has it."""
    digits = f"{number:e}".split("e")
    factor = digits[0].rstrip("0").rstrip(".")
    power = f"10{str(int(digits[1])).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return power if factor == "1" else f"{factor}·{power}"


@passage("cores", "cores")
def cores(document: Document) -> str:
    """Seconds of passes and fits at every number of threads, and what the machine allows."""
    most, one, last = ends(document)
    opening = (
        f"`python -m bench.cores` on a machine with {document['cores']} cores, {whole(document['rows'])} × "
        f"{document['columns']} doubles, seconds, the best of {document['repeats']}:"
    )
    cells = [
        [f"{threads}", *(f"{line['times'][name]:.{2 if name == 'fit' else 3}f}" for name in TITLES)]
        for threads, line in lines(document).items()
    ]
    said = []
    for solver, taken in document["peers"].items():
        best = min(line["times"]["fit"] for line in lines(document).values())
        require(best < taken, f"our fit is faster than {solver}")
        said.append(
            f"scikit-learn's `{solver}` takes {taken:.1f} s to a mean gradient of 10⁻⁷ there: our fit, "
            f"certificate included, {best / taken:.2f} of that."
        )
    passes = [one[name] / last[name] for name in TITLES if name != "fit"]
    said.append(
        f"From 1 to {most} threads passes are {min(passes):.1f} to {max(passes):.1f} times as fast, and a "
        f"fit {one['fit'] / last['fit']:.1f} times."
    )
    if "gains" in document:
        limits = lines(document)[most]["ceilings"]
        working = limits["working"] / lines(document)[1]["ceilings"]["working"]
        said.append(
            f"So many threads read {limits['reading'] / 1e9:.0f} GB a second when they do nothing else, and "
            f"on rows that never leave their caches they do {working:.1f} times what one does: together "
            f"these allow {document['gains']['fit'][1]:.1f} for a fit."
        )
    if "numpy" in document:
        taken = [f"{line['times']['fit']:.1f} s" for line in document["numpy"].values()]
        threads = together([*document["numpy"]])
        said.append(
            f"Without the kernels (`EXPOST_KERNELS=off`) a fit takes {together(taken)} with {threads} "
            "threads."
        )
    header = " | ".join(["threads", *TITLES.values()])
    return "\n\n".join([paragraph(opening), table(header, cells, left=0), paragraph(" ".join(said))])


@passage("cores-device", "cores")
def cores_device(document: Document) -> str:
    """How the same machine does without its device, with every number of threads."""
    require(document["columns"] == 50, "the device's table has as many columns")
    cells = []
    for threads, line in lines(document).items():
        times = line["times"]
        slower = [times[name] / document["rows"] / (seconds / 1e8) for name, seconds in DEVICE.items()]
        cells.append(
            [
                f"{threads}",
                f"{times['fit']:.2f}",
                f"{times['losses']:.3f}",
                *(f"{share:.0f}" for share in slower),
            ]
        )
    opening = (
        f"On the {document['cores']} cores of the same machine, with compiled kernels and "
        f"{whole(document['rows'])} × {document['columns']} doubles, seconds (`python -m bench.cores`; "
        "[scale.md](scale.md#cores) has every pass), and how many times as long as the device a row takes:"
    )
    header = "threads | fit | exact losses | fit, times the device | losses, times the device"
    return "\n\n".join([paragraph(opening), table(header, cells, left=0)])


@passage("cores-losses", "cores")
def cores_losses(document: Document) -> str:
    """The pass for everybody's exact loss on one thread, for the README."""
    _, one, _ = ends(document)
    require(document["columns"] == 50, "there are 50 columns")
    return f"{one['losses'] * 1e6 / document['rows']:.2f} s for a million people and 50 columns on one core"


@passage("cores-fit", "cores")
def cores_fit(document: Document) -> str:
    """A whole fit with all threads, its certificate included, for the README."""
    most, _, last = ends(document)
    size = f"{whole(document['rows'])} rows of {document['columns']} columns"
    return f"a certified fit of {size} took {last['fit']:.2f} s on {most} cores"
