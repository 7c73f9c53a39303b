"""``expost predict``, ``bounds`` and ``losses``: what a publication says of each record of a table."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from expost._common.progress import Watch
from expost._common.summary import Summary
from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous, check_positive, parameter_error
from expost.cli.base import console, legible, print_json, say, show_progress, warn
from expost.cli.commands import BoundsOptions, LossesOptions, RecordOptions, whole_number
from expost.cli.display import (
    MOST_RECORDS,
    FirstRecords,
    Tally,
    figure_names,
    figures_of,
    show_bounds,
    show_losses,
)
from expost.cli.private_files import COLUMN, LOSSES_MARK, check_figures, write_columns, write_losses
from expost.cli.tables import Columns, check_order, open_records, with_identifiers
from expost.data.lazy import LazyTable
from expost.data.values import class_text
from expost.exceptions import DomainError, FileError
from expost.fitting.ex_post import streamed_terms
from expost.fitting.prediction import Predictors, class_coefficients, predicted_labels, probabilities
from expost.fitting.private_fit import plausible, recover
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.publication import Publication
from expost.publication.readings import encoded_records, encoded_rows
from expost.reports.base import Figures, Scope

# More predictions than this do not fit on a screen.
_MOST_PREDICTIONS = 20


def predict(publication: Path, records: Path, output: Path | None, options: RecordOptions) -> None:
    """Predict the outcome of records."""
    check_order(publication, records)
    read = Publication.load(publication)
    first = FirstRecords(None if options.as_json and output is None else _MOST_PREDICTIONS)
    with (
        open_records(records, options, _names(read)) as table,
        show_progress("Predicting") as progress,
    ):
        inputs = (publication, records, *table.paths)
        check_figures(output, "predictions", inputs=inputs, overwrite=options.force)
        parts = with_identifiers(_predictions(read, table, progress.watch), table, options.identifier)
        write_columns(output, first.passing(parts), overwrite=options.force)
    if read.insecure:
        warn(f"{publication} was made with seeded noise for a test: its promise is void.")
    columns = first.columns()
    if options.as_json:
        print_json({"predictions": columns if output is None else None, "output": output})
    elif output is not None:
        say(f"Written: {legible(output)}")
    else:
        _show_predictions(columns, first.records)


def _predictions(publication: Publication, table: LazyTable, watch: Watch) -> Iterator[Columns]:
    """Predictions and, of a logistic model, probabilities, in runs of records; as private as these."""
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


def _names(publication: Publication) -> list[str]:
    return ["prediction", *(f"probability of {class_text(label)}" for label in publication.classes or ())]


def _show_predictions(columns: dict[str, list[Any]], count: int) -> None:
    rows = [
        (str(place), *(f"{one:.4g}" if isinstance(one, float) else one for one in cells))
        for place, cells in enumerate(zip(*columns.values(), strict=True), start=1)
    ][:_MOST_PREDICTIONS]
    notes = [] if count <= _MOST_PREDICTIONS else ["Only the first records are shown; --output has them all."]
    console.print(Summary("Predictions", rows, ("record", *columns), notes, figures=True).terminal())


def bounds(options: BoundsOptions) -> None:
    """Bound what publications cost each record."""
    check_positive("confidence", options.confidence, below=1.0)
    scope, reading, output = _scope(options.simultaneous), options.reading, options.output
    check_order(options.publications[0], options.records)
    read = _load(options.publications)
    first = FirstRecords(None if reading.as_json and output is None else MOST_RECORDS)
    where = {"dask": options.dask, "device": options.device}
    with (
        open_records(options.records, reading, Figures._fields, **where) as table,
        show_progress("Reading the publications for each record") as progress,
    ):
        inputs = (*options.publications, options.records, *table.paths)
        check_figures(output, "bounds", inputs=inputs, overwrite=reading.force)
        found = figures_of(
            read,
            table,
            options.weight,
            confidence=options.confidence,
            member={"yes": True, "no": False}.get(options.member),
            simultaneous=scope,
            watch=progress.watch,
        )
        identifier = None if output is None else reading.identifier
        parts = with_identifiers(first.passing(found), table, identifier)
        write_columns(output, parts, overwrite=reading.force)
    _warn(read, options)
    columns = first.columns()
    promised = float(sum(publication.release.plan.epsilon for publication in read))
    if reading.as_json:
        listed, names = columns if output is None else {}, figure_names(len(read))
        print_json(
            {
                "confidence": options.confidence,
                "member": options.member,
                "simultaneous": scope,
                "promised": promised,
                "publications": list(map(partial(_fields, listed), options.publications, read, names)),
                "total": listed.get("total"),
                "output": output,
            }
        )
        return
    others = "use --output to have them all" if output is None else f"all of them are in {legible(output)}"
    console.print(show_bounds(options.publications, columns, first.records, promised, others))
    say(Scope.of(scope).sentence(options.confidence))
    if output is not None:
        say(f"Written: {legible(output)}")


def _scope(simultaneous: str | None) -> Simultaneous:
    if simultaneous is None:
        return None
    if simultaneous == "all":
        return "all"
    with suppress(ValueError):
        return whole_number(simultaneous)
    raise parameter_error("simultaneous", "a number of records or 'all'", simultaneous)


def _load(paths: list[Path]) -> list[Publication]:
    read = [Publication.load(path) for path in paths]
    if len({publication.sha256 for publication in read}) < len(read):
        raise FileError("a publication is given twice, and would be counted twice. Name each file once.")
    return read


def _warn(read: list[Publication], options: BoundsOptions) -> None:
    if options.weight is None and any(one.weighting.max_weight is not None for one in read):
        warn("records had weights here; without --weight COLUMN the figures hold whatever these were.")
    for path, publication in zip(options.publications, read, strict=True):
        if publication.insecure:
            warn(f"{path} was made with seeded noise for a test: its promise and these bounds are void.")


def _fields(
    columns: dict[str, list[Any]], path: Path, publication: Publication, names: list[str]
) -> dict[str, object]:
    figures = zip(Figures._fields, names, strict=True)
    return {
        "publication": path,
        "sha256": publication.sha256,
        "insecure": publication.insecure is not None,
        "epsilon": publication.plan.epsilon,
        "delta": publication.plan.delta,
        **{field: columns[name] for field, name in figures if name in columns},
    }


def losses(options: LossesOptions) -> None:
    """Recompute everyone's exact loss; private."""
    check_order(options.publication, options.table)
    read, reading, output = Publication.load(options.publication), options.reading, options.output
    if options.weight is None and read.weighting.max_weight is not None:
        raise DomainError(
            "the records of this publication had weights, and without them every figure would be wrong. Name "
            "the column that was fitted: --weight COLUMN."
        )
    tally = Tally()
    listed: list[float] = []
    where = {"dask": options.dask, "device": options.device}
    with (
        open_records(options.table, reading, [COLUMN], **where) as table,
        show_progress("Computing everyone's exact loss") as progress,
    ):
        inputs = (options.publication, options.table, *table.paths)
        check_figures(output, "exact losses", private=True, inputs=inputs, overwrite=reading.force)
        counted = tally.counted(_exact_losses(read, table, options.weight, progress.watch))
        if output is not None:
            write_losses(output, counted, table, reading.identifier, overwrite=reading.force)
        else:
            listed = [loss for part in counted for loss in (part.tolist() if reading.as_json else ())]
    if reading.as_json:
        print_json(
            {
                "private": LOSSES_MARK,
                "plausible": True,
                "epsilon": read.plan.epsilon,
                "quantiles": {f"{share:g}": loss for share, loss in tally.quantiles().items()},
                "losses": listed if output is None else None,
                "output": output,
            }
        )
        return
    console.print(show_losses(tally, read.release.plan.epsilon))
    if output is not None:
        say(f"\nPrivate: {legible(output)}")
    say("These figures come from everyone's records. Never publish them, and tell nobody hers: the page is")
    say("for that. They are right only if this is the whole table that was fitted, with all of its rows.")


def _exact_losses(
    publication: Publication, table: LazyTable, weight: str | None, watch: Watch
) -> Iterator[FloatArray]:
    """Everyone's exact loss, part by part, if the table could be the fitted one; private."""
    plan = publication.release.plan
    encoded = replace(encoded_records(publication, table, None, weight), watch=watch)
    records = encoded.checked_for(plan.loss, plan.max_weight)
    private = recover(publication.release, records)
    if not plausible(private):
        raise DomainError(
            "this table implies noise that could not have been drawn, so it is not the one behind the "
            "publication (or not in its units). Name the table that was fitted."
        )
    return (terms.loss for terms in streamed_terms(private, records, publication.loss, member=True))
