"""``expost bounds``: what publications cost each record of a table, from them and the record alone."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from rich.table import Table

from expost._common.validation import Simultaneous, check_positive, parameter_error
from expost.cli.base import console, legible, print_json, say, warn
from expost.cli.commands import BoundsOptions
from expost.cli.options import whole_number
from expost.cli.private_files import check_figures, listed_ids, unit_of, write_columns
from expost.cli.tables import (
    Columns,
    FirstRecords,
    check_publication_first,
    dialect_of,
    inputs_of,
    open_records,
    people_have_ids_error,
    person_column,
    with_identifiers,
)
from expost.data.choices import chosen_cost
from expost.data.encoding import Encoded
from expost.data.people import ONE_PERSON, People
from expost.exceptions import FileError
from expost.page.promises import choice_plans, promised_together
from expost.publication import Publication
from expost.publication.readings import encoded_for
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
_MOST_BOUNDS = 40
# Columns of a narrow terminal for a file's name and for a figure from it.
_NAME, _FIGURE = 19, 9


def bounds(options: BoundsOptions) -> None:
    """Bound what publications cost each record."""
    scope, reading, output = _asked(options), options.reading, options.output
    check_publication_first(options.publications[0], options.records)
    read = [Publication.load(path) for path in options.publications]
    if len({publication.sha256 for publication in read}) < len(read):
        raise FileError("a publication is given twice, and would be counted twice. Name each file once.")
    first = FirstRecords(None if reading.as_json and output is None else _MOST_BOUNDS)
    person, groups = _people(read, options)
    where = {"person": person, "dask": options.dask, "device": options.device}
    doing = "Reading the publications for each record"
    with open_records(options.records, reading, Figures._fields, doing, **where) as (table, watch):
        inputs = inputs_of(table, *options.publications, options.records, reading.domain)
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
            "people": listed_ids(self.people, self.person, output),
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
