"""``expost predict``: the outcome of each record of a table, as a published model predicts it."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from expost._common.progress import Watch
from expost._common.summary import Summary
from expost.cli.base import console, legible, print_json, say, warn
from expost.cli.options import RecordOptions
from expost.cli.private_files import check_figures, write_columns
from expost.cli.tables import (
    Columns,
    FirstRecords,
    check_publication_first,
    dialect_of,
    inputs_of,
    open_records,
    with_identifiers,
)
from expost.data.labels import NumericLabel, OrderedLabel, TimeLabel
from expost.data.lazy import LazyTable
from expost.data.values import class_text
from expost.fitting.prediction import Predictors, predicted_labels
from expost.losses import AnyLoss, LogisticLoss, SmoothedPinball, SoftmaxLoss
from expost.publication import Publication
from expost.publication.readings import encoded_rows, score_coefficients

# More records than this do not fit on a screen.
_MOST_PREDICTIONS = 20
_OF_CLASS, _NOT_YET = "probability of ", ": not yet by "


def predict(publication: Path, records: Path, output: Path | None, options: RecordOptions) -> None:
    """Predict the outcome of records."""
    check_publication_first(publication, records)
    read = Publication.load(publication)
    first = FirstRecords(None if options.as_json and output is None else _MOST_PREDICTIONS)
    with open_records(records, options, _names(read), "Predicting") as (table, watch):
        inputs = inputs_of(table, publication, records, options.domain)
        check_figures(output, "predictions", inputs=inputs, overwrite=options.force)
        parts = with_identifiers(_predictions(read, table, watch), table, options.identifier)
        write_columns(output, first.passing(parts), overwrite=options.force, dialect=dialect_of(options))
    if read.insecure:
        warn(f"{publication} was made with seeded noise for a test: its promise is void.")
    columns = first.columns()
    if options.as_json:
        print_json({"predictions": columns if output is None else None, "output": output})
    elif output is not None:
        say(f"Written: {legible(output)}")
    else:
        _show_predictions(columns, first.records, read)


def _predictions(publication: Publication, table: LazyTable, watch: Watch) -> Iterator[Columns]:
    """Predictions and, of a logistic model, probabilities, in runs of records; as private as these."""
    work = Predictors(score_coefficients(publication))
    rows = replace(encoded_rows(publication, table), watch=watch)
    likely = isinstance(publication.loss, LogisticLoss | SoftmaxLoss) and publication.classes is not None
    for predictor in rows.sweep(work, products=True):
        scores = publication.recalibrated(predictor)
        labels: Any = predicted_labels(
            scores, loss=publication.loss, classes=publication.classes, label=publication.label
        )
        if publication.classes is not None:
            labels = [class_text(one) for one in labels.tolist()]
        columns: dict[str, Any] = {"prediction": labels}
        if isinstance(publication.label, TimeLabel):
            columns |= zip(_names(publication)[1:], publication.label.survival(scores).T, strict=True)
        if likely:
            columns |= zip(_names(publication)[1:], publication.probabilities(scores).T, strict=True)
        yield columns


def _names(publication: Publication) -> list[str]:
    if isinstance(publication.label, TimeLabel):
        return ["prediction", *_curve_names(publication.label)]
    return ["prediction", *(f"{_OF_CLASS}{class_text(label)}" for label in publication.classes or ())]


def _curve_names(label: TimeLabel) -> list[str]:
    """A name for each probability that nothing has happened by the end of a period."""
    unit = "" if label.unit is None else f" {label.unit}"
    return [f"{label.event}{_NOT_YET}{end:g}{unit}" for end in label.ends]


def _show_predictions(columns: dict[str, list[Any]], count: int, publication: Publication) -> None:
    """The first predictions, each with its own probability, or that of nothing by the last period's end.

    Those of the other classes and periods are for a file.
    """
    label, loss = publication.label, publication.loss
    likely = [name for name in columns if name.startswith(_OF_CLASS)]
    curve = _curve_names(label) if isinstance(label, TimeLabel) else []
    shown = {name: columns[name] for name in columns if name not in (*likely, *curve)}
    if isinstance(label, NumericLabel | TimeLabel):
        shown |= _in_units(shown.pop("prediction"), label, loss)
    shown |= {name: columns[name] for name in curve[-1:]}
    if likely:
        found = enumerate(columns["prediction"])
        shown["its probability"] = [f"{columns[_OF_CLASS + one][place]:.4f}" for place, one in found]
    places = map(str, range(1, _MOST_PREDICTIONS + 1))
    rows = list(zip(places, *map(_texts, shown.values()), strict=False))
    said = {
        "Only the first records are shown; --output has them all.": count > _MOST_PREDICTIONS,
        "The prediction is the median class, not the likeliest one.": isinstance(label, OrderedLabel),
        "The probabilities of the other classes: --output FILE": len(likely) > 2,
        "The mean time, without what is after the last period. The whole curve: --output FILE": bool(curve),
    }
    notes = list(filter(said.get, said))
    console.print(Summary("Predictions", rows, ("record", *shown), notes, figures=True).terminal())


def _texts(column: list[Any]) -> list[str]:
    return [one if isinstance(one, str) else f"{one:.4g}" for one in column]


def _in_units(values: list[float], label: NumericLabel | TimeLabel, loss: AnyLoss) -> dict[str, list[str]]:
    """Predicted numbers as the table has them, under a heading with their unit."""
    unit = "" if label.unit is None else f" ({label.unit})"
    span = label.high - label.low if isinstance(label, NumericLabel) else float(label.ends[-1])
    what = f"{loss.level:g}-quantile" if isinstance(loss, SmoothedPinball) else "prediction"
    return {f"{what}{unit}": [_figure(one, span) for one in values]}


def _figure(value: float, span: float) -> str:
    """A number with marks between thousands, to about a thousandth of the range that it lies in."""
    return f"{value:,.{max(3 - math.floor(math.log10(span)), 0)}f}"
