"""The data sets by name."""

from collections.abc import Iterable

import numpy as np

from expost import Domain, Number, NumberLabel
from papers.common import FloatArray
from papers.datasets.base import DataSet, check_choice
from papers.datasets.files import ROOT, fetch


def credit() -> DataSet:
    """Default of credit card clients: which of 30,000 clients of a bank in Taiwan failed to pay."""
    return _load("credit", "credit", "credit")


def kidney() -> DataSet:
    """Chronic kidney disease: which of 400 patients of a hospital in India have it."""
    return _load("kidney", "kidney", "kidney")


def wine(part: str) -> DataSet:
    """Wine quality: the grade that tasters gave 1,599 red or 4,898 white wines of the Vinho Verde."""
    check_choice("part", part, ("red", "white"))
    return _load(f"wine, {part}", f"wine, {part}", "wine")


def adult(part: str) -> DataSet:
    """Adult: which people in a US census have an income above 50,000 dollars; in two parts."""
    check_choice("part", part, ("train", "test"))
    return _load("adult", f"adult, {part}", "adult")


def _load(name: str, key: str, example: str) -> DataSet:
    path = ROOT / "examples" / example / "domain.toml"
    domain = Domain.from_toml(path.read_text(encoding="utf-8"))
    texts = {column: np.array(cells, dtype=object) for column, cells in fetch(key).items()}
    columns = {feature.name: texts[feature.name] for feature in domain.features}
    for feature in domain.features:
        if isinstance(feature, Number):
            columns[feature.name] = _numbers(columns[feature.name])
    outcome = texts[domain.label.name]
    if isinstance(domain.label, NumberLabel):
        outcome = _numbers(outcome)
    return DataSet(name=name, domain=domain, columns=columns, outcome=outcome)


def _numbers(cells: Iterable[str]) -> FloatArray:
    """Cells as numbers; an empty one is missing, and becomes NaN."""
    return np.array([float(cell) if cell else np.nan for cell in cells])
