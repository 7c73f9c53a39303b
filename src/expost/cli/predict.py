"""``expost predict``: what a publication predicts for records."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.base import console, legible, print_json, report_errors, say, show_progress, warn
from expost.cli.options import PUBLICATION, RecordOptions, argument, check_order, option

if TYPE_CHECKING:
    from expost._common.progress import Watch
    from expost.cli.private_files import Columns
    from expost.data.lazy import LazyTable
    from expost.publication import Publication

# More records than this do not fit on a screen.
_MOST_RECORDS = 20


@report_errors
def predict(
    *,
    publication: Path = PUBLICATION,
    records: Path = argument(
        "RECORDS",
        "A .csv or .parquet file, a folder of such files, or a quoted pattern; the outcome's column is not "
        "needed.",
    ),
    output: Path | None = option(
        None, "Write all predictions (.csv or .parquet) as they are computed.", "--output", "-o"
    ),
    options: RecordOptions,
) -> None:
    """Predict the outcome of records with a published model: the likeliest class, or a number.

    A logistic model gives the probability of each class too. Predictions are as private as the records;
    nothing is spent, and the publication is not changed.

    Example: expost predict publication.json new.csv -o predictions.csv
    """
    from expost.cli.display import FirstRecords
    from expost.cli.private_files import open_records, with_identifiers, write_columns
    from expost.publication import Publication

    check_order(publication, records)
    read = Publication.load(publication)
    most = None if options.as_json and output is None else _MOST_RECORDS
    first: FirstRecords[Columns] = FirstRecords(most, lambda part: len(next(iter(part.values()))))
    with (
        open_records(
            records, options, output, "predictions", names=_names(read), read=[publication]
        ) as table,
        show_progress("Predicting") as progress,
    ):
        parts = with_identifiers(_predictions(read, table, progress.watch), table, options.identifier)
        write_columns(output, first.passing(parts), overwrite=options.force)
    if read.insecure:
        warn(f"{publication} was made with seeded noise for a test: its promise is void.")
    columns = {name: [one for part in first.kept for one in part[name]] for name in first.kept[0]}
    if options.as_json:
        print_json({"predictions": columns if output is None else None, "output": output})
    elif output is not None:
        say(f"Written: {legible(output)}")
    else:
        _show(columns, first.records)


def _predictions(publication: "Publication", table: "LazyTable", watch: "Watch") -> "Iterator[Columns]":
    """Predictions and, of a logistic model, probabilities, in runs of records; as private as these."""
    from expost.data.values import class_text
    from expost.fitting.prediction import Predictors, class_coefficients, predicted_labels, probabilities
    from expost.losses import LogisticLoss, SoftmaxLoss
    from expost.publication.readings import encoded_rows

    coefficients = class_coefficients(publication.release.coefficients, publication.loss)
    work = Predictors(coefficients.T if len(coefficients) > 1 else coefficients[0])
    rows = replace(encoded_rows(publication, table), watch=watch)
    likely = isinstance(publication.loss, LogisticLoss | SoftmaxLoss) and publication.classes is not None
    for scores in rows.sweep(work, products=True):
        labels: Any = predicted_labels(
            scores, loss=publication.loss, classes=publication.classes, label=publication.label
        )
        if publication.classes is not None:
            labels = [class_text(one) for one in labels.tolist()]
        columns: dict[str, Any] = {"prediction": labels}
        if likely:
            columns |= zip(_names(publication)[1:], probabilities(scores).T, strict=True)
        yield columns


def _names(publication: "Publication") -> list[str]:
    from expost.data.values import class_text

    return ["prediction", *(f"probability of {class_text(label)}" for label in publication.classes or ())]


def _show(columns: dict[str, list[Any]], count: int) -> None:
    from expost._common.summary import Summary

    rows = [
        (str(place), *(f"{one:.4g}" if isinstance(one, float) else one for one in cells))
        for place, cells in enumerate(zip(*columns.values(), strict=True), start=1)
    ][:_MOST_RECORDS]
    notes = [] if count <= _MOST_RECORDS else ["Only the first records are shown; --output has them all."]
    console.print(Summary("Predictions", rows, ("record", *columns), notes, figures=True).terminal())
