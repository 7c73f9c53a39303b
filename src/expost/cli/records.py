"""``expost predict``, ``bounds`` and ``losses``: what a publication says of each record of a table."""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.table import Table

from expost._common.progress import Watch
from expost._common.summary import Summary
from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous, check_positive, parameter_error
from expost.cli.base import console, legible, print_json, say, warn
from expost.cli.commands import BoundsOptions, LossesOptions
from expost.cli.display import Tally, show_losses
from expost.cli.options import RecordOptions, whole_number
from expost.cli.private_files import (
    COLUMN,
    LOSSES_MARK,
    check_figures,
    unit_of,
    write_columns,
    write_losses,
)
from expost.cli.tables import (
    Columns,
    check_order,
    dialect_of,
    open_records,
    people_have_ids_error,
    person_column,
    with_identifiers,
)
from expost.data.choices import chosen_cost
from expost.data.domain import Domain
from expost.data.encoding import Encoded
from expost.data.labels import Label, NumericLabel, TimeLabel
from expost.data.lazy import LazyTable
from expost.data.people import ONE_PERSON, People
from expost.data.ranges import choice_losses
from expost.data.values import class_text
from expost.exceptions import DomainError, FileError, PublicationError
from expost.fitting.ex_post import LossTerms, streamed_terms
from expost.fitting.prediction import Predictors, predicted_labels
from expost.fitting.private_fit import FALSE_ALARMS, plausible, recover
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.page.promises import choice_plans, promised_together
from expost.publication import Publication
from expost.publication.readings import encoded_for, encoded_records, encoded_rows, score_coefficients
from expost.reports.base import Bounds, Figures, Scope
from expost.reports.evaluate import streamed_figures
from expost.reports.several import streamed_totals
from expost.reports.wallet import streamed_wallet

# What the figure of several publications holds for: their total, and the wallet.
_ALL = {
    False: "The figure for all of them holds if the plans and their number were fixed in advance.",
    True: "The figure for all of them bounds how far they can have raised the odds that a member is in the "
    "table, even if each was decided on by those before. It says nothing of people who are not in it, nor of "
    "how far the odds can have fallen.",
}
_OR_WALLET = (
    " For members of the table --wallet has one that holds however they were chosen; "
    "choose one before you look."
)
# More records than this do not fit on a screen.
_MOST_PREDICTIONS, _MOST_BOUNDS = 20, 40
_OF_CLASS = "probability of "
# Columns of a narrow terminal for a file's name and for a figure from it.
_NAME, _FIGURE = 19, 9
# How seldom noise is that makes a curator doubt whether this is the whole table.
_DOUBTFUL = 1e-3


class FirstRecords:
    """Keeps the columns of the first runs of records that pass, or of all, and counts the records."""

    def __init__(self, most: int | None) -> None:
        self.records = 0
        self._most = most
        self._kept: list[Columns] = []

    def passing(self, runs: Iterable[Columns]) -> Iterator[Columns]:
        """Keep and count runs as they pass."""
        for run in runs:
            if self._most is None or self.records < self._most:
                self._kept.append(run)
            self.records += len(next(iter(run.values())))
            yield run

    def columns(self) -> dict[str, list[Any]]:
        """The columns that were kept, joined, with Python's own numbers."""
        runs = {name: [np.asarray(run[name], dtype=object) for run in self._kept] for name in self._kept[0]}
        return {name: np.concatenate(parts).tolist() for name, parts in runs.items()}


def predict(publication: Path, records: Path, output: Path | None, options: RecordOptions) -> None:
    """Predict the outcome of records."""
    check_order(publication, records)
    read = Publication.load(publication)
    first = FirstRecords(None if options.as_json and output is None else _MOST_PREDICTIONS)
    with open_records(records, options, _names(read), "Predicting") as (table, watch):
        inputs = (publication, records, *table.paths)
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
        _show_predictions(columns, first.records, read.label)


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
        return ["prediction", *(f"survival to {end:g}" for end in publication.label.ends)]
    return ["prediction", *(f"{_OF_CLASS}{class_text(label)}" for label in publication.classes or ())]


def _show_predictions(columns: dict[str, list[Any]], count: int, label: Label | None) -> None:
    """The first predictions, each with its own probability: those of the other classes are for a file."""
    likely = [name for name in columns if name.startswith(_OF_CLASS)]
    shown = {name: columns[name] for name in columns if name not in likely}
    if isinstance(label, NumericLabel):
        shown |= _in_units(shown.pop("prediction"), label)
    if likely:
        found = enumerate(columns["prediction"])
        shown["its probability"] = [f"{columns[_OF_CLASS + one][place]:.4f}" for place, one in found]
    places = map(str, range(1, _MOST_PREDICTIONS + 1))
    rows = list(zip(places, *map(_texts, shown.values()), strict=False))
    said = {
        "Only the first records are shown; --output has them all.": count > _MOST_PREDICTIONS,
        "The probabilities of the other classes: --output FILE": len(likely) > 2,
    }
    notes = list(filter(said.get, said))
    console.print(Summary("Predictions", rows, ("record", *shown), notes, figures=True).terminal())


def _texts(column: list[Any]) -> list[str]:
    return [one if isinstance(one, str) else f"{one:.4g}" for one in column]


def _in_units(values: list[float], label: NumericLabel) -> dict[str, list[str]]:
    """Predicted numbers as the table has them, under a heading with their unit."""
    unit = "" if label.unit is None else f" ({label.unit})"
    return {f"prediction{unit}": [_figure(one, label.high - label.low) for one in values]}


def _figure(value: float, span: float) -> str:
    """A number with marks between thousands, to about a thousandth of the range that it lies in."""
    return f"{value:,.{max(3 - math.floor(math.log10(span)), 0)}f}"


def bounds(options: BoundsOptions) -> None:
    """Bound what publications cost each record."""
    scope, reading, output = _asked(options), options.reading, options.output
    check_order(options.publications[0], options.records)
    read = [Publication.load(path) for path in options.publications]
    if len({publication.sha256 for publication in read}) < len(read):
        raise FileError("a publication is given twice, and would be counted twice. Name each file once.")
    first = FirstRecords(None if reading.as_json and output is None else _MOST_BOUNDS)
    person, groups = _people(read, options)
    where = {"person": person, "dask": options.dask, "device": options.device}
    doing = "Reading the publications for each record"
    with open_records(options.records, reading, Figures._fields, doing, **where) as (table, watch):
        inputs = (*options.publications, options.records, *table.paths)
        check_figures(output, "bounds", inputs=inputs, overwrite=reading.force)
        # The column of weights is used by publications that have weights.
        records = [
            replace(encoded_for(one, table, None, options.weight, groups), watch=watch) for one in read
        ]
        people = records[0].whose
        parts = first.passing(_figures(read, options, scope, records))
        if output is not None:
            parts = with_identifiers(parts, table, person or reading.identifier, people)
        written: Any = {"overwrite": reading.force, "dialect": dialect_of(reading)}
        write_columns(output, parts, counted=unit_of(people), **written)
    _warn(read, options)
    found = _Bounded(options, read, scope, first, people, person)
    if reading.as_json:
        print_json(found.document())
    else:
        found.show()


def _people(read: list[Publication], options: BoundsOptions) -> tuple[str | None, Any]:
    """The column that says whose each row is, where there is one, and what stands for it in `groups`."""
    of_people = any(one.of_people for one in read)
    person = person_column(options.person, options.reading, of_people=of_people)
    if person is not None or not of_people:
        return person, person
    if options.reading.identifier is not None:
        raise people_have_ids_error()
    return None, ONE_PERSON


@dataclass(frozen=True)
class _Bounded:
    """The bounds of the first records, and what they are about."""

    options: BoundsOptions
    read: list[Publication]
    scope: Simultaneous
    first: FirstRecords
    people: People | None
    person: str | None

    @property
    def promised(self) -> float:
        """What the publications promise together, certified: at most the sum of their promises."""
        releases = [publication.release for publication in self.read]
        plans = tuple(release.plan for release in releases)
        together = promised_together(plans, choice_plans(releases))
        return math.inf if together is None else together[0]

    def document(self) -> dict[str, Any]:
        """All of it for a program; the figures only where no file has them."""
        options, output = self.options, self.options.output
        listed: dict[str, list[Any]] = self.first.columns() if output is None else {}
        figures = [zip(Figures._fields, names, strict=True) for names in _figure_names(len(self.read))]
        publications = [
            {
                "publication": path,
                "sha256": one.sha256,
                "insecure": one.insecure is not None,
                "epsilon": one.plan.epsilon,
                "delta": one.plan.delta,
                **{figure: listed[name] for figure, name in names if name in listed},
            }
            for path, one, names in zip(options.publications, self.read, figures, strict=True)
        ]
        return {
            "confidence": options.confidence,
            "member": options.member,
            "simultaneous": self.scope,
            "promised": self.promised,
            "unit": unit_of(self.people),
            "people": _ids(self.people, self.person, output),
            "publications": publications,
            "total": listed.get("total"),
            "wallet": listed.get("wallet"),
            "output": output,
        }

    def _left(self) -> str:
        """How many records are not shown, and where they are."""
        left, output = self.first.records - _MOST_BOUNDS, self.options.output
        if left <= 0:
            return ""
        rest = "use --output to have them all" if output is None else f"all of them are in {legible(output)}"
        return f"\n{left:,} more {'records' if self.people is None else 'people'}: {rest}"

    def _say_choices(self) -> None:
        """Say what private choices cost that the publications used."""
        chosen = chosen_cost(choice for one in self.read for choice in one.release.choices)
        if chosen:
            say(f"Every total counts {chosen:.4g} for ranges that were chosen from the table.")

    def show(self) -> None:
        """A table of the first records, and sentences on what it says."""
        output, of_people = self.options.output, {one.of_people for one in self.read}
        shown = _bounds_table(self.options.publications, self.first.columns(), unit_of(self.people))
        # A family is promised less than each of its records: `epsilon_for` of a plan says how much.
        whom = "everyone" if self.people is None or of_people == {True} else "every single record"
        shown.caption = f"for comparison, the worst case promised to {whom}: {self.promised:.4g}"
        shown.caption += self._left()
        console.print(shown)
        if self.people is not None:
            say(_whose(self.person, of_people=True in of_people))
        self._say_choices()
        say(Scope.of(self.scope).sentence(self.options.confidence))
        if self.options.wallet or len(self.read) > 1:
            offered = not self.options.wallet and self.people is None  # people have none
            say(_ALL[self.options.wallet] + _OR_WALLET * offered)
        if output is not None:
            say(f"Written: {legible(output)}")


def _ids(people: People | None, person: str | None, output: Path | None) -> list[Any] | None:
    """The ids of the column of people, where no file has them."""
    return None if people is None or person is None or output is not None else people.ids.tolist()


def _whose(person: str | None, *, of_people: bool) -> str:
    """Who the figures of people are about."""
    if person is None:
        return (
            "All rows were read as those of one person. The figure is hers only if these are all of her "
            "rows; if they are several people's, say whose each is with --person COLUMN."
        )
    if of_people:
        return (
            f"Rows with the same {legible(person)} were read as one person's. A figure is hers only if these "
            "are all of her rows."
        )
    return f"Records with the same {legible(person)} were read as one family: what it cost all together."


def _figures(
    read: list[Publication], options: BoundsOptions, scope: Simultaneous, records: list[Encoded]
) -> Iterator[Columns]:
    """What each publication says of each record, and all together as ``total``, in runs of records."""
    member = {"yes": True, "no": False}.get(options.member)
    asked: Any = {"member": member, "simultaneous": scope}
    releases = [one.release for one in read]
    # Each gets an equal share of the failure probability, so that all hold with the chosen confidence.
    share = 1.0 - (1.0 - options.confidence) / len(read)
    streams: list[Iterator[Any]] = [
        streamed_figures(release, rows, confidence=share, **asked)
        for release, rows in zip(releases, records, strict=True)
    ]
    names = list(chain.from_iterable(_figure_names(len(read))))
    if options.wallet:
        names.append("wallet")
        raised = streamed_wallet(releases, records, confidence=options.confidence, simultaneous=scope)
        streams.append((one,) for one in raised)
    elif len(read) > 1:
        names.append("total")
        totals = streamed_totals(releases, records, confidence=options.confidence, **asked)
        streams.append((total,) for total in totals)
    for run in zip(*streams, strict=True):
        yield dict(zip(names, chain.from_iterable(run), strict=True))


def _figure_names(publications: int) -> list[list[str]]:
    """The names of the figures from each publication, which are numbered where there are several."""
    ends = [f"_{number}" for number in range(1, publications + 1)] if publications > 1 else [""]
    return [[name + end for name in Figures._fields] for end in ends]


def _empty_table(unit: str, names: list[str]) -> Table:
    """The headings of a table of bounds; with names of files, it fits into a narrow terminal."""
    table = Table(title=f"What was released about each {unit}", title_justify="left", caption_justify="left")
    table.add_column(unit, justify="right")
    if names:
        table.add_column("publication", overflow="fold", min_width=min(max(map(len, names)), _NAME))
    for heading in Bounds.HEADINGS:
        table.add_column(heading, justify="right", width=_FIGURE if names else None)
    return table


def _bounds_table(paths: list[Path], columns: dict[str, list[float]], unit: str) -> Table:
    """The first records' intervals, report costs and totals, and the sums of several publications."""
    # With a wallet the publications are named even where there is one, and its figure has a line of its own.
    last, all_of_them = ("wallet", "all, however chosen") if "wallet" in columns else ("total", "all")
    several = len(paths) > 1 or last == "wallet"
    table = _empty_table(unit, [*map(str, paths), all_of_them] if several else [])
    for record, total in enumerate(columns[last][:_MOST_BOUNDS]):
        place = str(record + 1)
        for path, names in zip(paths, _figure_names(len(paths)), strict=True):
            which = [legible(path)] if several else []
            table.add_row(place, *which, *(f"{columns[name][record]:.4f}" for name in names))
        if several:
            table.add_row(place, f"[bold]{all_of_them}[/bold]", "", "", "", f"[bold]{total:.4f}[/bold]")
            table.add_section()
    return table


def _asked(options: BoundsOptions) -> Simultaneous:
    """For how many records the bounds are to hold at once, where all that is asked for makes sense."""
    check_positive("confidence", options.confidence, below=1.0)
    if options.wallet and options.member != "yes":
        wanted = "yes with `--wallet`, which is about people in the table"
        raise parameter_error("member", wanted, options.member)
    return _scope(options.simultaneous)


def _scope(simultaneous: str | None) -> Simultaneous:
    if simultaneous is None or simultaneous == "all":
        return cast(Simultaneous, simultaneous)
    with suppress(ValueError):
        return whole_number(simultaneous)
    raise parameter_error("simultaneous", "a number of records or 'all'", simultaneous)


def _warn(read: list[Publication], options: BoundsOptions) -> None:
    if options.weight is None and any(one.weighting.max_weight is not None for one in read):
        warn("records had weights here; without --weight COLUMN the figures hold whatever these were.")
    for path, publication in zip(options.publications, read, strict=True):
        if publication.insecure:
            warn(f"{path} was made with seeded noise for a test: its promise and these bounds are void.")


def losses(options: LossesOptions) -> None:
    """Recompute everyone's exact loss; private."""
    check_order(options.publication, options.table)
    read, reading, output = Publication.load(options.publication), options.reading, options.output
    person = person_column(options.person, reading, of_people=read.of_people)
    _check_declared(read, options.weight, person)
    tally = Tally()
    listed: list[float] = []
    where = {"person": person, "dask": options.dask, "device": options.device}
    doing = "Computing everyone's exact loss"
    with open_records(options.table, reading, [COLUMN], doing, **where) as (table, watch):
        inputs = (options.publication, options.table, *table.paths)
        check_figures(output, "exact losses", private=True, inputs=inputs, overwrite=reading.force)
        records = replace(encoded_records(read, table, None, options.weight, person), watch=watch)
        people, named = records.whose, person or reading.identifier
        counted = tally.counted(with_choices(_exact_losses(read, records), read.domain, table, person))
        if output is not None:
            written: Any = {"overwrite": reading.force, "dialect": dialect_of(reading)}
            write_losses(output, counted, table, named, people, **written)
        else:
            listed = [loss for part in counted for loss in (part.tolist() if reading.as_json else ())]
    if reading.as_json:
        print_json(
            {
                "private": LOSSES_MARK,
                "plausible": True,
                "epsilon": read.plan.epsilon,
                "quantiles": {f"{share:g}": loss for share, loss in tally.quantiles().items()},
                "unit": unit_of(people),
                "people": _ids(people, person, output),
                "losses": listed if output is None else None,
                "output": output,
            }
        )
        return
    console.print(show_losses(tally, read.release.plan.epsilon))
    if output is not None:
        say(f"\nPrivate: {legible(output)}")
    say("These figures come from everyone's records. Never publish them, and tell nobody")
    say("hers: the page is for that. They are right only if this is the whole table that")
    say("was fitted, with all of its rows. The noise that it implies could have been")
    say("drawn, but that can be so without many of its rows too.")


def _check_declared(publication: Publication, weight: str | None, person: str | None) -> None:
    """Refuse exact losses where nobody said the weight of each record, or whose each row is."""
    if weight is None and publication.weighting.max_weight is not None:
        raise DomainError(
            "the records of this publication had weights, and without them every figure would be wrong. Name "
            "the column that was fitted: --weight COLUMN."
        )
    if person is None and publication.of_people:
        raise DomainError(
            "this publication promises to people, and nobody said whose each row is. Name the column of the "
            "fit: --person COLUMN, or --domain DOMAIN.toml with a domain file that declares `person`."
        )


def with_choices(
    parts: Iterable[LossTerms], domain: Domain | None, table: LazyTable, person: str | None = None
) -> Iterator[FloatArray]:
    """Everyone's exact loss from its terms, part by part, with ranges that were chosen; private."""
    choices = () if domain is None else domain.choices
    if domain is None or not choices:
        yield from (terms.loss for terms in parts)
        return
    own: Any = {"person": person or domain.person, "rows_per_person": domain.rows_per_person}
    every, start = choice_losses(table, choices, dialect=table.dialect, **own), 0
    for terms in parts:
        count = len(terms.signed)
        yield replace(terms, choices=every[start : start + count]).loss
        start += count


def _exact_losses(publication: Publication, encoded: Encoded) -> Iterator[LossTerms]:
    """The terms of everyone's exact loss, part by part, if the table could be the fitted one; private."""
    plan = publication.release.plan
    records = encoded.checked_for(plan.loss, plan.max_weight)
    private = recover(publication.release, records)
    if not plausible(private):
        raise PublicationError(
            "this is not the table that was fitted, or not all of it: with the publication it implies noise "
            f"that is drawn less than once in {1.0 / FALSE_ALARMS:,.0f} fits. Name the whole table, in the "
            "units and with the weights of the fit."
        )
    if not plausible(private, level=_DOUBTFUL):
        warn(
            "with the publication, this table implies noise that is drawn less than once in "
            f"{1.0 / _DOUBTFUL:,.0f} fits. If some of its rows are missing, every figure is wrong."
        )
    return streamed_terms(private, records, publication.loss, member=True)
