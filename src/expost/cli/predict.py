"""``expost predict``: what a publication predicts for records."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expost.cli.base import console, legible, print_json, report_errors, say, warn
from expost.cli.options import (
    AsJson,
    Dates,
    Decimal,
    Delimiter,
    DialectOf,
    Encoding,
    Force,
    Identifier,
    MissingWords,
    check_order,
    dialect_of,
)

if TYPE_CHECKING:
    from expost._common.progress import Watch
    from expost.cli.private_files import Columns
    from expost.data.lazy import LazyTable
    from expost.publication import Publication

# More records than this do not fit on a screen.
_MOST_RECORDS = 20


@report_errors
def predict(
    publication: Annotated[Path, typer.Argument(metavar="PUBLICATION.json", help="A publication.")],
    records: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDS",
            help="A .csv or .parquet file, a folder of such files, or a quoted pattern; the outcome's column "
            "is not needed.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all predictions (.csv or .parquet) as they are computed."),
    ] = None,
    identifier: Identifier = None,
    domain: DialectOf = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing_words: MissingWords = None,
    dates: Dates = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict the outcome of records with a published model: the likeliest class, or a number.

    A logistic model gives the probability of each class too. Predictions are as private as the records;
    nothing is spent, and the publication is not changed.

    Example: expost predict publication.json new.csv -o predictions.csv
    """
    from expost._common.files import check_output
    from expost.cli.base import shown
    from expost.cli.private_files import check_identifier, check_table_name, with_identifiers, write_columns
    from expost.data.open_lazy import scan
    from expost.publication import Publication

    check_order(publication, records)
    read = Publication.load(publication)
    written = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "dates": dates}
    table = scan(records, dialect=dialect_of(domain, missing_words=missing_words, **written))
    check_identifier(table, identifier, _names(read))
    if output is not None:
        check_table_name(output, "predictions")
        check_output(output, inputs=(publication, records, *table.paths), overwrite=force)
    kept: list[Columns] = []
    count = 0
    with shown("Predicting") as progress:
        parts = with_identifiers(predictions(read, table, progress.watch), table, identifier)

        def passing() -> "Iterator[Columns]":
            nonlocal count
            for part in parts:
                if count < _MOST_RECORDS or (as_json and output is None):
                    kept.append(part)
                count += len(next(iter(part.values())))
                yield part

        if output is not None:
            write_columns(output, passing(), overwrite=force)
        else:
            for _ in passing():
                pass
    if read.insecure:
        warn(f"{publication} was made with seeded noise for a test: its promise is void.")
    if as_json:
        columns = {name: [one for part in kept for one in _plain(part[name])] for name in kept[0]}
        print_json({"predictions": columns if output is None else None, "output": output})
        return
    if output is not None:
        say(f"Written: {legible(output)}")
    else:
        _show(kept, count)


def predictions(
    publication: "Publication", table: "LazyTable", watch: "Watch | None" = None
) -> "Iterator[Columns]":
    """Predictions and, of a logistic model, probabilities, in runs of records; as private as these."""
    from dataclasses import replace

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
    """The names of the columns of predictions."""
    from expost.data.values import class_text

    return ["prediction", *(f"probability of {class_text(label)}" for label in publication.classes or ())]


def _plain(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _show(kept: "list[Columns]", count: int) -> None:
    from expost._common.summary import Summary

    columns = {name: [one for part in kept for one in _plain(part[name])] for name in kept[0]}
    rows = []
    for place in range(min(count, _MOST_RECORDS)):
        cells = [column[place] for column in columns.values()]
        rows.append((str(place + 1), *(f"{one:.4g}" if isinstance(one, float) else one for one in cells)))
    notes = [] if count <= _MOST_RECORDS else ["Only the first records are shown; --output has them all."]
    headings = ("record", *columns)
    console.print(Summary("Predictions", rows, headings, notes, figures=True).terminal())
