"""The demonstration's data, from scikit-learn, with bounds set by hand."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from expost._common.files import atomic_write
from expost._common.typing import FloatArray
from expost.cli.spreadsheets import inert_row
from expost.data.domain import Domain
from expost.data.features import ClassLabel, Number
from expost.data.texts import PublicationTexts
from expost.estimators import LogisticRegression

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
        Number(
            name=figure.format(name), low=0.0, high=bounds[kind], title=_title(figure, name), group=heading
        )
        for kind, (figure, heading) in enumerate(_FIGURES.items())
        for name, bounds in BOUNDS.items()
    )
    label = ClassLabel(name=_LABEL, classes=_CLASSES, title="Diagnosis", group="The diagnosis")
    return Domain(features=features, label=label, publication=_TEXTS)


def _title(figure: str, name: str) -> str:
    """What the page calls a figure of a measurement."""
    return figure.format(name).capitalize()


def domain_file() -> str:
    """The domain as a file, the one in ``examples/breast_cancer``."""
    return (
        "# What is publicly known about a record of scikit-learn's breast-cancer data: ten measurements\n"
        "# of a cell nucleus, each as mean, standard error and worst value. The bounds are round numbers\n"
        "# from what the quantities are; none was computed from the table.\n\n" + bundled_domain().to_toml()
    )


def scale_by_bounds(X: FloatArray) -> FloatArray:
    """Map each feature from its public bounds to [-1, 1], then every row into the unit ball."""
    domain = bundled_domain()
    return domain.encode(_columns(X, domain)) / domain.longest_row


def _columns(X: FloatArray, domain: Domain) -> dict[str, FloatArray]:
    return {feature.name: X[:, place] for place, feature in enumerate(domain.features)}


def demonstrate(*, epsilon: float, delta: float) -> Demonstration:
    """Fit on the breast-cancer data and compute what the release cost each of its people.

    Privacy
    -------
    Spends the budget once. ``model`` may be published, the rest may not.
    """
    data = load_breast_cancer()
    domain = bundled_domain()
    table = _columns(data.data, domain)
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
