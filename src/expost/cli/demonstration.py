"""``expost demo``: a fit on scikit-learn's data with bounds set by hand, from the domain file to the page."""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from expost._common.files import atomic_write, atomic_write_bytes, check_output
from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error
from expost.cli.base import console, error_console, legible, say
from expost.cli.display import Tally, show_losses
from expost.cli.private_files import inert_row, write_losses
from expost.cli.publications import write_page
from expost.data.domain import Domain
from expost.data.features import Number
from expost.data.labels import ClassLabel
from expost.data.texts import PublicationTexts
from expost.estimators import LogisticRegression
from expost.reports import Bounds
from expost.reports.base import CONFIDENCE

# What the demonstration writes, figures last.
_PUBLIC = ("report.html", "publication.json", "domain.toml")
_PRIVATE = ("table.csv", "losses.csv", "losses.png", "intervals.png")
# Okabe and Ito's palette: people with any kind of colour vision can tell its colours apart.
BLUE, SKY, ORANGE = "#0072B2", "#9AD0F0", "#D55E00"
_LOSS, _WORST = "privacy loss (log-odds)", "worst case promised to everyone"
# Upper bounds of ten measurements of a cell nucleus, for their mean, standard error and worst value: round
# numbers chosen from what the quantities are, not computed from the table. Lower bounds are all zero.
BOUNDS = {
    "radius": (30.0, 3.0, 40.0),
    "texture": (40.0, 5.0, 50.0),
    "perimeter": (200.0, 25.0, 250.0),
    "area": (2500.0, 500.0, 4000.0),
    "smoothness": (0.2, 0.03, 0.25),
    "compactness": (0.4, 0.15, 1.0),
    "concavity": (0.5, 0.4, 1.25),
    "concave points": (0.25, 0.05, 0.3),
    "symmetry": (0.3, 0.08, 0.7),
    "fractal dimension": (0.1, 0.03, 0.2),
}
# The table's names for the three figures of each measurement, and headings for them.
_FIGURES = {
    "mean {}": "The cells on average",
    "{} error": "How much the cells differ",
    "worst {}": "The three most unusual cells",
}
_LABEL = "diagnosis"
_CLASSES = ("malignant", "benign")
_TEXTS = PublicationTexts(
    title="Lumps in the breast",
    publisher="The demonstration of expost",
    purpose="tells malignant lumps from benign ones by their cells",
    population="people whose cells were looked at under a microscope",
)


@dataclass(frozen=True)
class Demonstration:
    """A fitted model with its table and the exact losses of everyone in it; all but the model is private."""

    model: LogisticRegression
    table: Mapping[str, FloatArray]
    labels: NDArray[Any]
    losses: FloatArray


def bundled_domain() -> Domain:
    """What is publicly known about a record of the breast-cancer data."""
    features = tuple(
        Number(name=name, low=0.0, high=bounds[kind], title=name.capitalize(), group=heading)
        for kind, (figure, heading) in enumerate(_FIGURES.items())
        for measurement, bounds in BOUNDS.items()
        for name in (figure.format(measurement),)
    )
    label = ClassLabel(name=_LABEL, classes=_CLASSES, title="Diagnosis", group="The diagnosis")
    return Domain(features=features, label=label, publication=_TEXTS)


def domain_file() -> str:
    """The domain as a file, the one in ``examples/breast_cancer``."""
    return (
        "# What is publicly known about a record of scikit-learn's breast-cancer data: ten measurements\n"
        "# of a cell nucleus, each as mean, standard error and worst value. The bounds are round numbers\n"
        "# from what the quantities are; none was computed from the table.\n\n" + bundled_domain().to_toml()
    )


def demonstrate(*, epsilon: float, delta: float) -> Demonstration:
    """Fit on the breast-cancer data, which spends the budget once, and compute what it cost each person."""
    data = load_breast_cancer()
    domain = bundled_domain()
    table = {feature.name: data.data[:, place] for place, feature in enumerate(domain.features)}
    labels = np.array(_CLASSES, dtype=object)[data.target]
    model = LogisticRegression(epsilon=epsilon, delta=delta, report="leverage", domain=domain)
    model.fit(table, labels)
    return Demonstration(model, table, labels, model.ex_post_losses(table, labels))


def write_table(path: Path, shown: Demonstration, *, overwrite: bool) -> None:
    """Write the table as the CSV file that the other commands read."""
    with atomic_write(path, private=True, overwrite=overwrite) as file:
        writer = csv.writer(file)
        writer.writerow(inert_row([*shown.table, _LABEL]))
        columns = (column.tolist() for column in (*shown.table.values(), shown.labels))
        writer.writerows(map(inert_row, zip(*columns, strict=True)))


def demo(out: Path, epsilon: float, delta: float, force: bool) -> None:
    """Fit, publish, and show what it cost each person."""
    for path in (*(out / name for name in _PUBLIC), *(out / "private" / name for name in _PRIVATE)):
        check_output(path, overwrite=force)
    with error_console.status("Fitting a logistic regression on scikit-learn's breast-cancer data"):
        shown = demonstrate(epsilon=epsilon, delta=delta)
    console.print(shown.model.plan_)
    console.print()
    written = _publish(out, shown, overwrite=force)
    tally = Tally()
    tally.add(shown.losses)
    console.print(show_losses(tally, shown.model.plan_.epsilon))
    console.print()
    written.update(_keep(out / "private", shown, overwrite=force))
    console.print("[bold]What to open[/bold]")
    width = max(len(str(path)) for path in written)
    for path, words in written.items():
        say(f"  {legible(path).ljust(width)}  {words}")


def _publish(out: Path, shown: Demonstration, *, overwrite: bool) -> dict[Path, str]:
    """Write the public files and return a description of each."""
    page, publication, domain = (out / name for name in _PUBLIC)
    with atomic_write(domain, overwrite=overwrite) as file:
        file.write(domain_file())
    shown.model.publication_.save(publication, overwrite=overwrite)
    write_page(page, [shown.model.publication_], overwrite=overwrite)
    return {
        page: "the page for every person: open it in a browser (public)",
        publication: "the model, its promise and its report (public)",
        domain: "what was declared before the fit (public)",
    }


def _keep(folder: Path, shown: Demonstration, *, overwrite: bool) -> dict[Path, str]:
    """Write the curator's files and return a description of each."""
    table, losses, histogram, intervals = (folder / name for name in _PRIVATE)
    write_table(table, shown, overwrite=overwrite)
    write_losses(losses, [shown.losses], overwrite=overwrite)
    written = {
        table: "the table, to try the other commands on (private)",
        losses: "the exact loss of every person (PRIVATE)",
    }
    if find_spec("matplotlib") is None:
        missing = missing_extra_error("drawing figures", "matplotlib", "figures")
        say(f"No figures: {legible(missing)}", to=error_console)
        return written
    with error_console.status("Drawing the figures"):
        read, worst = shown.model.publication_, shown.model.plan_.epsilon
        bounds = read.bounds(shown.table, shown.labels, confidence=CONFIDENCE, member=True)
        draw_losses(histogram, shown.losses, worst, title="PRIVATE: what the model cost each person")
        title = "PRIVATE: what each person lost, and what she can know"
        draw_intervals(intervals, shown.losses, bounds, worst, CONFIDENCE, title=title)
    written[histogram] = "the losses against the worst case (PRIVATE)"
    written[intervals] = "the losses against the published intervals (PRIVATE)"
    return written


def draw_losses(path: Path, losses: FloatArray, worst: float, *, title: str = "") -> None:
    """Draw the distribution of the exact losses and the promised worst case; private."""
    top = 1.05 * max(worst, float(np.max(losses)))
    with _drawn(path, title, x=_LOSS, y="people", legend="upper center") as axes:
        axes.hist(losses, bins=np.linspace(0.0, top, 85), color=BLUE, label="exact loss of each person")
        axes.axvline(worst, color=ORANGE, linewidth=3, label=_WORST)
        axes.set_xlim(0.0, top)


def draw_intervals(
    path: Path, losses: FloatArray, bounds: Bounds, worst: float, confidence: float, *, title: str = ""
) -> None:
    """Draw each person's exact loss within the interval that she can compute herself; private."""
    order = np.argsort(bounds.upper)
    people = np.arange(1, len(order) + 1)
    known = f"what each can know from the published file ({confidence:.0%})"
    order_of_people = "the people in the data, by what they can know"
    with _drawn(path, title, x=order_of_people, y=_LOSS, legend="upper left") as axes:
        axes.fill_between(
            people, bounds.lower[order], bounds.upper[order], color=SKY, linewidth=0, label=known
        )
        lost = "what each really lost (private)"
        axes.plot(people, losses[order], ".", color=BLUE, markersize=4, label=lost)
        axes.axhline(worst, color=ORANGE, linewidth=3, label=_WORST)
        axes.set_xlim(1, max(len(order), 2))
        axes.set_ylim(0.0, 1.38 * max(worst, float(np.max(bounds.upper))))


@contextmanager
def _drawn(
    path: Path, title: str, *, x: str, y: str, legend: Literal["upper left", "upper center"]
) -> Iterator[Any]:
    """Empty axes; what is drawn in them is written to a private file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=14)
    axes.set_xlabel(x, fontsize=14)
    axes.set_ylabel(y, fontsize=14)
    axes.tick_params(labelsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    yield axes
    axes.legend(fontsize=12, frameon=False, loc=legend, markerscale=3)
    with atomic_write_bytes(path, private=True) as file:
        figure.savefig(file, format="png", dpi=150)
